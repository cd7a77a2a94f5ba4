"""README.md and docs/: the commands with their options, files, links and headings exist, and the code in them runs."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import typer

from hilt.cli.main import application

from .tune import conformance
from .tune.grids import Grid

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
GRID = Grid((8, 6, 6), valid_share=0.5, seed=5)
FOLDERS = ("bitstreams/", "board/", "docs/", "hls/", "host/", "tests/")


def name_of(document: Path) -> str:
    return str(document.relative_to(ROOT))


def fenced(document: Path, language: str = "") -> list[str]:
    """The blocks of code of that language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def prose(document: Path) -> str:
    return re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def commands(document: Path) -> Iterator[str]:
    """Yield every `hilt ...` of a block: after `$`, at the beginning of a line, or after a dot between several."""
    for line in "".join(fenced(document)).splitlines():
        for part in line.removeprefix("$ ").partition(" #")[0].split(" · "):
            if part.startswith("hilt "):
                yield part.strip()


def mentions(document: Path) -> Iterator[str]:
    """Return every `hilt ...` between ticks in the text, which need not be whole."""
    return (span for span in re.findall(r"`([^`]+)`", prose(document)) if re.match(r"hilt [a-z]", span))


COMMAND_LINE: Any = typer.main.get_command(application)


def found(words: list[str]) -> tuple[Any, list[str]]:
    """The command that the first words lead to, and the words after."""
    command = COMMAND_LINE
    while words and (inner := getattr(command, "commands", None)):
        if words[0].startswith(("-", "[")):
            break
        assert words[0] in inner, f"there is no command {words[0]}"
        command, words = inner[words[0]], words[1:]
    return command, words


def parse(words: list[str]) -> None:
    """Parse words like the command line, without running anything.

    Raises:
        UsageError: The command line refuses the words.
    """
    command, rest = found(words)
    command.make_context("hilt", rest)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_command_parses(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text in commands(document):
        words = shlex.split(text)[1:]
        for word in words:  # a command that reads a file wants it to be there
            if re.fullmatch(r"[\w-]+(/[\w-]+)*\.(bit|log|json|onnx|npz|toml)", word):
                (tmp_path / word).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / word).touch()
        try:
            parse(words)
        except Exception as error:  # the parser's own, whichever library it is
            pytest.fail(f"{text}: {getattr(error, 'message', error)}")


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_command_and_option_that_is_mentioned_exists(document: Path) -> None:
    for text in mentions(document):
        command, rest = found(text.split()[1:])
        options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
        for word in rest:
            assert not word.startswith("--") or word in options, f"{text}: there is no {word}"


@pytest.mark.parametrize("wrong", ["tune resnet18.C5 --boards x", "tuen x", "boards ad", "bitstream fetch", "show"])
def test_a_command_that_does_not_exist_would_be_noticed(wrong: str) -> None:
    with pytest.raises(Exception):  # noqa: B017
        parse(wrong.split())


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(document)):
        if target.startswith(("http://", "https://")):
            continue
        path, _, heading = target.partition("#")
        file = (document.parent / path).resolve() if path else document
        assert file.exists(), f"{name_of(document)} links to {target}"
        if heading and file.suffix == ".md":
            assert heading in headings(file), f"{name_of(document)} links to {target}"


def headings(document: Path) -> set[str]:
    """Return the headings of a document as GitHub's anchors."""
    lines = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_files_that_are_named_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for path, more in re.findall(r"(?<![\w/.-])((?:" + "|".join(FOLDERS) + r")[\w./*-]+)([{<]?)", text):
        path = path.rstrip(".") + ("*" if more else "")  # rtl_{device,run}.cpp
        there = any(ROOT.glob(path)) if "*" in path else (ROOT / path).exists()
        assert there, f"{name_of(document)} names {path}"


def test_every_picture_that_is_made_is_shown() -> None:
    made = re.findall(r"\w[\w-]*\.(?:svg|png)", (ROOT / "docs" / "pictures" / "make.py").read_text(encoding="utf-8"))
    shown = "".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    assert len(made) >= 5
    assert [name for name in made if f"pictures/{name})" not in shown] == []


TEXTS = [
    *DOCUMENTS,
    *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile", "pyproject.toml")),
]


@pytest.mark.parametrize("document", TEXTS, ids=name_of)
def test_no_document_holds_both_sides_of_a_merge(document: Path) -> None:
    assert not re.findall(r"^(?:<<<<<<<|>>>>>>>|\|\|\|\|\|\|\|)", document.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("document", [each for each in DOCUMENTS if each.name != "README.md"], ids=name_of)
def test_every_document_is_on_the_map(document: Path) -> None:
    listed = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert f"({document.relative_to(ROOT / 'docs')})" in listed


def test_the_tuner_of_the_how_to_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "\n".join(fenced(ROOT / "docs" / "how-to" / "new-tuner.md", "python"))
    module: Any = ModuleType("the_how_to")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, "docs/how-to/new-tuner.md", "exec"), module.__dict__)
    problem = SimpleNamespace(compiles=np.ones(len(GRID), dtype=bool))

    def search(seed: int) -> list[int]:
        tuner = module.NearbyTuner(problem, seed, module.NearbyOptions())
        return [each.index for each in conformance.run(tuner, 60, 8, GRID.measure)]

    asked = search(1)
    assert len(set(asked)) == 60 and asked == search(1) != search(2)
