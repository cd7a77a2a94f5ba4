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
from hilt.link.board_registry import Endpoint
from hilt.link.deadline import Deadline
from hilt.link.host_keys import HostKeys
from hilt.link.session import SshSession
from hilt.virtual.board_model import BOARD_MODELS, board_model
from hilt.virtual.directory import CONTROL_SOCKET, USER, BoardDirectory
from hilt.virtual.errors import UnknownBoardModelError, VirtualBoardError
from hilt.virtual.names import parse_virtual_name
from hilt.virtual.supervisor_control import SupervisorControl

PYNQ = board_model("pynq")


@pytest.fixture
def supervisor(hilt_home: Path) -> Iterator[SupervisorControl]:
    with SupervisorControl.hold(BoardDirectory("desk"), PYNQ) as control:
        yield control


def endpoint_of(supervisor: SupervisorControl) -> Endpoint:
    port = supervisor.status().port
    assert port is not None
    directory = supervisor.directory
    key, host_key = directory.client_key, directory.host_public_key()
    return Endpoint("desk", "127.0.0.1", port, USER, key, host_key, "python3", sudo=False)


def run_on(supervisor: SupervisorControl, *words: str) -> str:
    with SshSession.connect(endpoint_of(supervisor), HostKeys(), Deadline(30)) as session:
        completed = session.execute(words, Deadline(30))
    assert completed.status == 0, completed.last_line
    return completed.output.decode()


def start_daemon(supervisor: SupervisorControl) -> int:
    """A process that leaves its session, as daemons do. Returns its process id."""
    (supervisor.directory.home / "daemon.py").write_text(
        "import os, signal, sys\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(os.getpid(), flush=True)\n"
        "os.closerange(0, 3)\n"
        "signal.pause()\n"
    )
    return int(run_on(supervisor, "python3", "daemon.py"))


def wait_for_end(process: int, seconds: float = 20) -> None:
    """Await the end of any process, ours or not."""
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


def test_power_takes_daemons_with_it_and_every_boot_is_another(supervisor: SupervisorControl) -> None:
    assert supervisor.status().power == "off"
    first = supervisor.power_on()
    key = supervisor.directory.host_public_key()
    daemon = start_daemon(supervisor)
    assert lives(daemon)
    (supervisor.directory.home / "kept").write_text("on disk")

    second = supervisor.power_cycle()

    assert not lives(daemon)
    assert (second.port, second.power) == (first.port, "on")
    assert second.boot_id != first.boot_id
    assert supervisor.directory.host_public_key() == key
    assert run_on(supervisor, "cat", "kept") == "on disk"
    off = supervisor.power_off()
    assert (off.power, off.port, off.boot_id) == ("off", None, None)


def test_killed_ssh_server_comes_back_on_its_port_and_daemons_live(supervisor: SupervisorControl) -> None:
    before = supervisor.power_on()
    daemon = start_daemon(supervisor)
    assert before.ssh_pid is not None
    supervisor.kill_ssh_server()
    wait_for_end(before.ssh_pid)
    # The new server's announcement is an event on the supervisor; asking again is how a client sees it.
    while (now := supervisor.status()).ssh_pid == before.ssh_pid:
        pass
    assert now.port == before.port
    assert now.boot_id == before.boot_id
    assert lives(daemon)


def test_board_goes_dark_when_its_supervisor_is_killed(supervisor: SupervisorControl) -> None:
    status = supervisor.power_on()
    daemon = start_daemon(supervisor)
    assert status.ssh_pid is not None
    os.kill(status.supervisor_pid, signal.SIGKILL)
    for process in (status.supervisor_pid, status.ssh_pid, daemon):
        wait_for_end(process)
    with pytest.raises(VirtualBoardError, match="gone|does not answer"):
        supervisor.status()
    with SupervisorControl.hold(supervisor.directory, PYNQ) as again:
        assert again.power_on().port == status.port


