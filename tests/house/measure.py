"""Counts of the product's own code: size, functions, imports that go in circles, and definitions that must be one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("host/hilt", "board/hilt_board", "board/hilt_runtime", "board/hilt_virtual_board")
LARGEST_COMPLEXITY = 10
LONGEST_FUNCTION = 50
LARGEST_COMPLEX_SHARE = 0.022
MOST_LONG = 7
"""The functions that may be more complex (a share of all) or longer (their number)."""
ONE: dict[str, tuple[str, ...]] = {
    "map of the registers' offsets": (r"^\s*IDENTITY\s*=\s*0x", r"^\s*OFFSETS\s*[:=]"),
    "protocol of the registers": (r"^class RegisterProtocol\b",),
    "searcher of schedules": (r"^class Searcher\b", r"^def best_schedule\b"),
    "type of a network's graph": (r"^class Graph\b",),
    "compiler of networks": (r"^def compile_network\b",),
}
"""What has one definition, by the regular expressions of one."""


@dataclass(frozen=True)
class Function:
    """A function: its place, its lines and its cyclomatic complexity."""

    file: str
    name: str
    lines: int
    complexity: int


@cache
def sources() -> dict[str, str]:
    """Return the text of each product file by its path."""
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


@cache
def functions() -> tuple[Function, ...]:
    """Return every function of the product."""
    return tuple(
        Function(file, node.name, (node.end_lineno or node.lineno) - node.lineno + 1, _complexity(node))
        for file, text in sources().items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def complex_functions() -> list[Function]:
    """Return those over LARGEST_COMPLEXITY, the most complex first."""
    return sorted((each for each in functions() if each.complexity > LARGEST_COMPLEXITY), key=lambda f: -f.complexity)


def long_functions() -> list[Function]:
    """Return those over LONGEST_FUNCTION lines, the longest first."""
    return sorted((each for each in functions() if each.lines > LONGEST_FUNCTION), key=lambda f: -f.lines)


def _complexity(function: ast.AST) -> int:
    """Return 1 and one for each branch; functions within count for themselves."""
    count, waiting = 1, list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(
            node, ast.If | ast.IfExp | ast.For | ast.AsyncFor | ast.While | ast.ExceptHandler | ast.match_case
        ):
            count += 1
        elif isinstance(node, ast.comprehension):
            count += 1 + len(node.ifs)
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        waiting += ast.iter_child_nodes(node)
    return count


def code_lines() -> dict[str, int]:
    """Return the lines of code of each folder, without blank lines, comments and docstrings."""
    counts = dict.fromkeys(FOLDERS, 0)
    for file, text in sources().items():
        lines = set()
        for node in ast.walk(ast.parse(text)):
            is_text = (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            )
            if isinstance(node, ast.stmt) and not is_text:
                first = node.body[0].lineno if getattr(node, "body", None) else (node.end_lineno or node.lineno) + 1
                lines |= set(range(node.lineno, max(first, node.lineno + 1)))
        counts[next(folder for folder in FOLDERS if file.startswith(f"{folder}/"))] += len(lines)
    return counts


def circles() -> list[list[str]]:
    """Return the groups of files that import one another when they are imported themselves."""
    modules = {_module(file): file for file in sources()}
    graph = {
        file: {modules[name] for name in _imported(text, _module(file)) if name in modules} - {file}
        for file, text in sources().items()
    }
    return sorted(sorted(group) for group in _components(graph) if len(group) > 1)


def _module(file: str) -> str:
    parts = Path(file).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def _modules() -> frozenset[str]:
    return frozenset(_module(file) for file in sources())


def _imported(text: str, own: str) -> Iterator[str]:
    """Yield the modules that a file imports at its top; an attribute's module is that of the package."""
    known = _modules()
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            children = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (child for child in children if child in known)
            if not all(child in known for child in children) and not own.startswith(f"{node.module}."):
                yield node.module


def _components(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected parts: files that reach each other."""
    reach: dict[str, set[str]] = {}
    for start in graph:
        seen, waiting = set(), [start]
        while waiting:
            for other in graph[waiting.pop()] - seen:
                seen.add(other)
                waiting.append(other)
        reach[start] = seen
    found: list[set[str]] = []
    for start in graph:
        group = {start, *(other for other in reach[start] if start in reach[other])}
        if group not in found:
            found.append(group)
    return found


def definitions() -> dict[str, list[str]]:
    """Return the files that define each thing of ONE."""
    return {
        thing: [
            file for file, text in sources().items()
            if any(re.search(pattern, text, re.MULTILINE) for pattern in patterns)
        ]
        for thing, patterns in ONE.items()
    }  # fmt: skip
