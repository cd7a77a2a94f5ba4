"""An emulated board in a test: its SSH sessions, its monitor, and runs on it that something happens to."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import paramiko

from hilt.engine.client import EngineClient, NoEngineError
from hilt.engine.events import Finished, TrialRecorded
from hilt.engine.run_files import RunFiles
from hilt.link.board_registry import Endpoint
from hilt.link.deadline import Deadline
from hilt.link.errors import LinkLostError
from hilt.link.host_keys import HostKeys
from hilt.link.session import Completed, SshSession
from hilt.store import RunState, Store, Trial, database_path
from hilt.trial import Outcome
from hilt.virtual.board_model import board_model
from hilt.virtual.directory import USER, BoardDirectory
from hilt.virtual.linux.computer import COMPUTERS
from hilt.virtual.linux.monitor import Monitor
from hilt.virtual.linux.system import CONSOLE
from hilt.virtual.supervisor_control import SupervisorControl

WORKLOAD = "conv2d:n=1,ci=16,h=8,w=8,co=16,k=3x3,s=1x1,p=1x1"
TRIALS = 120
"""Enough for the run to outlast the seconds that an event takes to reach the board."""
_SECONDS = 900.0
_PANIC_SECONDS = 60.0


class Desk:
    """The board on the desk, as the person sees it who stands before it."""

    def __init__(self, home: Path, model: str) -> None:
        self.home = home
        self.board = f"virtual:{model}"
        self.model = board_model(model)
        self.computer = COMPUTERS[self.model.computer]
        self.directory = BoardDirectory(model)

    def endpoint(self) -> Endpoint:
        control = SupervisorControl.find(self.directory)
        assert control is not None, "the board is off"
        with control:
            port = control.status().port
        assert port is not None, "the board is off"
        key = self.directory.client_key
        return Endpoint("desk", "127.0.0.1", port, USER, key, self.directory.host_public_key(), "python3", sudo=True)

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        """Keep the board switched on; it goes off a minute after its last user, which an SSH session is not."""
        with SupervisorControl.hold(self.directory, self.model) as control:
            control.power_on()
            yield

    def execute(self, *words: str, seconds: float = 120.0) -> Completed:
        """Run a command as the board's root; its errors are part of its output. Raises LinkError."""
        with SshSession.connect(self.endpoint(), HostKeys(), Deadline(seconds)) as session:
            transport = session._client.get_transport()
            assert transport is not None
            try:
                channel = transport.open_session(timeout=seconds)
                channel.settimeout(seconds)
                channel.set_combine_stderr(True)
                channel.exec_command(shlex.join(["sudo", "-n", *words]))
                output = b""
                while data := channel.recv(1 << 16):
                    output += data
                return Completed(channel.recv_exit_status(), output, b"")
            except (OSError, EOFError, paramiko.SSHException) as error:
                raise LinkLostError(str(error)) from None

    def output(self, *words: str) -> str:
        completed = self.execute(*words)
        assert completed.status == 0, completed.output
        return completed.output.decode()

    def put(self, data: bytes, path: str) -> None:
        deadline = Deadline(120.0)
        with SshSession.connect(self.endpoint(), HostKeys(), deadline) as session:
            session.put(data, path, deadline)

    def boot_id(self) -> str:
        return self.output("cat", "/proc/sys/kernel/random/boot_id").strip()

    def wait_for_panic(self) -> None:
        """Return when the console shows a kernel panic: the command that causes it may outlive its SSH session."""
        console, deadline = self.directory.root / CONSOLE, Deadline(_PANIC_SECONDS)
        while "end Kernel panic" not in console.read_text(errors="replace"):
            assert not deadline.passed, "the kernel has not panicked"
            time.sleep(0.1)

    def monitor(self) -> Monitor:
        return Monitor(self.directory)

    def cycle_power(self) -> None:
        control = SupervisorControl.find(self.directory)
        assert control is not None
        with control:
            control.power_cycle()


def hilt(*arguments: str) -> str:
    """Run the command, as its users run it, and return its output."""
    command = [sys.executable, "-c", "from hilt.cli.main import main; main()", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


def records(home: Path, run: str) -> list[Trial]:
    with Store(database_path(home)) as store:
        return store.trials(run)


def tune(home: Path, board: str, happens: Callable[[], None] | None = None) -> tuple[list[Trial], float, str]:
    """Tune the workload, and let something happen after its third measured trial.

    Returns:
        The records, the seconds from the event (else the start) to the end, and the states in between.
    """
    words = ("--tuner", "random", "--seed", "5", "--trials", str(TRIALS), "--batch", "3")
    hilt("tune", WORKLOAD, "--board", board, *words, "--detach")
    with Store(database_path(home)) as store:
        run = store.run("last").uuid
    began, measured, said = time.monotonic(), 0, ""
    for _ in range(5):
        with contextlib.suppress(NoEngineError), EngineClient.attach(home, run) as client:
            for event in client.events(_SECONDS):
                if isinstance(event, Finished):
                    said += f"{event.state}: {event.detail}; " if event.detail else ""
                elif isinstance(event, TrialRecorded) and event.trial.outcome is not Outcome.REJECTED:
                    measured += 1
                    if measured == 3 and happens is not None:
                        began = time.monotonic()
                        happens()
                        with Store(database_path(home)) as store:
                            assert store.run(run).state is not RunState.FINISHED, "the run ended before it happened"
        assert RunFiles(home, run).wait_until_free(_SECONDS)
        with Store(database_path(home)) as store:
            if store.run(run).state is RunState.FINISHED:
                return records(home, run), time.monotonic() - began, said
        hilt("resume", run, "--detach")  # as the message of the run that ended says
    raise AssertionError(f"the run does not finish: {said}")
