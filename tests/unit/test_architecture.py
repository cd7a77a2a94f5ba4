"""Imports go down docs/architecture.md's list only, never sideways; host and board share their two formats only."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

from .parsed import nodes, parsed

ROOT = Path(__file__).parents[2]
HOST = ROOT / "host" / "hilt"
BOARD = ROOT / "board" / "hilt_board"


def rows() -> list[set[str]]:
    """The indented list of docs/architecture.md, top row first; a row's rooms stand between bars or commas."""
    lines = (ROOT / "docs" / "architecture.md").read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("Imports go down this list only"))
    listed = []
    for line in lines[start + 1 :]:
        if line.startswith("    "):
            listed.append({word.strip() for word in line.replace(",", "|").split("|")})
        elif listed:
            break
    assert listed[0] == {"cli"} and {"trial", "paths"} <= listed[-1]
    return listed


def room_of(path: Path) -> str:
    return path.relative_to(HOST).parts[0].removesuffix(".py")


def imported(path: Path, package: str) -> list[str]:
    """Return every module that a file imports, anywhere in it, as an absolute name.

    `package` is the file's own.
    """
    names = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names += [f"{module}.{each.name}" for each in node.names]
    return names


def host_files() -> list[Path]:
    return sorted(path for path in HOST.rglob("*.py") if path != HOST / "__init__.py")


def package_of(path: Path, source: Path) -> str:
    return ".".join(path.relative_to(source).parent.parts)


def imports(folder: Path, source: Path) -> list[tuple[Path, str]]:
    """Return every file below `folder`, whose packages stand in `source`, with each module that it imports."""
    files = sorted(path for path in folder.rglob("*.py") if path != HOST / "__init__.py")
    assert files
    return [(path, name) for path in files for name in imported(path, package_of(path, source))]


def levels() -> dict[str, int]:
    return {room: number for number, row in enumerate(rows()) for room in row}


def test_every_room_has_its_row() -> None:
    assert {room_of(path) for path in host_files()} - levels().keys() == set()


def test_imports_go_down() -> None:
    level = levels()
    pairs = [(path, name.split(".")[:2]) for path, name in imports(HOST, HOST.parent) if name.startswith("hilt.")]
    assert [
        (path, other) for path, (_, other) in pairs if other != room_of(path) and level[other] <= level[room_of(path)]
    ] == []


def test_the_host_knows_only_the_boards_formats() -> None:
    formats = ("hilt_board.protocol", "hilt_board.bitfile")
    pairs = imports(HOST, HOST.parent)
    assert [pair for pair in pairs if pair[1].split(".")[0] == "hilt_board" and not pair[1].startswith(formats)] == []


EXPERIMENTS = ROOT / "experiments" / "hilt_experiments"
CALLERS_OF_EXPERIMENTS = {"cli/bench.py", "cli/dataset.py", "cli/dataset_files.py", "cli/glimpse.py"}


def test_experiments_stand_on_the_tuners_and_below() -> None:
    level = levels()
    pairs = [pair for pair in imports(EXPERIMENTS, EXPERIMENTS.parent) if pair[1].startswith("hilt.")]
    assert [(path, name) for path, name in pairs if level[name.split(".")[1]] < level["tune"]] == []


def test_hilt_imports_no_experiment_but_when_a_command_needs_it() -> None:
    importers = {
        path.relative_to(HOST).as_posix()
        for path in host_files()
        if any(name.split(".")[0] == "hilt_experiments" for name in imported(path, package_of(path, HOST.parent)))
    }
    assert importers == CALLERS_OF_EXPERIMENTS
    for caller in importers:
        for node in parsed(HOST / caller).body:
            assert not (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hilt_experiments"))


def test_the_wheel_of_hilt_holds_no_experiments() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [
        "host/hilt",
        "board/hilt_board",
        "board/hilt_runtime",
        "board/hilt_virtual_board",
    ]
    beside = tomllib.loads((EXPERIMENTS.parent / "pyproject.toml").read_text())["project"]
    version = project["project"]["version"]
    assert beside["version"] == version and f"hilt=={version}" in beside["dependencies"]
    assert project["project"]["optional-dependencies"]["experiments"] == [f"{beside['name']}=={version}"]


RUNTIME = ROOT / "board" / "hilt_runtime"


def test_the_runtime_stands_alone() -> None:
    pairs = imports(RUNTIME, RUNTIME.parent)
    assert [pair for pair in pairs if pair[1].split(".")[0] in ("hilt", "hilt_board")] == []


@pytest.mark.parametrize("folder", [BOARD, BOARD.with_name("hilt_virtual_board")], ids=lambda folder: folder.name)
def test_the_board_knows_nothing_of_the_host(folder: Path) -> None:
    assert [pair for pair in imports(folder, BOARD.parent) if pair[1].split(".")[0] == "hilt"] == []


def test_the_agent_of_a_real_board_knows_no_virtual_one() -> None:
    """Only the seam names the package, and finds none in a real board's archive."""
    assert [pair for pair in imports(BOARD, BOARD.parent) if pair[1].startswith("hilt_virtual_board")] == []
    for path in BOARD.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "HILT_CHAOS" not in text and "HILT_VERILATED" not in text, path
        assert path.name == "extension.py" or "hilt_virtual_board" not in text, path


def test_the_tuners_never_learn_where_a_trial_was_measured() -> None:
    places = ("hilt.measure", "hilt.link", "hilt.virtual", "hilt.engine")
    assert [pair for pair in imports(HOST / "tune", HOST.parent) if pair[1].startswith(places)] == []
