"""`hilt tui` without a terminal that could show it, and after a breakdown: a line and an exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hilt.engine.run_files import RunFiles
from hilt.store import StoreWriteError

from .live import UUID, make_run


def tui(home: Path, code: str = "", **changes: str) -> tuple[int, str]:
    """Exit code and all that was written, in a terminal of its own of 24 lines; `code` is run before."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    environment = inherited | {"HILT_HOME": str(home), "TERM": "xterm"} | changes
    program = f"{code}\nfrom hilt.cli.main import run\nimport sys; sys.exit(run(['tui', {UUID!r}]))"
    pid, terminal = os.forkpty()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-c", program], environment)
    written = b""
    while True:
        try:
            read = os.read(terminal, 65536)
        except OSError:  # the other side is closed
            break
        if not read:
            break
        written += read
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), " ".join(written.decode(errors="replace").split())


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"TERM": "dumb"}, "TERM is dumb"), ({"PYTHONIOENCODING": "iso8859-1"}, "encoding is iso8859-1")],
)
def test_a_terminal_that_cannot_show_it_is_refused(tmp_path: Path, changes: dict[str, str], words: str) -> None:
    make_run(tmp_path)
    code, said = tui(tmp_path, **changes)
    assert code == 2 and said.startswith("hilt: ") and words in said


def test_no_terminal_is_refused(tmp_path: Path) -> None:
    """A start without a terminal is refused.

    In a pipe, a cron job, or `docker run` without `-t`, it would write escape sequences for ever.
    """
    make_run(tmp_path)
    program = "from hilt.cli.main import run; import sys; sys.exit(run(['tui']))"
    ended = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"HILT_HOME": str(tmp_path)}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 2 and ended.stderr.startswith("hilt: `hilt tui` needs a terminal")


def test_a_break_down_is_no_success(tmp_path: Path) -> None:
    make_run(tmp_path)
    code, said = tui(
        tmp_path,
        "from hilt.tui.app import HiltApp\nHiltApp.on_run_loaded = lambda app, message: 1 / 0",
        LC_ALL="C.UTF-8",
    )
    assert code == 3 and "ZeroDivisionError" in said and "the terminal UI broke down" in said


def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    make_run(tmp_path)
    (tmp_path / "runs").write_text("in the way")
    code, said = tui(tmp_path, LC_ALL="C.UTF-8")
    assert code == 4 and "cannot be made" in said and "Traceback" not in said
    with pytest.raises(StoreWriteError, match="cannot be made"):
        RunFiles(tmp_path, UUID)
