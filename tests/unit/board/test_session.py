"""A session with a client whose link accepts no more data for a while."""

from __future__ import annotations

import asyncio

import pytest

from hilt_board import session as module
from hilt_board.protocol import AgentFailure, BlobStored, FrameDecoder, from_frame
from hilt_board.session import HostSession

from .examples import DIGEST


class StalledLink:
    """A writer whose link accepts nothing until the test opens it.

    It is like asyncio's before Python 3.10: one task may wait for it.
    """

    def __init__(self) -> None:
        self.written = bytearray()
        self.flows = asyncio.Event()
        self._waits = False

    def write(self, data: bytes) -> None:
        self.written += data

    async def drain(self) -> None:
        assert not self._waits
        self._waits = True
        await self.flows.wait()
        self._waits = False

    def close(self) -> None:
        self.flows.set()


def test_replies_at_the_same_time_wait_for_each_other() -> None:
    async def send_three() -> bytes:
        link = StalledLink()
        session = HostSession(asyncio.StreamReader(), link)  # type: ignore[arg-type]
        replies = [
            asyncio.create_task(session.send(request, BlobStored(sha256=DIGEST, received=request, complete=False)))
            for request in (1, 2, 3)
        ]
        await asyncio.sleep(0)
        link.flows.set()
        await asyncio.gather(*replies)
        assert not session.closed
        return bytes(link.written)

    frames = FrameDecoder().feed(asyncio.run(send_three()))
    assert [from_frame(frame)[0] for frame in frames] == [1, 2, 3]


def test_a_client_that_closes_its_side_has_gone_and_one_that_speaks_has_not() -> None:
    async def serve() -> list[bool]:
        reader, link = asyncio.StreamReader(), StalledLink()
        link.flows.set()
        session = HostSession(reader, link)  # type: ignore[arg-type]

        async def handle(*_: object) -> None:
            raise AssertionError

        serving = asyncio.create_task(session.serve(handle))  # type: ignore[arg-type]
        gone = [session.gone.is_set()]
        reader.feed_eof()
        await serving
        return [*gone, session.gone.is_set(), session.closed]

    assert asyncio.run(serve()) == [False, True, True]


def test_bytes_that_are_no_frame_end_the_session_with_an_answer_to_no_request() -> None:
    async def serve() -> tuple[bytes, bool]:
        reader, link = asyncio.StreamReader(), StalledLink()
        link.flows.set()
        session = HostSession(reader, link)  # type: ignore[arg-type]

        async def handle(*_: object) -> None:
            raise AssertionError

        reader.feed_data(b"no frame at all, but many more bytes than a frame's header has")
        await session.serve(handle)  # type: ignore[arg-type]
        return bytes(link.written), session.closed

    written, closed = asyncio.run(serve())
    (frame,) = FrameDecoder().feed(written)
    number, answer = from_frame(frame)
    assert closed and number == 0
    assert isinstance(answer, AgentFailure) and answer.code == "bad_message"
    assert answer.message.startswith("not a hilt frame: it starts with b'no f'")


def test_a_link_that_takes_nothing_closes_the_session_and_a_closed_one_is_told_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_WRITE_SECONDS", 0.01)
    reply = BlobStored(sha256=DIGEST, received=1, complete=False)

    async def send_twice() -> tuple[bool, bool, bytes, bytes]:
        link = StalledLink()
        session = HostSession(asyncio.StreamReader(), link)  # type: ignore[arg-type]
        await session.send(1, reply)
        first = bytes(link.written)
        await session.send(2, reply)
        return session.closed, session.gone.is_set(), first, bytes(link.written)

    closed, gone, first, both = asyncio.run(send_twice())
    assert closed and gone and first == both != b""
