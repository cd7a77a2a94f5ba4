"""The Python environment of virtual boards: pynq with numpy<2, which the host's own environment cannot hold.

A clone has it after `make setup`, HILT_BOARD_PYTHON may name another, and elsewhere it is made in HILT_CACHE.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from hilt import paths
from hilt.virtual.errors import VirtualBoardError

REQUIREMENT = "pynq==4.0.0"
_CHECK = "import numpy, pynq"
_INSTALL_SECONDS = 1800.0

Report = Callable[[str], None]


def ensure(report: Report) -> Path:
    """Return the interpreter of the virtual boards, and make its environment in HILT_CACHE if there is none.

    Args:
        report: Called with a short text before each step that takes more than a second.

    Raises:
        VirtualBoardError: HILT_BOARD_PYTHON names no interpreter with pynq, or the installation failed.
    """
    python = paths.board_python()
    if python == paths.cached_board_python():
        _make(python.parent.parent, report)
    elif not os.access(python, os.X_OK):
        raise VirtualBoardError(
            f"HILT_BOARD_PYTHON is {python}, which is not an interpreter; "
            f"name one that imports pynq, or unset it and hilt makes one"
        )
    elif (failure := _run([str(python), "-c", _CHECK])) is not None:
        raise VirtualBoardError(
            f"{python} (HILT_BOARD_PYTHON) does not import pynq: {failure}; "
            f"run `{python} -m pip install {REQUIREMENT}`, or unset it and hilt makes an environment"
        )
    return python


def _make(folder: Path, report: Report) -> None:
    """Make the environment, once for all processes. A stamp tells a complete one from an interrupted one."""
    stamp = folder / f".ready-{REQUIREMENT}"
    if stamp.is_file():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.is_file():
            return
        shutil.rmtree(folder, ignore_errors=True)
        report(f"making the virtual boards' Python environment in {folder} (once, a minute or two)")
        for command in _commands(folder):
            report(f"running {' '.join(command[-2:])}")
            if (failure := _run(command)) is not None:
                raise VirtualBoardError(
                    f"the virtual boards' environment {folder} cannot be made: {failure}; "
                    f"make one with {REQUIREMENT} yourself and name its interpreter in HILT_BOARD_PYTHON"
                )
        stamp.touch()


def _commands(folder: Path) -> list[list[str]]:
    python = str(folder / "bin" / "python")
    if uv := shutil.which("uv"):
        return [
            [uv, "venv", "--quiet", "--python", sys.executable, str(folder)],
            [uv, "pip", "install", "--quiet", "--python", python, REQUIREMENT],
        ]
    return [
        [sys.executable, "-m", "venv", str(folder)],
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", REQUIREMENT],
    ]


def _run(command: list[str]) -> str | None:
    """Return the last line that a failing command wrote, or None if it succeeded."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        completed = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_INSTALL_SECONDS, env=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if completed.returncode == 0:
        return None
    lines = (completed.stderr or completed.stdout).strip().splitlines()
    return lines[-1] if lines else f"exit code {completed.returncode}"
