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
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

_PLUGINS = ("pytest_asyncio.plugin", "pytest_timeout", "_hypothesis_pytestplugin")
_LIBRARIES = ("numpy", "hypothesis", "asyncssh", "paramiko", "labgrid", "rich.console", "sqlite3", *_PLUGINS)
"""Imported once by the parent. Nothing of hilt is among them: each child imports the copy that holds its mutant."""
_LINES = "lines.json"


def import_libraries() -> None:
    """Import the libraries of the tests, so that a child begins with them."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def tests_pass(
    folder: Path, tests: Sequence[str], seconds: float, processor: int = 600, traced: Path | None = None
) -> bool:
    """Return whether the tests pass in a child that imports from `folder`.

    A child fails that takes more than `seconds`, or more than `processor` seconds of processor time, as an endless
    loop does. `traced` is a source whose lines are recorded for `lines_of_tests`.
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


def lines_of_tests(folder: Path) -> dict[str, set[int]]:
    """Return the lines that each test ran, by node id, after `tests_pass` with `traced`."""
    recorded: dict[str, list[int]] = json.loads((folder / _LINES).read_text(encoding="utf-8"))
    return {name: set(lines) for name, lines in recorded.items()}


class _LineRecorder:
    """A plugin of pytest. The lines of a fixture count for every test of its file, since later tests share it."""

    def __init__(self, traced: Path) -> None:
        self._traced = str(traced)
        self._lines: set[int] = set()
        self._shared: dict[str, set[int]] = {}
        self._of_tests: dict[str, set[int]] = {}

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
        if report.when == "setup":
            self._shared.setdefault(report.nodeid.partition("::")[0], set()).update(self._lines)
        else:
            self._of_tests.setdefault(report.nodeid, set()).update(self._lines)
        self._lines.clear()

    def write(self, path: Path) -> None:
        found = {
            name: sorted(lines | self._shared.get(name.partition("::")[0], set()))
            for name, lines in self._of_tests.items()
        }
        path.write_text(json.dumps(found), encoding="utf-8")


def _run(folder: Path, tests: Sequence[str], traced: Path | None) -> None:
    status = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        os.chdir(folder)
        paths = [str(folder / "host"), str(folder / "board"), str(folder)]
        sys.path[:0] = paths
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        sys.dont_write_bytecode = True
        for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
            del sys.modules[name]
        plugins = [word for plugin in _PLUGINS for word in ("-p", plugin)]
        arguments = ["-x", "-q", "-p", "no:cacheprovider", *plugins, *tests]
        if traced is None:
            status = int(pytest.main(arguments))
        else:
            recorder = _LineRecorder(traced)
            with recorder:
                status = int(pytest.main(arguments, plugins=[recorder]))
            recorder.write(folder / _LINES)
    finally:
        os._exit(status)
