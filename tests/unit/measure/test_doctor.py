"""The verdict of `hilt boards check` on a PYNQ-Z2, from facts as its kernel and pynq give them.

No PYNQ-Z2 is at hand.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hilt.link.agent import AgentConnection, Archive, build_archive
from hilt.link.board_registry import Endpoint
from hilt.link.deadline import Deadline
from hilt.link.errors import BoardBusyError, UploadError
from hilt.link.session import Completed, SshSession
from hilt.measure import doctor
from hilt.measure.board_description import BoardTarget
from hilt.measure.doctor import Finding

PYNQ_Z2: dict[str, Any] = {
    "python": "3.8.2",
    "python_path": "/usr/local/share/pynq-venv/bin/python3",
    "root": True,
    "virtual": False,
    "image": "PynqLinux, based on Ubuntu 20.04, Release 2021_11_16 f71bf88",
    "machine": "armv7l",
    "xrt": "/usr",
    "fpga_manager": "operating",
    "memory_free": 300 << 20,
    "cma_total": 128 << 20,
    "cma_free": 120 << 20,
    "disk_free": 8 << 30,
    "temperature": 51.2,
    "numpy": "1.20.3",
    "pynq": "2.7.0",
    "device": "edge",
    "import_error": None,
}


class Board:
    """Answers commands with `answers`, by their last word; notes how long each may take."""

    def __init__(self, **answers: Completed) -> None:
        self.endpoint = Endpoint("desk", "192.168.2.99")
        self.seconds: dict[str, float] = {}
        self._answers = answers

    def sha256(self, path: str, deadline: Deadline) -> str:
        return build_archive().sha256

    def execute(self, words: Sequence[str], deadline: Deadline) -> Completed:
        self.seconds[words[-1]] = deadline.left
        if words[0] in ("printenv", "uname"):
            return Completed(1, b"", b"")  # a real board
        return self._answers[words[-1]]


def agent(answer: Completed) -> tuple[Board, list[Finding]]:
    board = Board(inspect=answer)
    findings = []
    try:
        findings.extend(doctor._agent(cast(SshSession, board)))
    except doctor._StopError:
        findings.append(Finding("stopped", False, ""))
    return board, findings


def facts(**changes: Any) -> list[Finding]:
    return agent(Completed(0, json.dumps({**PYNQ_Z2, **changes}).encode(), b""))[1]


def test_a_pynq_z2_as_it_should_be_is_well_and_may_take_its_time_to_import_pynq() -> None:
    board, findings = agent(Completed(0, json.dumps(PYNQ_Z2).encode() + b"\n", b"[XRT] WARNING\n"))
    assert [each for each in findings if not each.well] == []
    assert [each.what for each in findings] == [
        "agent", "image", "root", "FPGA manager", "pynq", "memory", "contiguous memory", "disk", "temperature",
    ]  # fmt: skip
    assert board.seconds["inspect"] > 120, "on a board that has just booted importing pynq takes a minute and more"


@pytest.mark.parametrize(
    ("changes", "what", "word"),
    [
        ({"fpga_manager": None}, "FPGA manager", "PYNQ image"),
        ({"import_error": "RuntimeError: No Devices Found", "xrt": None}, "pynq", "XILINX_XRT is not set"),
        ({"cma_free": 5 << 20}, "contiguous memory", "cma="),
        ({"root": False}, "root", "sudo = true"),
        ({"disk_free": 1 << 20}, "disk", "2 GiB"),
        ({"temperature": 91.0}, "temperature", "heat sink"),
    ],
)
def test_a_fault_is_named_with_its_remedy(changes: dict[str, Any], what: str, word: str) -> None:
    wrong = [each for each in facts(**changes) if not each.well]
    assert [each.what for each in wrong] == [what]
    assert word in wrong[0].mend


def test_a_full_card_is_not_taken_for_an_unsteady_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSH's SFTP server says of it no more than `Failure`."""

    def deploy(session: SshSession, archive: Archive, deadline: Deadline) -> bool:
        raise UploadError(f"{archive.remote_path} cannot be written on desk: Failure")

    monkeypatch.setattr(doctor, "deploy", deploy)
    finding, stopped = agent(Completed(0, b"", b""))[1]
    assert (finding.what, finding.well, stopped.what) == ("agent", False, "stopped")
    assert "Failure" in finding.found and "full, or read-only" in finding.mend


def test_without_a_device_nothing_is_loaded() -> None:
    assert facts(device=None, import_error="RuntimeError: No Devices Found")[-1].what == "stopped"


def test_an_image_whose_sudo_asks_for_a_password_gets_the_sudoers_line() -> None:
    board = Board(true=Completed(1, b"", b"sudo: a password is required\n"))
    findings = []
    with pytest.raises(doctor._StopError):
        for each in doctor._root(cast(SshSession, board)):
            findings.append(each)
    assert findings[0].found == "sudo: a password is required"
    assert "xilinx ALL=(ALL) NOPASSWD: ALL" in findings[0].mend


def test_two_who_check_a_board_at_once_are_two_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent takes a second session of one client for the first one's, whose link is dead, and ends that."""
    told: list[str] = []

    def refuse(endpoint: Endpoint, who: str, deadline: Deadline) -> AgentConnection:
        told.append(who)
        raise BoardBusyError(f"board is in use: {who}")

    monkeypatch.setattr(AgentConnection, "open", refuse)
    target = SimpleNamespace(
        description=SimpleNamespace(name="desk"), manifest=None, bitstream=lambda: b"", endpoint=lambda: None
    )
    for process in (11, 12):
        monkeypatch.setattr("hilt.measure.connection.os.getpid", lambda process=process: process)
        (finding,) = doctor._device(cast(BoardTarget, target))
        assert (finding.what, finding.well) == ("lease", False)
    assert len(set(told)) == 2
    assert all("hilt boards check" in each for each in told)


def test_a_bitstream_has_the_identity_that_the_list_of_boards_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    class Client:
        def status(self, deadline: Deadline) -> SimpleNamespace:
            return SimpleNamespace(uptime_seconds=4.0)

        def reset(self, how: str, deadline: Deadline) -> SimpleNamespace:
            return SimpleNamespace(canary=True)

    programmed = SimpleNamespace(seconds=0.5, clock_hz=100_000_000)
    monkeypatch.setattr(AgentConnection, "open", lambda *_: nullcontext(SimpleNamespace(client=Client())))
    monkeypatch.setattr(doctor, "program_board", lambda *_: programmed)
    target = SimpleNamespace(
        description=SimpleNamespace(name="desk", bitstream="fd354e8a77e3" + "0" * 52),
        manifest=SimpleNamespace(parameters="1x16", isa="A"),
        bitstream=lambda: b"bits",
        endpoint=lambda: None,
    )
    found = {finding.what: finding.found for finding in doctor._device(cast(BoardTarget, target))}
    file_digest = hashlib.sha256(b"bits").hexdigest()[:12]
    assert f"fd354e8a77e3 (file sha256 {file_digest})" in found["bitstream"], "two hashes, and each has its name"
