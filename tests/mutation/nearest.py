"""The nearest tests of a product file: those of its folder that import it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("host/hilt", "board/hilt_board", "board/hilt_runtime", "board/hilt_virtual_board")
_MOST_FILES = 8
_MOST_STEPS = 3
"""Imports between a test and a file, such as test -> package -> module -> its private part."""


def product_files() -> list[str]:
    """Return the paths of all product files, sorted."""
    return sorted(
        str(path.relative_to(ROOT)) for folder in PRODUCT for path in (ROOT / folder).rglob("*.py") if _has_code(path)
    )


def nearest_tests(name: str) -> tuple[str, ...]:
    """Return at most eight test files for a product file: those named like it, then those that import it.

    Where no test imports it, those that import what imports it.
    """
    module = _module_of(name)
    targets = {module}
    for _ in range(_MOST_STEPS):
        found = [test for test, imported in _imports_of_tests().items() if imported & targets]
        if found:
            return tuple(sorted(found, key=lambda test: _distance(test, name))[:_MOST_FILES])
        targets |= {other for other, imported in _imports_of_product().items() if imported & targets}
    return ()


def _distance(test: str, name: str) -> tuple[bool, bool, int, str]:
    parts, path = Path(test).parts, Path(name)
    return path.stem not in Path(test).stem, path.parent.name not in parts, (ROOT / test).stat().st_size, test


@cache
def _imports_of_tests() -> dict[str, frozenset[str]]:
    tests = sorted((ROOT / "tests" / "unit").rglob("test_*.py"))
    return {str(path.relative_to(ROOT)): _imported(path) for path in tests}


@cache
def _imports_of_product() -> dict[str, frozenset[str]]:
    return {_module_of(name): _imported(ROOT / name) for name in product_files()}


def _imported(path: Path) -> frozenset[str]:
    """Return the modules that a file imports, at its top or within a function; `from a import b` gives a and a.b."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def _module_of(name: str) -> str:
    parts = Path(name).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _has_code(path: Path) -> bool:
    """Return whether a file holds more than imports and a docstring."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return any(isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) for node in body)
