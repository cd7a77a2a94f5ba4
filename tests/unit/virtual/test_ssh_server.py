"""The SSH server of a virtual board: one user with one key, commands and files, and links that are cut on request."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from hilt import paths
from hilt.virtual import ssh_server
from hilt.virtual.directory import USER, BoardDirectory

Link = asyncssh.SSHClientConnection


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BoardDirectory:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    monkeypatch.setenv("SECRET", "of the host")
    made = BoardDirectory("pynq")
    made.create()
    return made


@asynccontextmanager
async def server(directory: BoardDirectory) -> AsyncIterator[int]:
    """Serve; give the port once it is known."""
    directory.port.unlink(missing_ok=True)
    serving = asyncio.create_task(ssh_server.serve(directory, "boot-1"))
    while not directory.port.exists() or not directory.port.read_text():
        assert not serving.done()
        await asyncio.sleep(0)
    try:
        yield int(directory.port.read_text())
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        sessions = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait(sessions or [asyncio.create_task(asyncio.sleep(0))], timeout=30)


def connect(directory: BoardDirectory, port: int, user: str = USER, key: Path | None = None) -> Any:
    host_key = asyncssh.import_public_key(directory.host_public_key())
    return asyncssh.connect(
        "127.0.0.1", port, username=user, config=None, agent_path=None,
        client_keys=[str(key or directory.client_key)], known_hosts=([host_key], [], []),
    )  # fmt: skip


def on_board(directory: BoardDirectory, act: Callable[[Link], Awaitable[Any]]) -> Any:
    """Return what `act` makes of a connection."""

    async def run() -> Any:
        async with server(directory) as port:
            async with connect(directory, port) as link:
                done = await act(link)
            await link.wait_closed()
        return done

    return asyncio.run(run())


def test_commands_get_their_input_and_give_output_errors_and_status(directory: BoardDirectory) -> None:
    async def act(link: Link) -> list[tuple[Any, ...]]:
        commands = ["cat; pwd; echo bad >&2; exit 3", "kill -SEGV $$", "kill -SYS $$", ":"]
        done = [await link.run(each, input=b"some input\n", encoding=None) for each in commands]
        return [(each.exit_status, each.exit_signal and each.exit_signal[0], each.stdout, each.stderr) for each in done]

    said = on_board(directory, act)
    assert said[0] == (3, None, f"some input\n{directory.home}\n".encode(), b"bad\n")
    assert [each[1] for each in said[1:]] == ["SEGV", "TERM", None] and said[3] == (0, None, b"", b"")


def test_large_output_arrives_whole(directory: BoardDirectory) -> None:
    size = 5 * ssh_server._CHUNK_BYTES + 17
    (directory.home / "large").write_bytes(os.urandom(size))

    async def act(link: Link) -> Any:
        return (await link.run("cat large", encoding=None)).stdout

    assert on_board(directory, act) == (directory.home / "large").read_bytes()


def test_a_session_sees_the_boards_environment_and_nothing_of_the_hosts(
    directory: BoardDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(link: Link) -> Any:
        return (await link.run("env")).stdout

    seen = dict(line.split("=", 1) for line in on_board(directory, act).splitlines())
    expected = ssh_server.session_environment(directory, "boot-1")
    assert {name: seen.get(name) for name in expected} == expected
    assert set(seen) - set(expected) <= {"PWD", "OLDPWD", "SHLVL", "_"}
    assert expected["PATH"].split(":")[:2] == [str(directory.commands), str(paths.board_python().parent)]
    assert expected["HILT_INIT_PID"] == str(os.getppid()) and expected["HILT_BOOT_ID"] == "boot-1"


def test_files_are_those_of_the_boards_home(directory: BoardDirectory) -> None:
    async def act(link: Link) -> Any:
        async with link.start_sftp_client() as sftp:
            async with sftp.open("/a/../fresh", "wb") as file:
                await file.write(b"content")
            return await sftp.listdir("/..")

    assert "fresh" in on_board(directory, act)
    assert (directory.home / "fresh").read_bytes() == b"content"


def test_a_shell_is_not_to_be_had(directory: BoardDirectory) -> None:
    async def act(link: Link) -> tuple[Any, ...]:
        done = await link.run()
        return done.exit_status, done.stderr

    assert on_board(directory, act) == (1, "this virtual board runs commands; it has no interactive shell\n")


def test_another_user_and_another_key_are_refused_alike(directory: BoardDirectory) -> None:
    async def refusals() -> list[str]:
        said = []
        async with server(directory) as port:
            for user, key in (("root", None), (USER, directory.host_key)):
                with pytest.raises(asyncssh.PermissionDenied) as refused:
                    await connect(directory, port, user, key)
                said.append(str(refused.value))
        return [each.replace("root", USER) for each in said]

    first, second = asyncio.run(refusals())
    assert first == second


def test_it_says_its_port_once_it_accepts(directory: BoardDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    async def act(link: Link) -> int:
        return int(link.get_extra_info("peername")[1])

    port = on_board(directory, act)
    assert json.loads(capsys.readouterr().out) == {"port": port, "pid": os.getpid()}


@pytest.mark.parametrize("text", [None, "", "port\n", "99999\n", "-1\n", "busy"])
def test_it_takes_the_port_of_its_last_boot_where_it_can(directory: BoardDirectory, text: str | None) -> None:
    options = asyncssh.SSHServerConnectionOptions(server_host_keys=[str(directory.host_key)])

    async def port_of(expected: str | None) -> int:
        if expected is None:
            directory.port.unlink(missing_ok=True)
        else:
            directory.port.write_text(expected)
        listener = await ssh_server._listen(directory, options)
        port = int(listener.get_port())
        listener.close()
        await listener.wait_closed()
        return port

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        busy = int(other.getsockname()[1])
        first = asyncio.run(port_of(f"{busy}\n" if text == "busy" else text))
        assert first > 0 and first != busy
    assert asyncio.run(port_of(f"{first}\n")) == first


def test_a_link_is_cut_in_the_middle_of_what_it_carries(directory: BoardDirectory) -> None:
    async def act(link: Link) -> tuple[bytes, bool]:
        (directory.chaos / "cut").touch()
        async with link.create_process("printf 12345678; cat", encoding=None) as process:
            heard = await process.stdout.read()
        await link.wait_closed()
        return heard, link.is_closed()

    heard, closed = on_board(directory, act)
    assert closed and heard in (b"", b"1234")
    assert not (directory.chaos / "cut").exists(), "once"


def test_a_server_that_is_to_go_ends_with_all_its_sessions(
    directory: BoardDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    class EndedError(Exception):
        pass

    def end(code: int) -> None:
        assert code == 1
        raise EndedError

    class Aborted:
        aborted = 0

        def abort(self) -> None:
            self.aborted += 1

    monkeypatch.setattr(ssh_server.os, "_exit", end)
    link = Aborted()
    cutter = ssh_server.LinkCutter(directory, link)  # type: ignore[arg-type]
    assert not cutter.wanted
    cutter.cut()
    assert link.aborted == 0
    for name in ("cut", "gone"):
        (directory.chaos / name).touch()
    assert cutter.wanted
    with pytest.raises(EndedError):
        cutter.cut()
    assert cutter.wanted and link.aborted == 0
    cutter.cut()
    assert link.aborted == 1 and not cutter.wanted


class Writer:
    """A client's end that takes so many writes."""

    def __init__(self, writes: int) -> None:
        self.heard: list[bytes] = []
        self._writes = writes

    def write(self, data: bytes) -> None:
        if len(self.heard) == self._writes:
            raise BrokenPipeError
        self.heard.append(data)

    async def drain(self) -> None:
        pass


def test_a_child_may_say_all_after_its_client_has_gone() -> None:
    async def drained() -> tuple[Writer, bool]:
        source, target = asyncio.StreamReader(), Writer(1)
        source.feed_data(b"first")
        draining = asyncio.create_task(ssh_server._drain(source, target))  # type: ignore[arg-type]
        for data in (b"second", b"third"):
            for _ in range(5):
                await asyncio.sleep(0)
            source.feed_data(data)
        source.feed_eof()
        await draining
        return target, source.at_eof()

    target, all_read = asyncio.run(drained())
    assert target.heard == [b"first"] and all_read
