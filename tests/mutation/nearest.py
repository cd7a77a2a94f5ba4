"""The nearest tests of a product file, by imports and by the names that they use."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("host/hilt", "board/hilt_board", "board/hilt_runtime", "board/hilt_virtual_board")
TESTS = ("unit", "experiments")
"""Folders of tests that run the product in their own process, in seconds; others start boards or hold the RTL."""
_MODULE = re.compile(r"hilt(_\w+)?(\.\w+)+")
_PLACE = re.compile(r"(\w+):\w+")
"""A module of the same package and a name in it, as hilt.cli.commands has them."""
_ENOUGH = 16
_MOST_STEPS = 5
"""Imports between a test and a file, such as test -> package -> module -> its private part."""


@cache
def product_files() -> list[str]:
    """Return the paths of all product files, sorted."""
    return sorted(
        str(path.relative_to(ROOT)) for folder in PRODUCT for path in (ROOT / folder).rglob("*.py") if _has_code(path)
    )


def all_tests() -> list[str]:
    """Return the test files that may notice a mutant, sorted."""
    return sorted(_imports_of_tests())


def users_of(name: str) -> list[str]:
    """Return the product files that import a product file."""
    target = _module_of(name)
    return [file for file in product_files() if target in _imports_of_product()[_module_of(file)]]


def nearest_tests(name: str) -> tuple[str, ...]:
    """Return the test files of a product file, nearest first.

    Those that import it, in the order of `_distance`, then those that import what imports it, and so on. Of a file that
    nothing imports by a name that is written down, those of its folder.
    """
    targets = {_module_of(name)}
    found: list[str] = []
    for _ in range(_MOST_STEPS):
        more = [test for test, imported in _imports_of_tests().items() if imported & targets and test not in found]
        found += sorted(more, key=lambda test: _distance(test, name))
        if len(found) >= _ENOUGH:
            break
        targets |= {other for other, imported in _imports_of_product().items() if imported & targets}
    folder = Path(name).parent.name
    return tuple(found or sorted(_tests_in(folder), key=lambda test: _distance(test, name)))


def _tests_in(folder: str) -> list[str]:
    return [test for test in _imports_of_tests() if folder in Path(test).parts]


def _distance(test: str, name: str) -> tuple[bool, bool, int, int, str]:
    """Return the order of a test: named like the file, in a folder named like its, with more of its names, short."""
    parts, path = Path(test).parts, Path(name)
    unnamed = -len(_public_names(name) & _words(test))
    named = path.stem in Path(test).stem or Path(test).stem.removeprefix("test_") in path.stem
    return not named, path.parent.name not in parts, unnamed, (ROOT / test).stat().st_size, test


@cache
def _public_names(name: str) -> frozenset[str]:
    """Return the functions, classes and methods of a file that its users call."""
    nodes = ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8")))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return frozenset(node.name for node in nodes if isinstance(node, kinds) and not node.name.startswith("_"))


@cache
def _words(test: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", (ROOT / test).read_text(encoding="utf-8")))


@cache
def _imports_of_tests() -> dict[str, frozenset[str]]:
    """Return the modules that each test file imports, itself or by the modules of tests that it imports."""
    tests = sorted(path for folder in TESTS for path in (ROOT / "tests" / folder).rglob("test_*.py"))
    return {str(path.relative_to(ROOT)): _imported(path).union(*_imports_of_helpers(path)) for path in tests}


def _imports_of_helpers(path: Path) -> list[frozenset[str]]:
    """Return the imports of the modules of tests, no test files themselves, that a file below tests imports."""
    modules = (name.removeprefix("tests.").replace(".", "/") for name in _imported(path))
    helpers = [ROOT / "tests" / f"{module}.py" for module in modules]
    return [_imported(helper) for helper in helpers if helper.is_file() and not helper.name.startswith("test_")]


@cache
def _imports_of_product() -> dict[str, frozenset[str]]:
    paths = [path for folder in PRODUCT for path in sorted((ROOT / folder).rglob("*.py"))]
    return {_module_of(str(path.relative_to(ROOT))): _imported(path) for path in paths}


def _imported(path: Path) -> frozenset[str]:
    """Return the modules that a file imports, at its top or within a function; `from a import b` gives a and a.b.

    A string that is the name of a module counts: it is imported by name, or run as a program.
    """
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = _origin(node, path)
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= _named(node.value, path)
    return frozenset(found)


def _named(text: str, path: Path) -> set[str]:
    """Return the modules that a string may name."""
    if _MODULE.fullmatch(text):
        return {text, f"{text}.__main__"}
    place = _PLACE.fullmatch(text)
    return {".".join([*path.relative_to(ROOT).parts[1:-1], place.group(1)])} if place else set()


def _origin(node: ast.ImportFrom, path: Path) -> str:
    """Return the whole name of the module that `from ... import` names."""
    if not node.level:
        return node.module or ""
    package = path.relative_to(ROOT).parts[1 : -node.level]
    return ".".join([*package, *([node.module] if node.module else [])])


def _module_of(name: str) -> str:
    parts = Path(name).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _has_code(path: Path) -> bool:
    """Return whether a file holds more than imports and a docstring."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return any(isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) for node in body)
