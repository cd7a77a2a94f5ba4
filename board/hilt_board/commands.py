"""The agent's commands: start, connect, stop, status; and daemon and worker, which start runs."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import hashlib
import importlib.util
import json
import logging
import logging.handlers
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from .extension import virtual_board
from .home import Home, HomeError, open_home

if TYPE_CHECKING:
    from .protocol import Frame

_SILENCE_SECONDS = 10.0
_STOP_SECONDS = 60.0
_STATUS_SECONDS = 5.0
_START_SECONDS = 30.0
_LOG_BYTES = 1 << 16


class CommandError(Exception):
    """A command that could not be carried out; one line says why."""

    code = 1


class InUseError(CommandError):
    """Somebody else uses the board, or another daemon runs: hilt.link and systemd know it by the exit code."""

    code = 3


def main(arguments: Optional[List[str]] = None) -> int:
    """Run a command and return its exit code.

    The code is 0, or after one line on stderr: 1, 2 for wrong usage, 3 if the board is in use by somebody else.
    """
    from .inspection import complete_environment

    os.umask(0o077)
    complete_environment()
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(open_home(), options)
        return code
    except (CommandError, HomeError, OSError) as error:
        sys.stderr.write("hilt agent: {}\n".format(error))
        return error.code if isinstance(error, CommandError) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hilt_board", description="The agent of a hilt board.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=run)
        return command

    silence = "kill a worker that gives no sign of life for so many seconds (default {:g})".format(_SILENCE_SECONDS)
    start = add("start", _start, "start the daemon, unless this very agent runs already")
    start.add_argument("--silence", type=float, default=_SILENCE_SECONDS, metavar="SECONDS", help=silence)
    add("connect", _connect, "bridge stdin and stdout to the daemon")
    add("stop", _stop, "end the daemon after the trial that is running, which has a minute for it")
    add("kill", _kill, "end the daemon at once; its journal stays")
    add("status", _status, "print the daemon's state as JSON")
    add("inspect", _inspect, "print the facts of the board as JSON")
    add("log", _log, "print the end of the agent's log")
    add("install-service", _install_service, "have systemd start the daemon with the board (needs root)")
    add("remove-service", _remove_service, "undo install-service")
    daemon = add("daemon", _daemon, "be the daemon, in the foreground")
    daemon.add_argument("--silence", type=float, default=_SILENCE_SECONDS, metavar="SECONDS", help=silence)
    daemon.add_argument("--ready", type=int, metavar="DESCRIPTOR", help="closed when connections are accepted")
    worker = add("worker", _worker, "own the device (started by the daemon)")
    worker.add_argument("descriptor", type=int)
    return parser


def _start(home: Home, options: argparse.Namespace) -> int:
    from .worker_process import agent_command, agent_environment

    with home.start_lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _running(home) and _same_agent_answers(home):
            return 0
        _require_packages()
        reading, writing = os.pipe()
        log = os.open(str(home.log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        process = subprocess.Popen(
            agent_command("daemon", "--ready", str(writing), "--silence", str(options.silence)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[writing],
            start_new_session=True,
            cwd=str(home.root),
            env=agent_environment(),
        )
        os.close(log)
        os.close(writing)
        with os.fdopen(reading, "rb") as ready, _alarm(_START_SECONDS, "daemon did not become ready"):
            if ready.read() != b"ready":
                raise CommandError("daemon ended with {}; see {}".format(process.wait(), home.log))
    return 0


def _require_packages() -> None:
    """Raise CommandError if a package is missing.

    The check is here, while nothing is wrong with the board: a worker that ends without its packages would look
    broken.
    """
    for name in ("numpy", "pynq"):
        if importlib.util.find_spec(name) is None:
            text = "{} has no {}: set `python` of the board to the interpreter that imports pynq"
            raise CommandError(text.format(sys.executable, name))


def _same_agent_answers(home: Home) -> bool:
    """Return whether the running daemon may stay; otherwise end it.

    It is ended if it hangs, or if it is another version and nobody uses it. Raises InUseError if it is another
    version and in use, CommandError if it speaks another protocol.
    """
    from .protocol import ProtocolError

    try:
        status = _ask_any_version(home)  # as it is: the report of another version may have other fields
    except ProtocolError as error:
        raise CommandError("another version of the agent runs: {}, or reboot the board".format(error)) from None
    except socket.timeout:
        _end(home, signal.SIGKILL)  # it hangs
        return False
    except (OSError, CommandError):
        _end(home, signal.SIGTERM)  # it is ending already
        return False
    if status.get("agent") == _agent_hash():
        return True
    if status.get("holder") is not None:
        raise InUseError("another version of the agent runs and is in use by {}".format(status["holder"]))
    sys.stdout.write("replaced agent {} of another version\n".format(str(status.get("agent"))[:12]))
    _end(home, signal.SIGTERM)
    return False


def _stop(home: Home, _: argparse.Namespace) -> int:
    if _running(home):
        _end(home, signal.SIGTERM)
    return 0


def _kill(home: Home, _: argparse.Namespace) -> int:
    if _running(home):
        _end(home, signal.SIGKILL)
    return 0


def _status(home: Home, _: argparse.Namespace) -> int:
    sys.stdout.write(json.dumps(_ask_status(home)) + "\n")
    return 0


def _inspect(home: Home, _: argparse.Namespace) -> int:
    from .inspection import inspect

    answer = os.dup(1)
    os.dup2(2, 1)  # output of pynq and of its libraries is no part of the answer
    facts = inspect(home.root)
    with os.fdopen(answer, "w") as stdout:
        stdout.write(json.dumps(facts) + "\n")
    return 0


def _log(home: Home, _: argparse.Namespace) -> int:
    for path in (home.log.with_name(home.log.name + ".1"), home.log):
        if path.exists():
            with path.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _LOG_BYTES))
                sys.stdout.buffer.write(file.read())
    sys.stdout.flush()
    return 0


def _install_service(home: Home, _: argparse.Namespace) -> int:
    from .service import ServiceError, install

    try:
        sys.stdout.write(install(home) + "\n")
    except ServiceError as error:
        raise CommandError(str(error)) from None
    return 0


def _remove_service(home: Home, _: argparse.Namespace) -> int:
    from .service import ServiceError, remove

    try:
        sys.stdout.write(remove() + "\n")
    except ServiceError as error:
        raise CommandError(str(error)) from None
    return 0


def _connect(home: Home, _: argparse.Namespace) -> int:
    """Copy with two threads, one for each direction, so that neither waits for the other.

    Ends when the daemon closes.
    """
    from .unix_socket import connect

    try:
        connection = connect(home)
    except (ConnectionRefusedError, FileNotFoundError):
        raise CommandError("no daemon runs: start it first") from None
    threading.Thread(target=_copy_up, args=(connection,), daemon=True).start()
    while True:
        data = connection.recv(1 << 18)
        if not data:
            return 0
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]


def _copy_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            data = os.read(0, 1 << 18)
            if not data:
                break
            connection.sendall(data)
    # The client has said all; its answers may still be on their way.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_WR)


def _daemon(home: Home, options: argparse.Namespace) -> int:
    from .daemon import Daemon
    from .unix_socket import listen

    lock = os.open(str(home.process), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InUseError("a daemon runs already") from None
    os.ftruncate(lock, 0)
    os.write(lock, json.dumps({"pid": os.getpid()}).encode("ascii"))
    _log_to(home)

    def ready() -> None:
        if options.ready is not None:
            os.write(options.ready, b"ready")
            os.close(options.ready)

    virtual = virtual_board()
    kind = virtual.daemon_class() if virtual else Daemon

    async def serve() -> None:
        await kind(home, _agent_hash(), options.silence).run(listen(home), ready)

    asyncio.run(serve())
    return 0


def _worker(home: Home, options: argparse.Namespace) -> int:
    from .worker import die_with_parent

    die_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stderr)
    virtual = virtual_board()
    if virtual:
        virtual.register_device()
    from .worker import run

    return run(options.descriptor, home, virtual.worker_class()) if virtual else run(options.descriptor, home)


def _log_to(home: Home) -> None:
    handler = logging.handlers.RotatingFileHandler(str(home.log), maxBytes=1 << 20, backupCount=1, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def _running(home: Home) -> Optional[int]:
    """Return the process id of the daemon, if one holds the lock."""
    with home.process.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            text = file.read()
            return int(json.loads(text)["pid"]) if text else None
    return None


def _end(home: Home, number: int) -> None:
    """Send the daemon a signal and wait for its end; after a while, kill it."""
    pid = _running(home)
    if pid is None:
        return
    os.kill(pid, number)
    try:
        _wait_for_end(home)
    except CommandError:
        os.kill(pid, signal.SIGKILL)
        _wait_for_end(home)


def _wait_for_end(home: Home) -> None:
    with home.process.open("a+") as file, _alarm(_STOP_SECONDS, "daemon did not end"):
        fcntl.flock(file, fcntl.LOCK_SH)


def _ask_status(home: Home) -> Dict[str, Any]:
    """Return the daemon's StatusReport.

    Raises CommandError or OSError if it gives none that this version understands.
    """
    from .protocol import ProtocolError, StatusReport, from_frame

    try:
        message = from_frame(_ask(home))[1]
    except ProtocolError as error:
        raise CommandError("daemon is of another version: {}".format(error)) from None
    if not isinstance(message, StatusReport):
        raise CommandError("daemon gave no status")
    return message.to_fields()


def _ask_any_version(home: Home) -> Dict[str, Any]:
    """Return the status report of a daemon of this protocol version or an older one, in its own words.

    Raises CommandError, OSError, ProtocolError (also of a newer version).
    """
    from .protocol import OLDER_VERSIONS, VersionError

    try:
        return _ask(home).header
    except VersionError as error:
        if error.theirs not in OLDER_VERSIONS:
            raise
        return _ask(home, error.theirs).header


def _ask(home: Home, version: Optional[int] = None) -> "Frame":
    """Return the daemon's answer to a status request, which every version spells alike.

    `version`: of the protocol; this side's unless given. Raises CommandError, OSError, ProtocolError.
    """
    from .protocol import PROTOCOL_VERSION, AgentStatus, encode_frame, read_frame, to_frame

    version = PROTOCOL_VERSION if version is None else version
    from .unix_socket import connect

    try:
        connection = connect(home)
    except (ConnectionRefusedError, FileNotFoundError):
        raise CommandError("no daemon runs: start it first") from None
    with connection:
        connection.settimeout(_STATUS_SECONDS)
        connection.sendall(encode_frame(to_frame(AgentStatus(), 1), version))
        frame = read_frame(connection.recv, version)
    if frame is None:
        raise CommandError("daemon gave no status")
    return frame


@contextlib.contextmanager
def _alarm(seconds: float, text: str):  # type: ignore[no-untyped-def]  # the context manager's own type says it
    """Interrupt a block that takes longer than `seconds` with CommandError."""

    def interrupt(*_: Any) -> None:
        raise CommandError("{} within {:g} s".format(text, seconds))

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _agent_hash() -> str:
    """Return the SHA-256 of the running archive; empty if the agent runs from a folder."""
    from .worker_process import agent_archive

    archive = agent_archive()
    return hashlib.sha256(archive.read_bytes()).hexdigest() if archive else ""
