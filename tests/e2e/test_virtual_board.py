"""The virtual board as hardware: power, network, filesystem. OpenSSH's client is the second witness."""

from __future__ import annotations

import os
import select
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hilt import paths
from hilt.link.boards import Endpoint
from hilt.link.deadline import Deadline
from hilt.link.host_keys import HostKeys
from hilt.link.session import Session
from hilt.virtual.control import ChassisControl
from hilt.virtual.directory import CONTROL_SOCKET, USER, BoardDirectory
from hilt.virtual.errors import UnknownPersonalityError, VirtualBoardError
from hilt.virtual.names import parse_virtual_name
from hilt.virtual.personality import PERSONALITIES, personality

PYNQ = personality("pynq")


@pytest.fixture
def chassis(hilt_home: Path) -> Iterator[ChassisControl]:
    with ChassisControl.hold(BoardDirectory("desk"), PYNQ) as control:
        yield control


def endpoint_of(chassis: ChassisControl) -> Endpoint:
    port = chassis.status().port
    assert port is not None
    directory = chassis.directory
    return Endpoint(
        "desk", "127.0.0.1", port, USER, directory.client_key, directory.host_public_key(), "python3", sudo=False
    )


def run_on(chassis: ChassisControl, *words: str) -> str:
    with Session.connect(endpoint_of(chassis), HostKeys(), Deadline(30)) as session:
        completed = session.execute(words, Deadline(30))
    assert completed.status == 0, completed.last_line
    return completed.output.decode()


def start_daemon(chassis: ChassisControl) -> int:
    """A process that leaves its session, as daemons do. Returns its process id."""
    (chassis.directory.home / "daemon.py").write_text(
        "import os, signal, sys\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(os.getpid(), flush=True)\n"
        "os.closerange(0, 3)\n"
        "signal.pause()\n"
    )
    return int(run_on(chassis, "python3", "daemon.py"))


