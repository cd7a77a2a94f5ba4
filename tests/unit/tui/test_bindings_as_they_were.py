"""Every key of the terminal UI as it is bound: its action, its words, and whether the footer shows it.

Where they are meant to change:
`build/host-env/bin/pytest tests/unit/tui/test_bindings_as_they_were.py --snapshot-update`.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

from syrupy.assertion import SnapshotAssertion
from textual.binding import Binding
from textual.dom import DOMNode

import hilt.tui
from hilt.tui.app import HiltApp


def test_bindings(snapshot: SnapshotAssertion) -> None:
    kinds: dict[str, type[DOMNode]] = {HiltApp.__qualname__: HiltApp}
    for found in pkgutil.walk_packages(hilt.tui.__path__, "hilt.tui."):
        if not found.name.endswith("__main__"):
            module = importlib.import_module(found.name)
            kinds |= {name: each for name, each in inspect.getmembers(module, inspect.isclass)
                      if issubclass(each, DOMNode) and each.__module__ == found.name}  # fmt: skip
    lines = []
    for name, kind in sorted(kinds.items()):
        for each in Binding.make_bindings(vars(kind).get("BINDINGS", ())):
            facts = [f"footer {each.show}", f"priority {each.priority}"]
            facts += [f"{fact} {value}" for fact in ("key_display", "tooltip", "id") if (value := getattr(each, fact))]
            lines.append(f"{name} {each.key}: {each.action} {each.description!r}, {', '.join(facts)}")
    assert "\n".join(lines) == snapshot


def test_no_text_of_an_error_is_markup() -> None:
    """A path with brackets in an error would end the terminal UI, or vanish."""
    told = 0
    for path in Path(hilt.tui.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node).startswith("self.notify(str(error)"):
                words = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
                assert words.get("markup") == "False", f"{path}:{node.lineno}"
                told += 1
    assert told > 10
