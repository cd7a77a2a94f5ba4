"""The board's Python is 3.8: no later syntax, no later library, nothing of the host."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from hilt import paths

_BOARD = paths.board_package_directory()
_VIRTUAL = _BOARD.with_name("hilt_virtual_board")
SOURCES = sorted([*_BOARD.rglob("*.py"), *_BOARD.with_name("hilt_runtime").rglob("*.py"), *_VIRTUAL.rglob("*.py")])
ALLOWED = {"numpy", "pynq", "hilt_board", "hilt_runtime", "hilt_virtual_board"}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_module_is_python_38(source: Path) -> None:
    tree = ast.parse(source.read_text(), feature_version=(3, 8))
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
        for name in names:
            top = name.split(".")[0]
            assert top in ALLOWED or top in sys.stdlib_module_names, f"{source.name} imports {name}"
            assert top not in ("pickle", "marshal", "tomllib", "zoneinfo", "graphlib"), f"{source.name} imports {name}"


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_nothing_executes_text(source: Path) -> None:
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in ("eval", "exec", "compile", "os.system", "os.popen", "__import__"), called
            assert not any(word.arg == "shell" for word in node.keywords), f"{source.name}: {called}"
