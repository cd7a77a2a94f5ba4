"""`python -m hilt.virtual`: a board on the network while it runs, its power switch, and a supervisor that stays."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hilt.virtual import __main__ as command
from hilt.virtual.directory import BoardDirectory
from hilt.virtual.errors import VirtualBoardError


class Held:
    """A supervisor that is held: it notes each request."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.did: list[str] = []
        self.directory: Any = None
        self.fails = False
        for name in ("switch_on", "power_off", "power_cycle"):
            monkeypatch.setitem(
                command.SWITCHES, name.rpartition("_")[2], lambda held, name=name: held.did.append(name)
            )
        monkeypatch.setattr(command.SupervisorControl, "hold", self._hold)

    def _hold(self, directory: BoardDirectory, model: Any) -> Held:
        if self.fails:
            raise VirtualBoardError("it is in use")
        self.directory = directory
        self.did.append(f"hold {directory.name} {model.name}")
        return self

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.did.append("leave")

    def power_on(self) -> Any:
        self.did.append("power_on")
        return SimpleNamespace(port=2222)


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Held:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", io.StringIO("anything\n"))
    return Held(monkeypatch)


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["hilt.virtual", *words])
    command.main()


def test_a_board_is_on_until_the_end_of_input(
    held: Held, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "pynq@desk")
    assert held.did == ["hold desk pynq", "power_on", "leave"]
    assert sys.stdin.read() == ""
    key = held.directory.client_key
    assert capsys.readouterr().out == (
        f"virtual board desk is on until end of input (Ctrl-D)\nssh -p 2222 -i {key} xilinx@127.0.0.1 COMMAND\n"
    )
    assert key.exists() and json.loads(held.directory.board_model.read_text())["name"] == "virtual:pynq"
    assert not (held.directory.chaos / "settings.json").exists()


@pytest.mark.parametrize(("switch", "did"), [("on", "switch_on"), ("off", "power_off"), ("cycle", "power_cycle")])
def test_its_power_switch_is_worked(held: Held, monkeypatch: pytest.MonkeyPatch, switch: str, did: str) -> None:
    run(monkeypatch, "pynq", "--power", switch)
    assert held.did == ["hold pynq pynq", did, "leave"]


def test_the_faults_that_its_name_asks_for_are_written_down(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, "pynq?rate=0.5&kinds=hang", "--power", "on")
    written = json.loads((held.directory.chaos / "settings.json").read_text())
    assert (written["rate"], written["kinds"]) == (0.5, ["hang"])


def test_an_error_is_a_line(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    held.fails = True
    with pytest.raises(SystemExit, match="it is in use"):
        run(monkeypatch, "pynq")
    with pytest.raises(SystemExit, match="did you mean virtual:pynq"):
        run(monkeypatch, "pinq")


@pytest.mark.parametrize(("words", "seconds"), [([], 60.0), (["--idle-seconds", "2.5"], 2.5)])
def test_a_detached_supervisor_gets_its_patience(
    held: Held, monkeypatch: pytest.MonkeyPatch, words: list[str], seconds: float
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(command, "_detach", lambda directory, *rest: given.append((directory.name, *rest)))
    run(monkeypatch, "pynq", "--detach", *words)
    assert given == [("pynq", seconds, "")] and held.did == []


class EndedError(Exception):
    """The end of a process."""


@pytest.mark.parametrize("said", [b"ready", b"", b"read"])
def test_who_starts_a_supervisor_waits_until_it_listens(
    held: Held, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: bytes
) -> None:
    reading, writing = os.pipe()
    os.write(writing, said)
    fakes = {"pipe": lambda: (reading, writing), "fork": lambda: 17}
    monkeypatch.setattr(command, "os", SimpleNamespace(**{**vars(os), **fakes}))
    directory = BoardDirectory("pynq")
    if said == b"ready":
        command._detach(directory, 5.0, "")
        return
    with pytest.raises(SystemExit, match=f"the supervisor died at its start; see {directory.log}"):
        command._detach(directory, 5.0, "")


def test_a_supervisor_that_stays_is_a_session_of_its_own_and_says_when_it_listens(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    did: list[Any] = []

    def end(code: int) -> None:
        did.append(code)
        raise EndedError

    def serve(directory: BoardDirectory, seconds: float, ready: Any, computer: str) -> None:
        did.append((directory.name, seconds, computer))
        ready()

    kept = os.dup(reading)
    fakes = {
        **{"pipe": lambda: (reading, writing), "fork": lambda: 0, "_exit": end},
        **{"setsid": lambda: did.append("session")},
    }
    monkeypatch.setattr(command, "os", SimpleNamespace(**{**vars(os), **fakes}))
    monkeypatch.setattr(command, "_write_to", lambda directory: did.append("log"))
    monkeypatch.setattr(command, "run_supervisor", serve)
    with pytest.raises(EndedError):
        command._detach(BoardDirectory("pynq"), 5.0, "armhf")
    with os.fdopen(kept, "rb") as pipe:
        assert pipe.read() == b"ready"
    assert did == ["session", "log", ("pynq", 5.0, "armhf"), 0]


def test_what_it_says_goes_to_the_boards_log(held: Held, capfd: pytest.CaptureFixture[str]) -> None:
    directory = BoardDirectory("pynq")
    directory.create()
    directory.log.write_text("before\n")
    kept = [os.dup(descriptor) for descriptor in (1, 2)]
    command._write_to(directory)
    for descriptor in (1, 2):
        os.write(descriptor, b"said %d\n" % descriptor)
        os.dup2(kept[descriptor - 1], descriptor)
        os.close(kept[descriptor - 1])
    assert directory.log.read_text() == "before\nsaid 1\nsaid 2\n"
    assert capfd.readouterr() == ("", "")
