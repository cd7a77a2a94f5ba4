"""One name for each thing, in plain sentences: docs/glossary.md, held."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from .parsed import nodes, parsed

ROOT = Path(__file__).parents[2]
SOURCES = sorted(chain.from_iterable((ROOT / folder).rglob("*.py") for folder in ("host", "experiments", "board")))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]

OLD_NAMES = (
    "landscape",
    "personalit(y|ies)",
    "chassis",
    "chronicle",
    "rehearsal",
    "shelf",
    "unasked",
    "twin_guided",
    "whole_file",
    "closed_form",
    "belief",
    "opening_of",
    "struck",
    "scissors",
    "tally",
    "complain",
    "rung",
    "rungs",
    "spelled_distance",
    "put_as",
)
ALLOWED = {
    "host/hilt/measure/dataset/dataset.py": "reads the field `personality` of version 1",
    "host/hilt/measure/dataset/dataset_store.py": "moves the folder `landscapes` of version 1",
    "host/hilt/store/schema.py": "renames the board `landscape:NAME` of version 6",
    "tests/unit/measure/dataset/test_version_1.py": "the names of version 1",
    "tests/unit/test_language.py": "this list",
    "CHANGELOG.md": "says what was renamed",
    "docs/protocol.md": "the names of version 1",
}
SHARED_CLASSES = {
    "Network": "hilt_runtime.Network is its public name; schedule.Network lists layers",
}
LONGEST_SENTENCE = 35
"""Words."""
NOT_FIRST = "Of|What|As|By|Where|Who|Whose|That|Those|How|Than|To be|In the"
"""Words that begin no docstring: the subject would be missing, or come last."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_old_names_are_gone() -> None:
    old = re.compile(rf"(?i)(?<![a-z])(?:{'|'.join(OLD_NAMES)})(?![a-z])")
    paths = [path for path in (*SOURCES, *TESTS, *DOCUMENTS) if name_of(path) not in ALLOWED]
    found = {name_of(path): old.search(path.read_text(encoding="utf-8")) for path in paths}
    assert {name: match.group() for name, match in found.items() if match} == {}


@pytest.mark.slow
def test_a_class_name_means_one_thing() -> None:
    places = defaultdict(list)
    for path in SOURCES:
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):  # a module's own
                places[node.name].append(name_of(path))
    assert {name: where for name, where in places.items() if len(where) > 1 and name not in SHARED_CLASSES} == {}


def _docstrings(path: Path) -> Iterator[str]:
    for node in nodes(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


@pytest.mark.slow
def test_docstrings_begin_with_their_subject_or_verb() -> None:
    texts = [(name_of(path), text[:80]) for path in SOURCES for text in _docstrings(path)]
    assert [each for each in texts if re.match(rf"({NOT_FIRST})\b", each[1])] == []


def _sentences(document: Path) -> Iterator[str]:
    """Yield the sentences of a page, without code, tables, pictures and addresses."""
    text = document.read_text(encoding="utf-8")
    text = re.sub(r"(?ms)^( *)(```|~~~).*?^\1?\2", "", text)
    text = re.sub(r"(?m)^(\||#|    ).*$", "\n\n", text)
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    for paragraph in re.split(r"\n\s*\n|\n\s*(?:[-*>]|\d+\.)\s", text):
        yield from re.split(r"(?<=[.!?:;])\s+|\s·\s", " ".join(paragraph.split()))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_sentences_are_short(document: Path) -> None:
    long = [sentence for sentence in _sentences(document) if len(sentence.split()) > LONGEST_SENTENCE]
    assert long == []


@pytest.mark.slow
def test_check_levels_and_space_kinds_are_enums_from_end_to_end() -> None:
    """No annotation spells their values out, and none hides them as Any."""
    for path in SOURCES:
        for node in nodes(path):
            if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
                assert not {"'compiler'", "'autotvm'"} & set(ast.unparse(node.slice).strip("()").split(", ")), path
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "Any":
                assert ast.unparse(node.target) not in ("kind", "space_kind", "checks", "level"), path
