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

from hilt.bitstreams import BitstreamError
from hilt.link.agent import AgentConnection, Archive, build_archive
from hilt.link.board_registry import Endpoint
from hilt.link.deadline import Deadline
from hilt.link.errors import BoardBusyError, LinkLostError, UnreachableError, UploadError
from hilt.link.quarantine import Quarantine
from hilt.link.session import Completed, SshSession
from hilt.measure import doctor
from hilt.measure.board_description import BoardTarget
from hilt.measure.doctor import Finding
from hilt_board.protocol import AgentHello

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
    ("changes", "part", "word"),
    [
        ({"fpga_manager": None}, "FPGA manager", "PYNQ image"),
        ({"import_error": "RuntimeError: No Devices Found", "xrt": None}, "pynq", "XILINX_XRT is not set"),
        ({"cma_free": 5 << 20}, "contiguous memory", "cma="),
        ({"root": False}, "root", "sudo = true"),
        ({"disk_free": 1 << 20}, "disk", "2 GiB"),
        ({"temperature": 91.0}, "temperature", "heat sink"),
    ],
)
def test_a_fault_is_named_with_its_remedy(changes: dict[str, Any], part: str, word: str) -> None:
    wrong = [each for each in facts(**changes) if not each.well]
    assert [each.what for each in wrong] == [part]
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


