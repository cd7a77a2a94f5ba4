"""`python -m tests.house`: counts of the product's code, beside those of an earlier state."""

from __future__ import annotations

from .measure import LARGEST_COMPLEXITY, LONGEST_FUNCTION, circles, code_lines, definitions, functions

_BEFORE = {"complex": 3.3, "long": 23}
"""Counted by radon, which leaves some comprehensions out."""


def main() -> None:
    """Print the counts."""
    every = functions()
    complex_ones = [each for each in every if each.complexity > LARGEST_COMPLEXITY]
    long_ones = [each for each in every if each.lines > LONGEST_FUNCTION]
    for folder, lines in code_lines().items():
        print(f"{folder:28} {lines:7,} lines of code")
    share = 100 * len(complex_ones) / len(every)
    print(
        f"{len(every):,} functions; over complexity {LARGEST_COMPLEXITY}: {len(complex_ones)}, {share:.1f} % "
        f"(before: {_BEFORE['complex']} %); over {LONGEST_FUNCTION} lines: {len(long_ones)} (before: {_BEFORE['long']})"
    )
    for each in sorted(complex_ones, key=lambda each: -each.complexity)[:12]:
        print(f"    complexity {each.complexity:3}, {each.lines:3} lines: {each.file} {each.name}")
    for each in sorted(long_ones, key=lambda each: -each.lines)[:12]:
        print(f"    {each.lines:3} lines: {each.file} {each.name}")
    found = circles()
    print(f"circles of files: {len(found)}")
    for group in found:
        print(f"    {' '.join(group)}")
    for thing, files in definitions().items():
        print(f"one {thing}: {', '.join(files)}")


if __name__ == "__main__":
    main()
