"""Run tests in a copy of the sources: a child for each mutant, forked with the libraries already imported."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import select
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

_PLUGINS = ("pytest_asyncio.plugin", "pytest_timeout", "_hypothesis_pytestplugin")
_LIBRARIES = ("numpy", "hypothesis", "asyncssh", "paramiko", "labgrid", "rich.console", "sqlite3", *_PLUGINS)
"""Imported once by the parent. Nothing of hilt is among them: each child imports the copy that holds its mutant."""
_RECORD = "tests.jsonl"


def import_libraries() -> None:
    """Import the libraries of the tests, so that a child begins with them."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


@dataclass(frozen=True)
class Ran:
    """A test that passed without any mutant."""

    lines: frozenset[int]
    """The lines of the traced source that it ran."""
    seconds: float


def passing_tests(folder: Path, tests: Sequence[str], seconds: float, traced: Path) -> tuple[dict[str, Ran], list[str]]:
    """Run all tests of some files in a child that imports from `folder`; return those that passed, and the others.

    The child is ended after so many seconds of processor time, or ten times as many: the tests that came before count.
    """
    record = folder / _RECORD
    record.unlink(missing_ok=True)
    tests_pass(folder, tests, 10 * seconds, int(seconds), traced)
    passed: dict[str, Ran] = {}
    others: list[str] = []
    for line in record.read_text(encoding="utf-8").splitlines() if record.exists() else []:
        test = json.loads(line)
        if test["passed"]:
            passed[test["name"]] = Ran(frozenset(test["lines"]), test["seconds"])
        else:
            others.append(test["name"])
    return passed, others


def tests_pass(
    folder: Path, tests: Sequence[str], seconds: float, processor: int = 600, traced: Path | None = None
) -> bool:
    """Return whether the tests pass in a child that imports from `folder`; the first that fails ends it.

    A child fails that takes more than `seconds`, or more than `processor` seconds of processor time, as an endless
    loop does. `traced` is a source whose lines are recorded for `passing_tests`; then no failure ends the child.
    """
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (processor, processor))
        _run(folder, tests, traced)
    handle = os.pidfd_open(child)
    try:
        ended, _, _ = select.select([handle], [], [], seconds)
        with contextlib.suppress(ProcessLookupError):  # the group also holds the processes that the tests started
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    finally:
        os.close(handle)
    return bool(ended) and os.waitstatus_to_exitcode(status) == 0


class _LineRecorder:
    """A plugin of pytest. The lines of a fixture count for every test of its file, since later tests share it."""

    def __init__(self, traced: Path, record: Path) -> None:
        self._traced = str(traced)
        self._record = record
        self._lines: set[int] = set()
        self._shared: dict[str, set[int]] = {}
        self._of_test: set[int] = set()
        self._passed = True
        self._seconds = 0.0

    def __enter__(self) -> None:
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename != self._traced:
            return None
        self._lines.add(frame.f_lineno)
        return self._trace

    def pytest_collection_finish(self) -> None:
        """Forget the lines of the import: they are no test's."""
        self._lines.clear()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        shared = self._shared.setdefault(report.nodeid.partition("::")[0], set())
        (shared if report.when == "setup" else self._of_test).update(self._lines)
        self._lines.clear()
        self._passed = self._passed and report.passed
        self._seconds += report.duration
        if report.when == "teardown":
            self._write(report.nodeid, shared)

    def _write(self, name: str, shared: set[int]) -> None:
        lines = sorted(self._of_test | shared)
        test = {"name": name, "lines": lines, "passed": self._passed, "seconds": self._seconds}
        with self._record.open("a", encoding="utf-8") as record:
            record.write(json.dumps(test) + "\n")
        self._of_test, self._passed, self._seconds = set(), True, 0.0


def _run(folder: Path, tests: Sequence[str], traced: Path | None) -> None:
    status = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        os.chdir(folder)
        paths = [str(folder / "host"), str(folder / "board"), str(folder / "experiments"), str(folder)]
        sys.path[:0] = paths
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        sys.dont_write_bytecode = True
        for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
            del sys.modules[name]
        _without_deadlines()
        plugins = [word for plugin in _PLUGINS for word in ("-p", plugin)]
        arguments = ["-q", "-p", "no:cacheprovider", *plugins, *tests]
        if traced is None:
            status = int(pytest.main(["-x", *arguments]))
        else:
            recorder = _LineRecorder(traced, folder / _RECORD)
            with recorder:
                status = int(pytest.main(["--continue-on-collection-errors", *arguments], plugins=[recorder]))
    finally:
        os._exit(status)


def _without_deadlines() -> None:
    """Let hypothesis wait for examples, which tracing slows, and draw the same ones with and without a mutant."""
    with contextlib.suppress(ImportError):
        from hypothesis import HealthCheck, settings

        settings.register_profile("mutation", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
        settings.load_profile("mutation")
