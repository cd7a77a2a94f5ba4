"""The list of mutants of the RTL, and copies of hls/ that hold one of them, or all of them to choose from."""

from __future__ import annotations

import shutil
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from hilt import paths

LIST = Path(__file__).with_name("mutants.toml")
VARIABLE = "VTA_MUTANT"
"""Environment variable: the number of the mutant that a simulation with all of them takes; 0: none."""
_CHOICE = (
    '  int mutant = $c32("std::getenv(\\"' + VARIABLE + '\\") ? std::atoi(std::getenv(\\"' + VARIABLE + '\\")) : 0");\n'
)


@dataclass(frozen=True)
class Mutant:
    """A change of one expression: in `line`, which is in `file` once, that between « and » becomes `put`."""

    number: int
    name: str
    file: str
    line: str
    put: str
    proofs: tuple[str, ...] = ()
    bench: str = "small"

    def span(self, text: str) -> tuple[int, int]:
        """Return where the expression is in the file's text.

        Raises:
            ValueError: The line is not there once.
        """
        before, expression, after = self.line.replace("»", "«").split("«")
        if text.count(before + expression + after) != 1:
            raise ValueError(f"{self.name}: {self.file} has {text.count(before + expression + after)} lines like it")
        begin = text.index(before + expression + after) + len(before)
        return begin, begin + len(expression)


def mutants() -> list[Mutant]:
    """Return the list, numbered from 1."""
    with LIST.open("rb") as file:
        entries = tomllib.load(file)["mutant"]
    return [
        Mutant(number, **entry, proofs=tuple(proofs)) for number, (entry, proofs) in enumerate(map(_split, entries), 1)
    ]


def _split(entry: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    proofs = list(entry.get("proofs", ()))
    return {name: value for name, value in entry.items() if name != "proofs"}, proofs


def mutated_rtl(mutant: Mutant, folder: Path) -> Path:
    """Return a copy of hls/rtl in `folder` with the mutant."""
    copy = Path(shutil.copytree(paths.hls_directory() / "rtl", folder / "rtl"))
    file = copy / mutant.file
    text = file.read_text()
    begin, end = mutant.span(text)
    file.write_text(f"{text[:begin]}({mutant.put}){text[end:]}")
    return copy


def with_all(chosen: list[Mutant], folder: Path) -> Path:
    """Copy hls/ to `folder` with all mutants and return the copy. VTA_MUTANT chooses one when a simulation begins."""
    copy = Path(shutil.copytree(paths.hls_directory(), folder / "hls"))
    for name in {mutant.file for mutant in chosen}:
        file = copy / "rtl" / name
        text = file.read_text()
        by_span: dict[tuple[int, int], list[Mutant]] = defaultdict(list)
        for mutant in chosen:
            if mutant.file == name:
                by_span[mutant.span(text)].append(mutant)
        for (begin, end), changes in sorted(by_span.items(), reverse=True):
            choice = f"({text[begin:end]})"
            for mutant in changes:
                choice = f"(vta_pkg::mutant == {mutant.number} ? ({mutant.put}) : {choice})"
            text = text[:begin] + choice + text[end:]
        file.write_text(text)
    package = copy / "rtl" / "vta_pkg.sv"
    package.write_text(package.read_text().replace("package vta_pkg;\n", "package vta_pkg;\n" + _CHOICE))
    return copy
