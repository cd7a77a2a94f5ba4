"""`start` meets a daemon that runs already: one of another version makes way, unless somebody uses it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hilt_board import commands
from hilt_board.home import Home, open_home
from hilt_board.protocol import PROTOCOL_VERSION
from hilt_board.service import unit_text

_STATUS = {
    "type": "status_report", "id": 1, "state": "ready", "bitstream": None, "worker": None, "worker_restarts": 0,
    "trials": 0, "unacknowledged": 0, "agent": "e" * 64, "free_bytes": 1, "uptime_seconds": 1.0,
}  # fmt: skip
_DAEMON = """
import fcntl, json, os, sys
from hilt_board.home import open_home
from hilt_board.protocol import Frame, encode_frame
from hilt_board.unix_socket import listen
home = open_home()
lock = os.open(str(home.process), os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(lock, fcntl.LOCK_EX)
os.write(lock, json.dumps({"pid": os.getpid()}).encode())
listening = listen(home)
listening.setblocking(True)
print("ready", flush=True)
version = int(sys.argv[2])
report = encode_frame(Frame(json.loads(sys.argv[1])), version)
refusal = encode_frame(Frame({"type": "failure", "id": 0, "code": "bad_message", "message": "version"}), version)
while True:
    connection = listening.accept()[0]
    asked = connection.recv(4096)
    connection.sendall(report if asked[4:6] == version.to_bytes(2, "little") else refusal)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("HILT_AGENT_HOME", str(tmp_path / "agent"))
    return open_home()


@contextmanager
def daemon(report: dict[str, Any], protocol: int = PROTOCOL_VERSION) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the agent's lock and answers whatever it is asked with `report`."""
    words = [sys.executable, "-c", _DAEMON, json.dumps(report), str(protocol)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("fields", [{"novelty": 1}, {"uptime_seconds": "long"}])
def test_another_version_that_nobody_uses_is_ended(home: Home, fields: dict[str, Any]) -> None:
    """Also one whose report this version cannot read."""
    with daemon({**_STATUS, "holder": None, **fields}) as running:
        assert commands._same_agent_answers(home) is False
        assert running.wait(60) != 0


@pytest.mark.parametrize("fields", [{}, {"novelty": 1}])
def test_another_version_in_use_stays_and_the_exit_code_says_so(
    home: Home, fields: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with daemon({**_STATUS, "holder": "ann", **fields}) as running:
        assert commands.main(["start"]) == 3
        assert running.poll() is None
    assert capsys.readouterr().err == "hilt agent: another version of the agent runs and is in use by ann\n"


def test_a_python_without_pynq_is_said_before_anything_runs(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A daemon whose worker cannot import pynq would be restarted, and its board rebooted and put in quarantine."""
    monkeypatch.setattr(commands.importlib.util, "find_spec", lambda name: None if name == "pynq" else name)
    assert commands.main(["start"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"hilt agent: {sys.executable} has no pynq: set `python` of the board")
    assert not home.log.exists()


def test_a_daemon_that_finds_another_is_not_started_again_by_systemd(home: Home) -> None:
    """A daemon that finds another is not started again by systemd.

    After a kill of the service's daemon, or at boot, a client's `start` may be faster than systemd.
    """
    unit = unit_text("/usr/bin/python3", "/srv/hilt/agent.pyz", "/srv/hilt", "/usr")
    with daemon({**_STATUS, "holder": "ann"}) as running:
        assert f"RestartPreventExitStatus={commands.main(['daemon'])}\n" in unit
        assert running.poll() is None


def test_another_protocol_is_one_clear_line(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    with daemon({**_STATUS, "holder": None}, 99) as running:
        for command in ("start", "status"):
            assert commands.main([command]) == 1
        assert running.poll() is None
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and all("version 99" in line and "another version" in line for line in lines)


def test_an_agent_of_protocol_version_1_is_asked_in_its_version_and_replaced(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its status report has the names `agent` and `holder`, as every version's."""
    with daemon({**_STATUS, "holder": None}, 1) as running:
        assert commands._same_agent_answers(home) is False
        assert running.wait(60) != 0
    assert capsys.readouterr().out == "replaced agent eeeeeeeeeeee of another version\n"


def test_an_agent_of_protocol_version_1_in_use_stays(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    with daemon({**_STATUS, "holder": "ann"}, 1) as running:
        assert commands.main(["start"]) == 3
        assert running.poll() is None
    assert capsys.readouterr().err == "hilt agent: another version of the agent runs and is in use by ann\n"