def test_board_is_off_when_its_first_process_dies(supervisor: SupervisorControl) -> None:
    status = supervisor.power_on()
    assert status.ssh_pid is not None
    daemon = start_daemon(supervisor)
    first_process = int(Path(f"/proc/{status.ssh_pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(first_process, signal.SIGKILL)
    wait_for_end(daemon)
    assert supervisor.power_on().boot_id != status.boot_id


def test_supervisor_ends_when_nobody_holds_it(hilt_home: Path) -> None:
    directory = BoardDirectory("idle")
    control = SupervisorControl.hold(directory, PYNQ, idle_seconds=0.05)
    second = SupervisorControl.find(directory)
    assert second is not None
    ssh = control.power_on().ssh_pid
    supervisor = control.status().supervisor_pid
    control.close()
    assert ssh is not None
    assert second.status().power == "on", "one lease is left"
    second.close()
    wait_for_end(supervisor)
    assert not lives(ssh)
    assert SupervisorControl.find(directory) is None


def test_only_one_supervisor_for_a_board(supervisor: SupervisorControl) -> None:
    with SupervisorControl.hold(supervisor.directory, PYNQ) as other:
        assert other.status().supervisor_pid == supervisor.status().supervisor_pid


def test_sessions_find_a_board_not_the_host(supervisor: SupervisorControl, monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor.power_on()
    environment = dict(line.split("=", 1) for line in run_on(supervisor, "env").splitlines())
    home = str(supervisor.directory.home)
    assert environment["HOME"] == environment["PWD"] == home
    assert environment["HILT_VERILATED"] == str(supervisor.directory.board_model)
    assert not {"HILT_HOME", "HILT_CACHE", "PYTHONPATH", "VIRTUAL_ENV"} & set(environment)
    assert run_on(supervisor, "which", "python3").strip() == str(paths.board_python().parent / "python3")


def test_sftp_sees_nothing_above_the_home(supervisor: SupervisorControl, tmp_path: Path) -> None:
    if shutil.which("sftp") is None:
        pytest.skip("OpenSSH's sftp is not installed")
    supervisor.power_on()
    (supervisor.directory.home / "inside").write_text("board")
    endpoint = endpoint_of(supervisor)
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


def test_secrets_are_the_users_own(supervisor: SupervisorControl) -> None:
    directory = supervisor.directory
    assert stat.S_IMODE((directory.root / CONTROL_SOCKET).stat().st_mode) == 0o600
    for secret in (directory.client_key, directory.host_key, directory.authorized_keys):
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def test_deep_homes_do_not_exceed_a_socket_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / ("d" * 100) / ("e" * 100)
    monkeypatch.setenv("HILT_HOME", str(home))
    control = SupervisorControl.hold(BoardDirectory("deep"), PYNQ)
    assert control.power_on().power == "on"
    control.stop()


def test_a_board_keeps_its_board_model(supervisor: SupervisorControl) -> None:
    supervisor.stop()
    with pytest.raises(VirtualBoardError, match="was made as virtual:pynq, not virtual:ultra96: take virtual:pynq@"):
        SupervisorControl.hold(supervisor.directory, board_model("ultra96"))


def test_names(hilt_home: Path) -> None:
    kind, directory = parse_virtual_name("virtual:pynq@left")
    assert (kind.name, directory.root) == ("pynq", hilt_home / "virtual" / "left")
    with pytest.raises(UnknownBoardModelError, match=r"did you mean virtual:pynq\?.*virtual:zcu104"):
        parse_virtual_name("virtual:pynk")
    for bad in ("virtual:pynq@", "virtual:pynq@../x", "virtual:pynq@A"):
        with pytest.raises(VirtualBoardError, match="cannot name"):
            parse_virtual_name(bad)


@pytest.mark.parametrize("name", BOARD_MODELS)
def test_every_board_model_is_an_accelerator(name: str) -> None:
    kind = board_model(name)
    assert kind.accelerator.clock_hz == kind.clock_hz
    assert kind.memory_base % 4096 == kind.memory_bytes % 4096 == kind.register_base % 4096 == 0
    # An element index is 32 bits, of 4-byte micro-ops at the least.
    assert (kind.memory_base + kind.memory_bytes) // 4 <= 1 << 32
