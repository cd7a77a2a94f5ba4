"""The engine's socket: events to every client, commands from any. It never waits for a client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from hilt.engine.events import (
    MAX_COMMAND_BYTES,
    BoardChanged,
    EngineCommand,
    EngineHello,
    EngineProtocolError,
    Event,
    Logged,
    TrialRecorded,
    event_line,
    parse_command,
)
from hilt.engine.run_files import RunFiles

MAX_UNSENT_BYTES = 1024 * 1024
"""A client that leaves more than this unread is dropped."""
MAX_CLIENTS = 32
_CLOSING_SECONDS = 2.0


class EngineServer:
    """Serves from a thread of its own until closed; `publish` may be called from any thread and does not block."""

    def __init__(self, files: RunFiles, hello: EngineHello, obey: Callable[[EngineCommand], None]) -> None:
        self._hello = hello
        self._obey = obey
        self._clients: set[asyncio.StreamWriter] = set()
        self._latest: dict[tuple[str, str], Event] = {}
        self._listener = files.listen()
        self._socket_path = files.socket_path
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name="engine-server", daemon=True)
        self._thread.start()

    def publish(self, event: Event) -> None:
        with suppress(RuntimeError):  # closed: nobody listens any more
            self._loop.call_soon_threadsafe(self._send_to_all, event)

    def obey(self, command: EngineCommand) -> None:
        """Obey a command as if a client had sent it.

        For signal handlers too: they interrupt a thread that may hold any lock, so the server's thread does the work.
        """
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._obey, command)

    def close(self) -> None:
        """Give clients a moment to read, then close; the socket's file is removed."""
        self._socket_path.unlink(missing_ok=True)
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()

    def __enter__(self) -> EngineServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve_until_closed())
        self._loop.close()

    async def _serve_until_closed(self) -> None:
        server = await asyncio.start_unix_server(self._talk, sock=self._listener, limit=MAX_COMMAND_BYTES)
        await self._closing.wait()
        server.close()
        await self._say_farewell()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) >= MAX_CLIENTS:  # a client knows by the first event, which is no Hello
            text = f"{MAX_CLIENTS} are attached to the engine, and it takes no more; close one of them"
            self._send(writer, Logged("error", text, 0.0))
            writer.close()
            return
        self._clients.add(writer)
        self._send(writer, self._hello)
        for event in self._latest.values():
            self._send(writer, event)
        try:
            while line := await reader.readline():
                self._obey(parse_command(line))
        except (EngineProtocolError, ValueError) as error:  # ValueError: a line past the limit
            self._send(writer, Logged("error", f"command refused: {error}", 0.0))
            writer.close()
        except OSError:
            pass
        finally:
            self._clients.discard(writer)
            writer.close()

    def _send_to_all(self, event: Event) -> None:
        if not isinstance(event, TrialRecorded | Logged):  # of trials a newcomer reads in the store, logs are past
            self._latest[event.kind, event.board if isinstance(event, BoardChanged) else ""] = event
        for writer in list(self._clients):
            self._send(writer, event)

    def _send(self, writer: asyncio.StreamWriter, event: Event) -> None:
        if writer.transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self._clients.discard(writer)
            writer.transport.abort()
        else:
            writer.write(event_line(event))

    async def _say_farewell(self) -> None:
        for writer in self._clients:
            writer.close()
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(_CLOSING_SECONDS):
                for writer in list(self._clients):
                    await writer.wait_closed()
        talking = [task for task in asyncio.all_tasks(self._loop) if task is not asyncio.current_task()]
        for task in talking:
            task.cancel()
        await asyncio.gather(*talking, return_exceptions=True)
