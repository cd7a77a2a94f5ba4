"""Which lines of the product each test runs: recorded once, and again for a test file whose sources have changed."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "mutation"
_CALLS = 400
"""Calls of a function that are followed in a test: of a line that only a later one reaches, the test is not known."""


@dataclass(frozen=True)
class Ran:
    """A test that passed without any mutant."""

    seconds: float
    lines: Mapping[str, int]
    """By source file: bit n is set if the test ran line n."""

    def ran(self, name: str, lines: Iterable[int]) -> bool:
        """Return whether it ran one of some lines of a file."""
        of_file = self.lines.get(name, 0)
        return any(of_file >> line & 1 for line in lines)


@dataclass(frozen=True)
class Record:
    """The tests of one test file, without any mutant."""

    passed: Mapping[str, Ran]
    failed: tuple[str, ...]
    """Failed or skipped: they notice nothing."""


def stale(tests: Iterable[str]) -> list[str]:
    """Return the test files without a record of themselves and of all sources that they ran, as they now are."""
    return [test for test in tests if not _is_fresh(_path(test))]


def _is_fresh(record: Path) -> bool:
    if not record.is_file():
        return False
    return all(_digest(name) == digest for name, digest in json.loads(record.read_text())["digests"].items())


@cache
def _digest(name: str) -> str:
    path = ROOT / name
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def read(test: str) -> Record:
    """Return the record of a test file."""
    stored = json.loads(_path(test).read_text())
    passed = {
        each["name"]: Ran(each["seconds"], {name: int(lines, 16) for name, lines in each["lines"].items()})
        for each in stored["tests"]
        if each["passed"]
    }
    return Record(passed, tuple(each["name"] for each in stored["tests"] if not each["passed"]))


def keep(test: str, recorded: Path) -> None:
    """Store the lines of a `LineRecorder` for a test file, with the digests of the sources."""
    lines = recorded.read_text().splitlines() if recorded.exists() else []
    tests: list[dict[str, Any]] = [json.loads(line) for line in lines]
    sources = {name for each in tests for name in [*each["lines"], *each.pop("helpers")]} | {test}
    FOLDER.mkdir(parents=True, exist_ok=True)
    stored = {"digests": {name: _digest(name) for name in sorted(sources)}, "tests": tests}
    _path(test).write_text(json.dumps(stored))


def _path(test: str) -> Path:
    return FOLDER / (test.replace("/", ".") + ".json")


class Stopwatch:
    """A plugin of pytest: how long each test takes, which a `LineRecorder` slows several times."""

    def __init__(self, seconds: Path) -> None:
        self._path = seconds
        self._seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(json.dumps(self._seconds))


def forget_results(folder: str) -> None:
    """Empty the caches of all functions in the modules below a folder, so that each test runs their lines itself."""
    for module in list(sys.modules.values()):
        if (getattr(module, "__file__", None) or "").startswith(folder):
            for function in _cached(module):
                function.cache_clear()


_CACHED = type(cache(int))


def _cached(module: ModuleType) -> Iterator[Any]:
    """Yield the functions and methods of a module whose results are cached."""
    values = list(vars(module).values())
    for owner in [module, *(value for value in values if isinstance(value, type))]:
        for value in list(vars(owner).values()):
            function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if isinstance(function, _CACHED):
                yield function


class LineRecorder:
    """A plugin of pytest. The lines of a fixture count for every test of its file, since later tests share it.

    Results that a function caches are forgotten before each test: else the lines behind them were the first test's.
    """

    def __init__(self, folder: Path, record: Path, seconds: Mapping[str, float]) -> None:
        """Take the seconds of each test by itself; of one that is not among them its own are taken."""
        self._folders = (f"{folder}/", f"{ROOT}/")
        self._names: dict[str, str] = {}
        self._record = record
        self._lines: dict[CodeType, set[int]] = {}
        self._calls: dict[CodeType, int] = {}
        self._shared: dict[str, int] = {}
        self._of_test: dict[str, int] = {}
        self._passed = True
        self._undisturbed = seconds
        self._seconds = 0.0

    def __enter__(self) -> None:
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        name = self._names.get(code.co_filename)
        if name is None:
            name = self._names[code.co_filename] = self._name(code.co_filename)
        if not name:
            return None
        self._lines.setdefault(code, set()).add(frame.f_lineno)
        calls = self._calls[code] = self._calls.get(code, 0) + 1
        return None if calls > _CALLS or name.startswith("tests/") else self._trace_line

    def _name(self, path: str) -> str:
        """Return the name of a source below the root, empty of another."""
        below = [path.removeprefix(folder) for folder in self._folders if path.startswith(folder)]
        return below[0] if below and not below[0].startswith("build/") else ""

    def _trace_line(self, frame: FrameType, event: str, argument: object) -> Any:
        self._lines.setdefault(frame.f_code, set()).add(frame.f_lineno)
        return self._trace_line

    def pytest_collection_finish(self) -> None:
        """Forget the lines of the import: they are no test's."""
        self._lines.clear()

    def pytest_runtest_logstart(self) -> None:
        forget_results(self._folders[0])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        into = self._shared if report.when == "setup" else self._of_test
        for name, lines in self._run_lines().items():
            into[name] = into.get(name, 0) | lines
        self._passed = self._passed and report.passed
        self._seconds += report.duration
        if report.when == "teardown":
            self._write(report.nodeid)

    def _run_lines(self) -> dict[str, int]:
        """Return the lines since the last call, by source file."""
        found: dict[str, int] = {}
        for code, lines in list(self._lines.items()):
            name = self._names[code.co_filename]
            found[name] = found.get(name, 0) | sum(1 << line for line in lines if line)
        self._lines, self._calls = {}, {}
        return found

    def _write(self, name: str) -> None:
        of_test = {
            each: self._of_test.get(each, 0) | self._shared.get(each, 0) for each in self._of_test | self._shared
        }
        product = {each: f"{lines:x}" for each, lines in of_test.items() if not each.startswith("tests/")}
        test = {
            "name": name,
            "passed": self._passed,
            "seconds": self._undisturbed.get(name, self._seconds),
            "lines": product,
            "helpers": sorted(of_test.keys() - product.keys()),
        }
        with self._record.open("a", encoding="utf-8") as record:
            record.write(json.dumps(test) + "\n")
        self._of_test, self._passed, self._seconds = {}, True, 0.0
