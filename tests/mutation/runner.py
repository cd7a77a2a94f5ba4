"""Run test files in a copy of the sources: a child for each mutant, forked with the libraries already imported."""

from __future__ import annotations

import contextlib
import importlib
import os
import select
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

_PLUGINS = ("pytest_asyncio.plugin", "pytest_timeout", "_hypothesis_pytestplugin")
_LIBRARIES = ("numpy", "hypothesis", "asyncssh", "paramiko", "labgrid", "rich.console", "sqlite3", *_PLUGINS)
"""Imported once by the parent. Nothing of hilt is among them: each child imports the copy that holds its mutant."""


def import_libraries() -> None:
    """Import what the tests share, so that a child begins with it."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def tests_pass(folder: Path, tests: Sequence[str], seconds: float) -> bool:
    """Return whether the tests pass in a child that imports from `folder`; a child that outlives `seconds` fails."""
    child = os.fork()
    if child == 0:
        _run(folder, tests)
    handle = os.pidfd_open(child)
    try:
        ended, _, _ = select.select([handle], [], [], seconds)
        with contextlib.suppress(ProcessLookupError):  # the group also holds what the tests started
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    finally:
        os.close(handle)
    return bool(ended) and os.waitstatus_to_exitcode(status) == 0


def _run(folder: Path, tests: Sequence[str]) -> None:
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
        status = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *plugins, *tests]))
    finally:
        os._exit(status)
