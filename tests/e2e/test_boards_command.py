"""`hilt boards`: a virtual board's SSH server added as if it were a board on the desk; checked, switched, released."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hilt.bitstreams import UnknownBitstreamError
from hilt.cli import host_keys
from hilt.cli.main import application
from hilt.cli.main import run as hilt
from hilt.link.agent import AgentConnection
from hilt.link.board_registry import registered_boards
from hilt.link.deadline import Deadline
from hilt.link.errors import BoardFileError, UnknownHostKeyError
from hilt.link.host_keys import HostKeys
from hilt.link.quarantine import quarantine
from hilt.measure.board_description import VirtualTarget
from hilt.measure.connection import who
from hilt.measure.doctor import Finding, check_board
from hilt.virtual.board_model import board_model
from hilt.virtual.directory import BoardDirectory
from hilt.virtual.supervisor_control import SupervisorControl


@pytest.fixture
def supervisor(hilt_home: Path) -> Iterator[SupervisorControl]:
    with SupervisorControl.hold(BoardDirectory("pynq"), board_model("pynq")) as control:
        yield control


def add(supervisor: SupervisorControl, *more: str) -> int:
    status, directory = supervisor.power_on(), supervisor.directory
    address = f"xilinx@127.0.0.1:{status.port}"
    words = ["--key", str(directory.client_key), "--python", "python3", "--no-sudo"]
    return hilt(["boards", "add", "desk", address, "--bitstream", "pynq", *words, *more])


def test_a_board_is_added_when_its_fingerprint_is_accepted(
    supervisor: SupervisorControl, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Nobody at the terminal: its key is not taken, and nothing of the board stays.
    assert add(supervisor) == 3
    said = capsys.readouterr().err
    assert "SHA256:" in said and "is not known" in said
    assert registered_boards() == {} and HostKeys().of("127.0.0.1", supervisor.status().port or 0) == []

    monkeypatch.setattr(host_keys.sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(host_keys.sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(host_keys.typer, "confirm", lambda *_, **__: True)
    assert add(supervisor) == 0
    assert "SHA256:" in capsys.readouterr().err
    assert registered_boards()["desk"].endpoint.port == supervisor.status().port
    assert add(supervisor) == 2  # it is there already
    assert "there is a board desk" in capsys.readouterr().err

    assert hilt(["boards", "check", "desk", "--json"]) == 3
    findings = {each["what"]: each for each in json.loads(capsys.readouterr().out)["items"]}
    assert all(findings[name]["well"] for name in ("SSH", "Python", "agent", "pynq", "memory", "disk"))
    assert "device virtual:pynq" in findings["pynq"]["found"]
    # The file is not ours to ship.
    assert not findings["bitstream"]["well"] and "hilt bitstream fetch" in findings["bitstream"]["mend"]

    assert hilt(["boards", "logs", "desk"]) == 0

    assert hilt(["boards", "power", "off", "desk"]) == 3
    assert "has no power switch" in capsys.readouterr().err
    python, home = shlex.quote(sys.executable), Path(str(registered_boards()["desk"].endpoint.key_file)).parents[1]
    switch = f"{python} -m hilt.virtual pynq --power"
    with (home / "boards.toml").open("a") as file:
        commands = ", ".join(f"cmd_{action} = {json.dumps(f'{switch} {action}')}" for action in ("on", "off", "cycle"))
        file.write(f"[desk.power.drivers]\nExternalPowerDriver = {{ {commands} }}\n")
    before = supervisor.status()
    assert hilt(["boards", "power", "off", "desk"]) == 0
    assert supervisor.status().power == "off"
    assert hilt(["boards", "power", "cycle", "desk"]) == 0
    assert supervisor.status().power == "on" and supervisor.status().boot_id != before.boot_id


def test_a_check_runs_the_canary_and_names_the_fault(hilt_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = VirtualTarget("virtual:pynq", form="golden")
    findings = {each.what: each for each in check_board(target)}
    assert [each for each in findings.values() if not each.well] == []
    assert list(findings)[-3:] == ["bitstream", "clock", "canary"]
    assert findings["clock"].found == "100 MHz"

    quarantine("virtual:pynq", "its fan died")
    first = next(iter(check_board(target)))
    assert first == Finding("quarantine", False, "its fan died", first.mend) and "hilt boards release" in first.mend

    other = VirtualTarget("virtual:pynq_batched@pynq_batched", form="golden")
    monkeypatch.setattr(target, "bitstream", other.bitstream)
    wrong = list(check_board(target))[-1]
    assert (wrong.what, wrong.well) == ("device", False) and "identity_mismatch" in wrong.found
    target.release()


def test_a_quarantined_board_is_listed_and_released(hilt_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quarantine("virtual:pynq@desk", "its canary failed")
    assert hilt(["boards"]) == 0
    assert "virtual:pynq@desk is quarantined: its canary failed" in capsys.readouterr().out
    assert hilt(["boards", "--json"]) == 0
    listed = {each["board"]: each["quarantined"] for each in json.loads(capsys.readouterr().out)["items"]}
    assert listed["virtual:pynq@desk"] == "its canary failed" and listed["virtual:pynq"] is None
    assert hilt(["boards", "release", "virtual:pynq@desk"]) == 0
    assert capsys.readouterr().out == "virtual:pynq@desk is released\n"


def test_a_release_ends_the_lease_of_a_process_that_has_ended_and_of_no_other(
    hilt_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hilt(["boards", "release", "virtual:pynq"]) == 0
    assert capsys.readouterr().out == "virtual:pynq is free: it was not quarantined, and nothing held it\n"
    target = VirtualTarget("virtual:pynq", form="golden")
    another = f"hilt of ann@{socket.gethostname()}, process {os.getppid()}"
    with AgentConnection.open(target.endpoint(), another, Deadline(60)) as alive:
        assert hilt(["boards", "release", "virtual:pynq"]) == 3
        assert f"is in use by {another}: wait, or stop that session" in capsys.readouterr().err
        alive.client.status(Deadline(60))
    elsewhere = "hilt of ann@another-computer, process 1"
    with AgentConnection.open(target.endpoint(), elsewhere, Deadline(60)):
        assert hilt(["boards", "release", "virtual:pynq"]) == 3
    ended = subprocess.Popen(["true"])
    ended.wait()
    holder = f"hilt of ann@{socket.gethostname()}, process {ended.pid}"
    with AgentConnection.open(target.endpoint(), holder, Deadline(60)):
        assert hilt(["boards", "release", "virtual:pynq"]) == 0
        assert f"virtual:pynq is released: {holder}, which held it, has ended\n" in capsys.readouterr().out
        AgentConnection.open(target.endpoint(), who(), Deadline(60)).close()
    target.release()
    assert hilt(["boards", "release", "virtual:sold"]) == 2


def test_a_quarantined_board_that_is_no_more_hides_no_other(
    hilt_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quarantine("desk", "its canary failed")  # and was then taken out of boards.toml
    quarantine("virtual:sold", "its fan died")
    assert hilt(["boards"]) == 0
    said = capsys.readouterr().out
    assert "virtual:pynq " in said and "desk is quarantined: its canary failed" in said and "virtual:sold is" in said
    assert hilt(["boards", "--json"]) == 0
    assert "virtual:pynq" in {each["board"] for each in json.loads(capsys.readouterr().out)["items"]}
    assert hilt(["boards", "release", "desk"]) == hilt(["boards", "release", "virtual:sold"]) == 0


def test_an_impossible_addition_is_refused_before_anything_is_written(hilt_home: Path) -> None:
    for words, error in (
        (["desk", "xilinx@host", "--bitstream", "nonsense"], UnknownBitstreamError),
        (["a b", "xilinx@host", "--bitstream", "pynq"], BoardFileError),
        (["desk", "xilinx@ho st", "--bitstream", "pynq"], BoardFileError),
    ):
        with pytest.raises(error):
            application(["boards", "add", *words], standalone_mode=False)
    assert hilt(["boards", "add", "desk", "no-user", "--bitstream", "pynq"]) == 2
    assert registered_boards() == {}
    assert UnknownHostKeyError.permanent
