"""Trials of mutants, each in a copy of the product, so that nothing here is changed."""

from __future__ import annotations

import compileall
import math
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.mutation.choice import chosen, line_runners
from tests.mutation.mutants import Mutant
from tests.mutation.nearest import ROOT, all_tests
from tests.mutation.record import Ran, keep, read
from tests.mutation.runner import Limits, first_failure, record_lines

_RECORDING = Limits(1800.0, 600)
_PATIENCE = 3.0
"""A mutant hangs, which counts as noticed, if its tests take so many times as long, and ten seconds more.

It may be a busy machine: it hangs too if they take so many times their processor time, and ten seconds more.
"""
_COPIED = ("host", "board")
_DOUBTS = 3
"""Tests of a mutant that may fail without it."""


@dataclass(frozen=True)
class Noticed:
    """The mutants of one file that were tried, and those that no test noticed."""

    name: str
    tried: tuple[Mutant, ...]
    survivors: tuple[Mutant, ...]
    unrun: frozenset[Mutant]
    """Survivors whose line no test runs in its own process, nor a use of the global that it makes."""
    seconds: float
    doubtful: tuple[str, ...] = ()
    """Tests that failed once without any mutant, after they had passed: what they said did not count."""


def record(parent: Path, test: str) -> None:
    """Record the lines that the tests of a file run."""
    keep(test, record_lines(_copy(parent), test, _RECORDING))


@cache
def tests() -> dict[str, Ran]:
    """Return all tests that pass without any mutant, by name."""
    return {name: ran for test in all_tests() for name, ran in read(test).passed.items()}


def tried(parent: Path, name: str, mutants: Sequence[Mutant]) -> Noticed:
    """Return how the chosen tests take the mutants of a file. A mutant without tests is not noticed."""
    began = time.monotonic()
    trial = _Trial(_copy(parent), name)
    survivors = tuple(mutant for mutant in mutants if not trial.is_noticed(mutant))
    unrun = frozenset(mutant for mutant in survivors if not line_runners(name, mutant.line, tests()))
    return Noticed(name, tuple(mutants), survivors, unrun, time.monotonic() - began, tuple(sorted(trial.doubtful)))


class _Trial:
    """A copy of the product in which one file is changed."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._source = (ROOT / name).read_text(encoding="utf-8")
        self._held: set[str] = set()
        self.doubtful: set[str] = set()

    def is_noticed(self, mutant: Mutant) -> bool:
        """Return whether a test fails with a mutant that passes without it, just after."""
        names = chosen(self._name, mutant.line, tests())
        for _ in range(_DOUBTS):
            names = [test for test in names if test not in self.doubtful]
            failed = self._failure_of(mutant, names) if names else None
            if failed is None:
                return False
            if self._pass_without([failed] if failed else names):
                return True
            self.doubtful |= {failed} if failed else set(names)
        return False

    def _failure_of(self, mutant: Mutant, names: Sequence[str]) -> str | None:
        copied = self._folder / self._name
        copied.write_text(mutant.source(self._source), encoding="utf-8")
        try:
            return first_failure(self._folder, names, _limits(names))
        finally:
            copied.write_text(self._source, encoding="utf-8")

    def _pass_without(self, names: Sequence[str]) -> bool:
        """Return whether tests pass without any mutant; one that did so is not asked again."""
        if not self._held.issuperset(names):
            if first_failure(self._folder, names, _limits(names)) is not None:
                return False
            self._held.update(names)
        return True


def _limits(names: Sequence[str]) -> Limits:
    seconds = 10.0 + _PATIENCE * sum(tests()[name].seconds for name in names)
    return Limits(3 * seconds, math.ceil(seconds))


def _copy(parent: Path) -> Path:
    """Return this process's copy of the product, compiled, with links to all other files beside it."""
    folder = parent / str(os.getpid())
    if not folder.exists():
        folder.mkdir()
        for name in _COPIED:
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            compileall.compile_dir(folder / name, quiet=2)
        for other in ROOT.iterdir():
            if other.name not in _COPIED:
                (folder / other.name).symlink_to(other)
    return folder
