"""`python -m tests.house`: counts of the product's code, beside those of an earlier state."""

from __future__ import annotations

from .measure import (
    LARGEST_COMPLEX_SHARE,
    LARGEST_COMPLEXITY,
    LONGEST_FUNCTION,
    MOST_LONG,
    circles,
    code_lines,
    complex_functions,
    definitions,
    functions,
    long_functions,
)

_BEFORE = {"complex": 3.6, "long": 24}


def main() -> None:
    """Print the counts."""
    every, complex_ones, long_ones = functions(), complex_functions(), long_functions()
    for folder, lines in code_lines().items():
        print(f"{folder:28} {lines:7,} lines of code")
    share = 100 * len(complex_ones) / len(every)
    print(
        f"{len(every):,} functions; over complexity {LARGEST_COMPLEXITY}: {len(complex_ones)}, {share:.1f} % "
        f"(before: {_BEFORE['complex']} %, limit: {100 * LARGEST_COMPLEX_SHARE:.1f} %); "
        f"over {LONGEST_FUNCTION} lines: {len(long_ones)} (before: {_BEFORE['long']}, limit: {MOST_LONG})"
    )
    for each in complex_ones[:12]:
        print(f"    complexity {each.complexity:3}, {each.lines:3} lines: {each.file} {each.name}")
    for each in long_ones[:12]:
        print(f"    {each.lines:3} lines: {each.file} {each.name}")
    found = circles()
    print(f"circles of files: {len(found)}")
    for group in found:
        print(f"    {' '.join(group)}")
    for thing, files in definitions().items():
        print(f"one {thing}: {', '.join(files)}")


if __name__ == "__main__":
    main()