def test_a_client_with_a_long_name_is_greeted_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The protocol bounds the name; a message that breaks the bound cannot be made."""
    told: list[AgentHello] = []
    monkeypatch.setattr(doctor, "who", lambda: "hilt of " + 192 * "u")

    def refuse(endpoint: Endpoint, who: str, deadline: Deadline) -> AgentConnection:
        told.append(AgentHello(who))
        raise BoardBusyError("board is in use")

    monkeypatch.setattr(AgentConnection, "open", refuse)
    target = SimpleNamespace(
        description=SimpleNamespace(name="desk"), manifest=None, bitstream=lambda: b"", endpoint=lambda: None
    )
    assert [each.what for each in doctor._device(cast(BoardTarget, target))] == ["lease"] and len(told) == 1


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


def ran(status: int, output: str = "", errors: str = "") -> Completed:
    return Completed(status, output.encode(), errors.encode())


def python_of(answer: Completed) -> tuple[Finding, bool]:
    """Return the finding about Python, and whether the other checks follow."""
    checks = doctor._python(cast(SshSession, Board(**{"-V": answer})))
    finding = next(checks)
    try:
        return finding, next(checks, None) is None
    except doctor._StopError:
        return finding, False


@pytest.mark.parametrize(
    ("words", "well"),
    [("3.7.17", False), ("3.8.0", True), ("3.10.4", True), ("2.7.18", False), ("4.0.0", True)],
)
def test_python_3_8_is_the_oldest(words: str, well: bool) -> None:
    finding, goes_on = python_of(ran(0, f"Python {words}\n"))
    assert (finding.what, finding.well, goes_on) == ("Python", well, well)
    assert finding.found == f"Python {words} (/usr/local/share/pynq-venv/bin/python3)"


def test_an_old_python_that_writes_its_version_to_its_errors_is_named() -> None:
    assert python_of(ran(0, "", "Python 2.7.18\n"))[0].found.startswith("Python 2.7.18 (")


@pytest.mark.parametrize(
    "answer", [ran(127, "", "sh: python3: not found\n"), ran(1, "Python 3.8.2\n"), ran(0, "busybox\n")]
)
def test_what_is_no_python_ends_the_checks(answer: Completed) -> None:
    finding, goes_on = python_of(answer)
    assert not finding.well and not goes_on and finding.found.endswith("python3 does not run")
    assert answer.last_line in finding.mend


def test_root_without_a_password_is_well_and_a_board_without_sudo_is_not_asked() -> None:
    board = Board(true=ran(0))
    (finding,) = doctor._root(cast(SshSession, board))
    assert finding.well and finding.found == "without a password"
    board.endpoint = Endpoint("desk", "192.168.2.99", sudo=False)
    assert list(doctor._root(cast(SshSession, board))) == []


@pytest.mark.parametrize(
    ("fact", "what", "mebibytes"),
    [("memory_free", "memory", 64), ("cma_free", "contiguous memory", 48), ("disk_free", "disk", 256)],
)
def test_so_much_must_be_free_and_a_kernel_that_does_not_say_is_not_blamed(
    fact: str, what: str, mebibytes: int
) -> None:
    at_the_limit, short, unknown = (
        {each.what: each for each in facts(**{fact: free})} for free in (mebibytes << 20, (mebibytes << 20) - 1, None)
    )
    assert at_the_limit[what].well and at_the_limit[what].found == f"{mebibytes} MiB free"
    assert not short[what].well and short[what].mend.startswith(f"{mebibytes} MiB are needed: ")
    assert what not in unknown and len(unknown) == len(short) - 1


def test_what_is_free_is_written_in_thousands_and_a_chip_is_too_hot_from_85_degrees() -> None:
    found = {each.what: each for each in facts(disk_free=8 << 30, temperature=84.9)}
    assert found["disk"].found == "8,192 MiB free"
    assert found["temperature"].well and found["temperature"].found == "85 °C"
    assert not {each.what: each for each in facts(temperature=85.0)}["temperature"].well
    assert "temperature" not in {each.what for each in facts(temperature=None)}


def test_a_virtual_board_needs_no_root_no_fpga_manager_and_no_contiguous_memory() -> None:
    found = facts(virtual=True, root=False, fpga_manager=None, cma_free=0)
    assert [each for each in found if not each.well] == []
    assert "contiguous memory" not in {each.what for each in found}


def test_the_facts_of_an_image_are_told() -> None:
    found = {each.what: each.found for each in facts(image=None)}
    assert (found["image"], found["root"], found["FPGA manager"]) == ("armv7l", "yes", "operating")
    assert found["pynq"] == "pynq 2.7.0, numpy 1.20.3, device edge"
    assert facts()[1].found == f"{PYNQ_Z2['image']}, armv7l"
    assert {each.what: each.found for each in facts(root=False, fpga_manager=None)}["FPGA manager"] == "none"
    broken = {each.what: each for each in facts(import_error="ImportError: no numpy")}["pynq"]
    assert broken.found == "ImportError: no numpy" and "XILINX_XRT is /usr" in broken.mend


@pytest.mark.parametrize(("sent", "how"), [(True, "sent now"), (False, "there already")])
def test_an_agent_is_named_by_its_hash(monkeypatch: pytest.MonkeyPatch, sent: bool, how: str) -> None:
    monkeypatch.setattr(doctor, "deploy", lambda *_: sent)
    assert facts()[0] == Finding("agent", True, f"{build_archive().sha256[:12]}, {how}")


def test_an_agent_that_does_not_run_ends_the_checks_with_the_line_of_python() -> None:
    answer = ran(1, "", "Traceback\nSyntaxError: invalid syntax\n")
    finding, stopped = agent(answer)[1]
    assert (finding.well, finding.found, stopped.what) == (False, "SyntaxError: invalid syntax", "stopped")


class Session(Board):
    """An open session with a board that is well, or whose link is lost at a command."""

    def __init__(self, lost_at: str = "", **answers: Completed) -> None:
        well = {"-V": ran(0, "Python 3.8.2\n"), "true": ran(0), "inspect": ran(0, json.dumps(PYNQ_Z2))}
        super().__init__(**well | answers)
        self._lost_at = lost_at
        self.ended = False

    def execute(self, words: Sequence[str], deadline: Deadline) -> Completed:
        if words[-1] == self._lost_at:
            raise LinkLostError("connection to desk was reset")
        return super().execute(words, deadline)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.ended = True


def checked(monkeypatch: pytest.MonkeyPatch, session: Session | Exception, **apart: Quarantine) -> list[Finding]:
    """Return the findings of a board whose bitstream is not there."""

    def connect(*_: object) -> Any:
        if isinstance(session, Exception):
            raise session
        return session

    def bitstream() -> bytes:
        raise BitstreamError("pynq is not in the library")

    monkeypatch.setattr(SshSession, "connect", connect)
    monkeypatch.setattr(doctor, "quarantined", lambda: apart)
    target = SimpleNamespace(
        description=SimpleNamespace(name="desk"),
        manifest=None,
        bitstream=bitstream,
        endpoint=lambda: Endpoint("desk", "192.168.2.99"),
    )
    return list(doctor.check_board(cast(BoardTarget, target)))


def test_checks_go_from_ssh_to_the_bitstream_and_end_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    findings = checked(monkeypatch, session, other=Quarantine("no power", 0.0))
    assert [each.what for each in findings] == [
        "SSH", "Python", "sudo", "agent", "image", "root", "FPGA manager", "pynq",
        "memory", "contiguous memory", "disk", "temperature", "bitstream",
    ]  # fmt: skip
    assert findings[0].found == "xilinx@192.168.2.99 port 22, its key is known" and session.ended
    assert [each.what for each in findings if not each.well] == ["bitstream"]
    assert findings[-1].found == "pynq is not in the library" and "hilt bitstream fetch" in findings[-1].mend


def test_a_board_that_is_kept_apart_is_checked_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    findings = checked(monkeypatch, Session(), desk=Quarantine("it did not boot", 0.0))
    assert (findings[0].what, findings[0].well, findings[0].found) == ("quarantine", False, "it did not boot")
    assert findings[0].mend.endswith("hilt boards release desk") and findings[1].what == "SSH"


def test_without_ssh_nothing_else_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    (finding,) = checked(monkeypatch, UnreachableError("nothing answers at 192.168.2.99"))
    assert (finding.what, finding.well, finding.found) == ("SSH", False, "nothing answers at 192.168.2.99")


def test_a_link_that_is_lost_on_the_way_is_the_last_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(lost_at="true")
    findings = checked(monkeypatch, session)
    assert [each.what for each in findings] == ["SSH", "Python", "link"] and session.ended
    assert (findings[-1].well, findings[-1].found) == (False, "connection to desk was reset")


def test_an_old_python_is_the_last_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(**{"-V": ran(0, "Python 3.6.9\n")})
    assert [each.what for each in checked(monkeypatch, session)] == ["SSH", "Python"] and session.ended


def on_the_device(monkeypatch: pytest.MonkeyPatch, canary: bool = True, lost: bool = False) -> list[Finding]:
    """Return the findings of a board whose agent is connected to."""

    class Client:
        def status(self, deadline: Deadline) -> SimpleNamespace:
            return SimpleNamespace(uptime_seconds=3599.6)

        def reset(self, how: str, deadline: Deadline) -> SimpleNamespace:
            assert how == "reload"
            return SimpleNamespace(canary=canary)

    def program(*_: object) -> SimpleNamespace:
        if lost:
            raise LinkLostError("connection to desk was reset")
        return SimpleNamespace(seconds=0.46, clock_hz=166_666_666)

    monkeypatch.setattr(AgentConnection, "open", lambda *_: nullcontext(SimpleNamespace(client=Client())))
    monkeypatch.setattr(doctor, "program_board", program)
    target = SimpleNamespace(
        description=SimpleNamespace(name="desk", bitstream="f" * 64),
        manifest=SimpleNamespace(parameters="1x16", isa="A"),
        bitstream=lambda: b"bits",
        endpoint=lambda: None,
    )
    return list(doctor._device(cast(BoardTarget, target)))


def test_a_device_is_loaded_and_reset_once_and_its_clock_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    lease, bitstream, clock, canary = on_the_device(monkeypatch)
    assert lease.well and lease.found == "free; up 3600 s"
    assert bitstream.well and bitstream.found.startswith("1x16, ISA A, ffffffffffff (file")
    assert bitstream.found.endswith(", loaded in 0.5 s")
    assert clock == Finding("clock", True, "166.667 MHz")
    assert (canary.what, canary.well, canary.found) == ("canary", True, "well")


def test_a_canary_that_fails_asks_for_a_power_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    canary = on_the_device(monkeypatch, canary=False)[-1]
    assert (canary.what, canary.well, canary.found) == ("canary", False, "failed after a reload")
    assert canary.mend.startswith("hilt boards power cycle desk;")


def test_a_device_that_is_lost_points_at_the_agents_log(monkeypatch: pytest.MonkeyPatch) -> None:
    lease, device = on_the_device(monkeypatch, lost=True)
    assert lease.well and (device.what, device.well) == ("device", False)
    assert device.found == "connection to desk was reset" and "hilt boards logs desk" in device.mend
