"""First contact with a real board.

A person at a terminal sees the fingerprint and a question; a script gets an error.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hilt.link.host_keys import HostKeys, fingerprint
from hilt.virtual.board_model import board_model
from hilt.virtual.directory import USER, BoardDirectory
from hilt.virtual.supervisor_control import SupervisorControl

COMMAND = [sys.executable, "-c", "from hilt.cli.main import main; main()", "tune", "resnet18.C5", "--board", "desk"]


@pytest.fixture
def port(hilt_home: Path) -> Iterator[int]:
    """A virtual board's SSH server, known as a real board `desk`, so that its key is a stranger's."""
    directory = BoardDirectory("pynq")
    with SupervisorControl.hold(directory, board_model("pynq")) as supervisor:
        port = supervisor.power_on().port
        assert port is not None
        (hilt_home / "boards.toml").write_text(
            f'[desk]\nhost = "127.0.0.1"\nport = {port}\nuser = "{USER}"\nkey = "{directory.client_key}"\n'
            f'python = "python3"\nsudo = false\nbitstream = "pynq"\n'
        )
        yield port


def expected_fingerprint() -> str:
    return fingerprint(BoardDirectory("pynq").host_public_key())


def test_a_script_gets_the_fingerprint_and_the_next_step(port: int) -> None:
    done = subprocess.run(COMMAND, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1 and expected_fingerprint() in done.stderr and "accept it" in done.stderr
    assert not HostKeys().of("127.0.0.1", port)


@pytest.mark.parametrize(("answer", "accepted"), [("y", True), ("n", False)])
def test_a_person_is_shown_the_fingerprint_and_asked(port: int, answer: str, accepted: bool) -> None:
    terminal, theirs = pty.openpty()
    process = subprocess.Popen(COMMAND, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = read_until(terminal, "[y/N]")
    assert expected_fingerprint() in seen
    os.write(terminal, f"{answer}\n".encode())
    read_until(terminal, None)
    process.wait(120)
    os.close(terminal)
    assert process.returncode != 0  # it has no bitstream, or no trust
    assert bool(HostKeys().of("127.0.0.1", port)) is accepted


def read_until(terminal: int, words: str | None) -> str:
    """Return the terminal's output up to these words, or until nobody writes to it any more."""
    seen = b""
    while words is None or words.encode() not in seen:
        try:
            seen += os.read(terminal, 4096)
        except OSError:
            break
    return seen.decode()