def wait_for_end(process: int, seconds: float = 20) -> None:
    """Awaits the end of any process, ours or not."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return
    try:
        assert select.select([descriptor], [], [], seconds)[0], f"process {process} lives on"
    finally:
        os.close(descriptor)


def lives(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


def test_power_takes_daemons_with_it_and_every_boot_is_another(chassis: ChassisControl) -> None:
    assert chassis.status().power == "off"
    first = chassis.power_on()
    key = chassis.directory.host_public_key()
    daemon = start_daemon(chassis)
    assert lives(daemon)
    (chassis.directory.home / "kept").write_text("on disk")

    second = chassis.power_cycle()

    assert not lives(daemon)
    assert (second.port, second.power) == (first.port, "on")
    assert second.boot_id != first.boot_id
    assert chassis.directory.host_public_key() == key
    assert run_on(chassis, "cat", "kept") == "on disk"
    off = chassis.power_off()
    assert (off.power, off.port, off.boot_id) == ("off", None, None)


def test_killed_ssh_server_comes_back_on_its_port_and_daemons_live(chassis: ChassisControl) -> None:
    before = chassis.power_on()
    daemon = start_daemon(chassis)
    assert before.ssh_pid is not None
    chassis.kill_ssh_server()
    wait_for_end(before.ssh_pid)
    # The new server's announcement is an event on the chassis; asking again is how a client sees it.
    while (now := chassis.status()).ssh_pid == before.ssh_pid:
        pass
    assert now.port == before.port
    assert now.boot_id == before.boot_id
    assert lives(daemon)


def test_board_goes_dark_when_its_chassis_is_killed(chassis: ChassisControl) -> None:
    status = chassis.power_on()
    daemon = start_daemon(chassis)
    assert status.ssh_pid is not None
    os.kill(status.chassis_pid, signal.SIGKILL)
    for process in (status.chassis_pid, status.ssh_pid, daemon):
        wait_for_end(process)
    with pytest.raises(VirtualBoardError, match="gone|does not answer"):
        chassis.status()
    with ChassisControl.hold(chassis.directory, PYNQ) as again:
        assert again.power_on().port == status.port


def test_board_is_off_when_its_first_process_dies(chassis: ChassisControl) -> None:
    status = chassis.power_on()
    assert status.ssh_pid is not None
    daemon = start_daemon(chassis)
    first_process = int(Path(f"/proc/{status.ssh_pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(first_process, signal.SIGKILL)
    wait_for_end(daemon)
    assert chassis.power_on().boot_id != status.boot_id


def test_chassis_ends_when_nobody_holds_it(hilt_home: Path) -> None:
    directory = BoardDirectory("idle")
    control = ChassisControl.hold(directory, PYNQ, idle_seconds=0.05)
    second = ChassisControl.find(directory)
    assert second is not None
    ssh = control.power_on().ssh_pid
    chassis = control.status().chassis_pid
    control.close()
    assert ssh is not None
    assert second.status().power == "on", "one lease is left"
    second.close()
    wait_for_end(chassis)
    assert not lives(ssh)
    assert ChassisControl.find(directory) is None


def test_only_one_chassis_for_a_board(chassis: ChassisControl) -> None:
    with ChassisControl.hold(chassis.directory, PYNQ) as other:
        assert other.status().chassis_pid == chassis.status().chassis_pid


def test_sessions_find_a_board_not_the_host(chassis: ChassisControl, monkeypatch: pytest.MonkeyPatch) -> None:
    chassis.power_on()
    environment = dict(line.split("=", 1) for line in run_on(chassis, "env").splitlines())
    home = str(chassis.directory.home)
    assert environment["HOME"] == environment["PWD"] == home
    assert environment["HILT_VERILATED"] == str(chassis.directory.personality)
    assert not {"HILT_HOME", "HILT_CACHE", "PYTHONPATH", "VIRTUAL_ENV"} & set(environment)
    assert run_on(chassis, "which", "python3").strip() == str(paths.board_python().parent / "python3")


def test_sftp_sees_nothing_above_the_home(chassis: ChassisControl, tmp_path: Path) -> None:
    if shutil.which("sftp") is None:
        pytest.skip("OpenSSH's sftp is not installed")
    chassis.power_on()
    (chassis.directory.home / "inside").write_text("board")
    endpoint = endpoint_of(chassis)
    options = ["-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null", "-oBatchMode=yes", "-b", "-"]
    stolen = tmp_path / "stolen"
    fetch = f"get /inside {tmp_path}/inside\n-get ../../desk/host_key {stolen}\n-get /host_key {stolen}\n"
    completed = subprocess.run(
        ["sftp", *options, "-P", str(endpoint.port), "-i", str(endpoint.key_file), f"{USER}@127.0.0.1"],
        input=fetch,
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert (tmp_path / "inside").read_text() == "board", completed.stderr
    assert not stolen.exists()


def test_secrets_are_the_users_own(chassis: ChassisControl) -> None:
    directory = chassis.directory
    assert stat.S_IMODE((directory.root / CONTROL_SOCKET).stat().st_mode) == 0o600
    for secret in (directory.client_key, directory.host_key, directory.authorized_keys):
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def test_deep_homes_do_not_exceed_a_socket_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / ("d" * 100) / ("e" * 100)
    monkeypatch.setenv("HILT_HOME", str(home))
    control = ChassisControl.hold(BoardDirectory("deep"), PYNQ)
    assert control.power_on().power == "on"
    control.stop()


def test_a_board_keeps_its_personality(chassis: ChassisControl) -> None:
    chassis.stop()
    with pytest.raises(VirtualBoardError, match="was made as virtual:pynq, not virtual:ultra96: take virtual:pynq@"):
        ChassisControl.hold(chassis.directory, personality("ultra96"))


def test_names(hilt_home: Path) -> None:
    kind, directory = parse_virtual_name("virtual:pynq@left")
    assert (kind.name, directory.root) == ("pynq", hilt_home / "virtual" / "left")
    with pytest.raises(UnknownPersonalityError, match=r"did you mean virtual:pynq\?.*virtual:zcu104"):
        parse_virtual_name("virtual:pynk")
    for bad in ("virtual:pynq@", "virtual:pynq@../x", "virtual:pynq@A"):
        with pytest.raises(VirtualBoardError, match="cannot name"):
            parse_virtual_name(bad)


@pytest.mark.parametrize("name", PERSONALITIES)
def test_every_personality_is_an_accelerator(name: str) -> None:
    kind = personality(name)
    assert kind.accelerator.clock_hz == kind.clock_hz
    assert kind.memory_base % 4096 == kind.memory_bytes % 4096 == kind.register_base % 4096 == 0
    # An element index is 32 bits, of 4-byte micro-ops at the least.
    assert (kind.memory_base + kind.memory_bytes) // 4 <= 1 << 32
