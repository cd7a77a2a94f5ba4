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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.mutation.record import LineRecorder, Stopwatch

PLUGINS = ("pytest_asyncio.plugin", "pytest_timeout", "_hypothesis_pytestplugin", "syrupy", "pytest_textual_snapshot")
"""Plugins of pytest that the tests need: without one of them its tests fail, and notice nothing."""
_LIBRARIES = ("numpy", "hypothesis", "asyncssh", "paramiko", "labgrid", "rich.console", "sqlite3", "onnx", *PLUGINS)
"""Imported once by the parent. Nothing of hilt is among them: each child imports the copy that holds its mutant."""
_FAILED = "failed.txt"


def import_libraries() -> None:
    """Import the libraries of the tests, so that a child begins with them."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


@dataclass(frozen=True)
class Limits:
    """A child hangs that takes more seconds, or more of processor time, as an endless loop does."""

    seconds: float
    processor: int


def record_lines(folder: Path, test: str, limits: Limits) -> Path:
    """Run all tests of a file in two children that import from `folder`, and return what a `LineRecorder` wrote.

    It holds the tests that ended within the limits. The first child has nothing to slow it, and tells their seconds.
    """
    record, seconds = folder / "tests.jsonl", folder / "seconds.json"
    for path in (record, seconds):
        path.unlink(missing_ok=True)
    _passes(folder, [test], limits, Stopwatch(seconds))
    taken = json.loads(seconds.read_text()) if seconds.exists() else {}
    _passes(folder, [test], limits, LineRecorder(folder, record, taken))
    return record


def first_failure(folder: Path, tests: Sequence[str], limits: Limits) -> str | None:
    """Return the first test that fails in a child that imports from `folder`, None if all pass.

    It is empty if the child did not come to say so: it hung, died or could not import a test.
    """
    failed = folder / _FAILED
    failed.unlink(missing_ok=True)
    if _passes(folder, tests, limits):
        return None
    return failed.read_text(encoding="utf-8") if failed.exists() else ""


def _passes(
    folder: Path, tests: Sequence[str], limits: Limits, recorder: LineRecorder | Stopwatch | None = None
) -> bool:
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (limits.processor, limits.processor))
        _run(folder, tests, recorder)
    handle = os.pidfd_open(child)
    try:
        ended, _, _ = select.select([handle], [], [], limits.seconds)
        with contextlib.suppress(ProcessLookupError):  # the group also holds the processes that the tests started
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    finally:
        os.close(handle)
    return bool(ended) and os.waitstatus_to_exitcode(status) == 0


class _FailureNote:
    """A plugin of pytest that writes down the first test that fails."""

    def __init__(self, note: Path) -> None:
        self._note = note

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self._note.exists():
            self._note.write_text(report.nodeid, encoding="utf-8")


def _run(folder: Path, tests: Sequence[str], recorder: LineRecorder | Stopwatch | None) -> None:
    status = 1
    try:
        os.setsid()
        # A shell's background jobs ignore Ctrl-C, and tests send it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
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
        _settle_hypothesis()
        plugins = [word for plugin in PLUGINS for word in ("-p", plugin)]
        arguments = ["-q", "-p", "no:cacheprovider", *plugins, *tests]
        if recorder is None:
            status = int(pytest.main(["-x", *arguments], plugins=[_FailureNote(folder / _FAILED)]))
        else:
            with recorder if isinstance(recorder, LineRecorder) else contextlib.nullcontext():
                status = int(pytest.main(["--continue-on-collection-errors", *arguments], plugins=[recorder]))
    finally:
        os._exit(status)


def _settle_hypothesis() -> None:
    """Let hypothesis wait for examples, which tracing slows, and draw the same ones with and without a mutant.

    The profile of tests/conftest.py, which comes later, begins with this one's settings.
    """
    with contextlib.suppress(ImportError):
        from hypothesis import HealthCheck, settings

        settings.register_profile("mutation", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
        settings.load_profile("mutation")
