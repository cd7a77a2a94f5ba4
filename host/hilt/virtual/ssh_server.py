"""The SSH server of a virtual board: public keys only, commands and SFTP in the board's home. A process of its own.

`python -m hilt.virtual.ssh_server NAME BOOT_ID` writes {"port": N, "pid": P} on standard output once it accepts.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

import asyncssh

from hilt import paths
from hilt.virtual.directory import USER, BoardDirectory

_CHUNK_BYTES = 1 << 16


async def serve(directory: BoardDirectory, boot_id: str) -> None:
    """Serve until the process is killed, as a board's server does."""
    environment = session_environment(directory, boot_id)

    async def run_command(process: asyncssh.SSHServerProcess[bytes]) -> None:
        await _run_command(process, directory, environment)

    options = asyncssh.SSHServerConnectionOptions(
        server_host_keys=[str(directory.host_key)],
        authorized_client_keys=str(directory.authorized_keys),
        public_key_auth=True,
        password_auth=False,
        kbdint_auth=False,
        host_based_auth=False,
        agent_forwarding=False,
        allow_pty=False,
        allow_scp=False,
        login_timeout=30,
        encoding=None,
        server_factory=_OneUser,
        process_factory=run_command,
        sftp_factory=lambda channel: asyncssh.SFTPServer(channel, chroot=os.fsencode(directory.home)),
    )
    listener = await _listen(directory, options)
    port = listener.get_port()
    directory.port.write_text(f"{port}\n", encoding="ascii")
    sys.stdout.write(json.dumps({"port": port, "pid": os.getpid()}) + "\n")
    sys.stdout.flush()
    await listener.wait_closed()


def session_environment(directory: BoardDirectory, boot_id: str) -> dict[str, str]:
    """Return the environment of every session, as from /etc/environment. Nothing of the host's own leaks in."""
    return {
        "HOME": str(directory.home),
        "USER": USER,
        "LOGNAME": USER,
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        "PATH": f"{directory.commands}:{paths.board_python().parent}:/usr/local/bin:/usr/bin:/bin",
        "HILT_VERILATED": str(directory.board_model),
        "HILT_BOOT_ID": boot_id,
        "HILT_INIT_PID": str(os.getppid()),
        "HILT_CHAOS": str(directory.chaos),
    }


class _OneUser(asyncssh.SSHServer):
    """A server that knows only the board's user; it answers others as OpenSSH does: none of their keys is accepted."""

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn

    def public_key_auth_supported(self) -> bool:
        return True

    def begin_auth(self, username: str) -> bool:
        if username != USER:
            self._connection.set_authorized_keys(None)
        return True


async def _listen(directory: BoardDirectory, options: asyncssh.SSHServerConnectionOptions) -> asyncssh.SSHAcceptor:
    """Listen on the port of the last boot if it is free still, else on any."""
    try:
        usual = int(directory.port.read_text(encoding="ascii"))
    except (OSError, ValueError):
        usual = 0
    try:
        return await asyncssh.listen("127.0.0.1", usual, options=options)
    except (OSError, OverflowError):
        return await asyncssh.listen("127.0.0.1", 0, options=options)


async def _run_command(
    process: asyncssh.SSHServerProcess[bytes], directory: BoardDirectory, environment: dict[str, str]
) -> None:
    if process.command is None:
        process.stderr.write(b"this virtual board runs commands; it has no interactive shell\n")
        process.exit(1)
        return
    child = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        process.command,
        cwd=directory.home,
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdin and child.stdout and child.stderr
    feeding = asyncio.create_task(_feed(process.stdin, child.stdin))
    cutter = LinkCutter(directory, process.get_extra_info("connection"))
    await asyncio.gather(_drain(child.stdout, process.stdout, cutter), _drain(child.stderr, process.stderr))
    status = await child.wait()
    feeding.cancel()
    if status < 0:
        process.exit_with_signal(_SIGNALS.get(-status, "TERM"))
    else:
        process.exit(status)


_SIGNALS = {1: "HUP", 2: "INT", 6: "ABRT", 9: "KILL", 11: "SEGV", 13: "PIPE", 15: "TERM"}


async def _feed(source: asyncssh.SSHReader[bytes], target: asyncio.StreamWriter) -> None:
    """Copy until the client's end of input or the loss of its connection; both close the child's input."""
    try:
        while data := await source.read(_CHUNK_BYTES):
            target.write(data)
            await target.drain()
    except (OSError, asyncssh.Error):
        pass
    finally:
        target.close()


class LinkCutter:
    """Cuts a session in the middle of a frame, or ends the server with all sessions, when the board's chaos says so."""

    def __init__(self, directory: BoardDirectory, connection: asyncssh.SSHServerConnection) -> None:
        self._directory = directory
        self._connection = connection

    @property
    def wanted(self) -> bool:
        return any((self._directory.chaos / name).exists() for name in ("cut", "gone"))

    def cut(self) -> None:
        if self._directory.take_chaos("gone") is not None:
            os._exit(1)
        if self._directory.take_chaos("cut") is not None:
            self._connection.abort()


async def _drain(
    source: asyncio.StreamReader, target: asyncssh.SSHWriter[bytes], cutter: LinkCutter | None = None
) -> None:
    """Copy until the child closes its stream.

    Data that cannot be delivered any more is dropped, so that the child can end.
    """
    delivering = True
    while data := await source.read(_CHUNK_BYTES):
        if delivering:
            try:
                if cutter is not None and cutter.wanted:
                    target.write(data[: len(data) // 2])  # the frame that this belongs to never ends
                    cutter.cut()
                    continue
                target.write(data)
                await target.drain()
            except (OSError, asyncssh.Error):
                delivering = False


def main() -> None:
    name, boot_id = sys.argv[1:]
    os.umask(0o077)
    asyncio.run(serve(BoardDirectory(name), boot_id))


if __name__ == "__main__":
    main()
