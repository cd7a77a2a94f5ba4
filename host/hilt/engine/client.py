"""A client of a running engine: its events in, commands out. Closing a client stops nothing."""

from __future__ import annotations

import asyncio
import select
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from hilt.engine.events import (
    MAX_EVENT_BYTES,
    EngineCommand,
    EngineProtocolError,
    Event,
    Logged,
    command_line,
    parse_event,
)
from hilt.engine.run_files import RunFiles

_READ_BYTES = 64 * 1024
_HELLO_SECONDS = 5.0


class NoEngineError(ConnectionError):
    """No engine runs this run now."""


class SilentEngineError(NoEngineError):
    """A process holds the run and takes connections, and says nothing: stopped, or far too busy."""


class CrowdedEngineError(NoEngineError):
    """An engine runs, and serves as many clients as it takes."""


class EngineClient:
    """A connection to the engine of a run. Read events from one thread or one asyncio task; send from any.

    When the events end without a `finished`, the engine is gone: the run can be resumed.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._connection.setblocking(False)
        self._sending = threading.Lock()
        self._unread = b""

    @classmethod
    def attach(cls, home: Path, uuid: str) -> EngineClient:
        """Connect to the engine of the run or campaign with this whole uuid.

        Every trial that is not in the store when this returns will be among the events. It may take seconds.

        Raises NoEngineError, EngineProtocolError.
        """
        try:
            client = cls(RunFiles(home, uuid).connect())
        except BlockingIOError as error:
            raise SilentEngineError("the engine takes no more connections; is its process stopped?") from error
        except OSError as error:
            raise NoEngineError(f"no engine is running run {uuid[:8]}; `hilt resume {uuid[:8]}` starts one") from error
        try:
            client._wait_for_hello()
        except BaseException:
            client.close()
            raise
        return client

    def events(self, timeout: float | None = None) -> Iterator[Event]:
        """Yield events as they come; end when the engine closes, or when `timeout` seconds pass without one.

        It may be called again after a timeout. Raises EngineProtocolError.
        """
        while True:
            yield from self._parsed()
            if not select.select([self._connection], [], [], timeout)[0]:
                return
            try:
                received = self._connection.recv(_READ_BYTES)
            except BlockingIOError:
                continue
            except OSError:  # reset: the engine was killed, or this client was too slow
                return
            if not received:
                return
            self._take(received)

    async def stream(self) -> AsyncIterator[Event]:
        """Yield events as they come, in asyncio; end when the engine closes. Raises EngineProtocolError."""
        loop = asyncio.get_running_loop()
        while True:
            for event in self._parsed():
                yield event
            try:
                received = await loop.sock_recv(self._connection, _READ_BYTES)
            except OSError:
                return
            if not received:
                return
            self._take(received)

    def send(self, command: EngineCommand, timeout: float = 5.0) -> None:
        """Send a command. Raises NoEngineError when the engine is gone."""
        unsent = memoryview(command_line(command))
        deadline = time.monotonic() + timeout
        with self._sending:
            while unsent:
                try:
                    unsent = unsent[self._connection.send(unsent) :]
                except BlockingIOError as error:
                    if not select.select([], [self._connection], [], max(0.0, deadline - time.monotonic()))[1]:
                        raise NoEngineError("the engine does not take commands; is its process stopped?") from error
                except OSError as error:
                    raise NoEngineError("the engine is gone; `hilt resume` goes on with its run") from error

    def leave(self, timeout: float = 5.0) -> None:
        """Close once the engine has obeyed all commands.

        The engine may write to this client before it reads them, and a closed socket would lose them. Raises
        NoEngineError when it does not obey within `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        with self:
            try:
                self._connection.shutdown(socket.SHUT_WR)
                while select.select([self._connection], [], [], max(0.0, deadline - time.monotonic()))[0]:
                    if not self._connection.recv(_READ_BYTES):
                        return
            except OSError as error:
                raise NoEngineError("the engine is gone; `hilt resume` goes on with its run") from error
            raise NoEngineError("the engine does not take commands; is its process stopped?")

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> EngineClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait_for_hello(self) -> None:
        """Skip to the first event, which stays among the events."""
        deadline = time.monotonic() + _HELLO_SECONDS
        while b"\n" not in self._unread:
            received = b""
            if not select.select([self._connection], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise SilentEngineError("the engine does not answer; is its process stopped?")
            with suppress(OSError):
                received = self._connection.recv(_READ_BYTES)
            if not received:
                raise NoEngineError("the engine ended just now")
            self._take(received)
        first = parse_event(self._unread.partition(b"\n")[0])
        if isinstance(first, Logged):
            raise CrowdedEngineError(first.text)

    def _take(self, received: bytes) -> None:
        self._unread += received
        if len(self._unread) > MAX_EVENT_BYTES and b"\n" not in self._unread:
            raise EngineProtocolError(f"an event longer than {MAX_EVENT_BYTES} bytes")

    def _parsed(self) -> Iterator[Event]:
        *lines, self._unread = self._unread.split(b"\n")
        for place, line in enumerate(lines):
            try:
                yield parse_event(line)
            except GeneratorExit:  # the unread lines stay for the next reader
                self._unread = b"\n".join([*lines[place + 1 :], self._unread])
                raise
