"""One client's connection: frames in, messages to the daemon, replies out."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Awaitable, Callable, List, Optional

from .protocol import (
    AgentFailure,
    Frame,
    FrameDecoder,
    FrameError,
    MessageError,
    Record,
    encode_frame,
    from_frame,
    request_id,
    to_frame,
)

_LOG = logging.getLogger("hilt.session")
_READ_BYTES = 1 << 18
_WRITE_SECONDS = 60.0
"""A client that takes no reply for so long has a dead link."""

Handler = Callable[["HostSession", int, Record], Awaitable[None]]


class HostSession:
    """A connection. `client` is who said hello and has the lease, else None."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.client: Optional[str] = None
        self.closed = False
        self.heard = time.monotonic()
        """Time of the client's last bytes."""
        self.gone = asyncio.Event()
        """Set when the client has closed its side, or the link is lost: it asks for nothing more."""
        self._reader = reader
        self._writer = writer
        self._pending = 0
        self._answered = asyncio.Condition()
        self._sending = asyncio.Lock()
        """A lock: until Python 3.10, two tasks that wait for the same link to take more end in an AssertionError."""

    async def serve(self, handle: Handler) -> None:
        """Serve until the client closes its side and has its answers, the link breaks, or the bytes are no protocol."""
        decoder = FrameDecoder()
        try:
            while not self.closed:
                data = await self._reader.read(_READ_BYTES)
                self.heard = time.monotonic()
                if not data:
                    self.gone.set()
                    decoder.end()
                    break
                frames: List[Frame] = decoder.feed(data)
                for frame in frames:
                    await self._dispatch(frame, handle)
            async with self._answered:
                await self._answered.wait_for(lambda: self._pending == 0 or self.closed)
        except FrameError as error:
            _LOG.warning("session of %s: %s", self.client, error)
            await self.send(0, AgentFailure(code="bad_message", message=str(error)))
        except (ConnectionError, OSError) as error:
            _LOG.info("session of %s: link lost: %s", self.client, error)
        finally:
            await self.close()

    def expect(self) -> None:
        """Note a request that waits for the device: its answer is due even if the client closes its side."""
        self._pending += 1

    async def answer(self, request: int, reply: Record) -> None:
        """Send the reply to a request that was expected."""
        await self.send(request, reply)
        self._pending -= 1
        async with self._answered:
            self._answered.notify_all()

    async def send(self, request: int, reply: Record) -> None:
        """Send a reply.

        A link that is broken or takes nothing closes the session; results are in the journal anyway.
        """
        async with self._sending:
            if self.closed:
                return
            try:
                self._writer.write(encode_frame(to_frame(reply, request)))
                await asyncio.wait_for(self._writer.drain(), _WRITE_SECONDS)
            except (ConnectionError, OSError, asyncio.TimeoutError):
                await self.close()

    async def close(self) -> None:
        """Close at once; answers that are still due are dropped."""
        self.closed = True
        self.gone.set()
        self._writer.close()
        async with self._answered:
            self._answered.notify_all()

    async def _dispatch(self, frame: Frame, handle: Handler) -> None:
        request = request_id_of(frame)
        try:
            request, message = from_frame(frame)
        except MessageError as error:
            await self.send(request, AgentFailure(code="bad_message", message=str(error)[:4096]))
            return
        await handle(self, request, message)


def request_id_of(frame: Frame) -> int:
    """Return the id of a frame, 0 if it has none that is valid."""
    try:
        return request_id(frame)
    except MessageError:
        return 0
