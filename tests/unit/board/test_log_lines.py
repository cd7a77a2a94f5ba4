"""The last words of a dying process, in chunks as CPython and the kernel cut them."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace

import pytest

from hilt_board.log_lines import LogLines
from hilt_board.worker_process import WorkerProcess

REASON = "ValueError: é is no board model"


def last_words(chunks: list[bytes]) -> str:
    """Return the lines that the real method keeps of a worker's standard error."""

    async def hear() -> str:
        stream = asyncio.StreamReader()
        ours, theirs = socket.socketpair()
        worker = WorkerProcess(SimpleNamespace(stderr=stream, pid=0, returncode=None), ours)  # type: ignore[arg-type]
        for chunk in chunks:
            stream.feed_data(chunk)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        stream.feed_eof()
        await worker._stderr
        ours.close()
        theirs.close()
        return " ".join(worker._last_lines)

    return asyncio.run(hear())


@pytest.mark.parametrize("cut", range(len(REASON.encode()) + 2))
def test_a_reason_that_is_cut_anywhere_is_whole(cut: int) -> None:
    data = REASON.encode() + b"\n"
    assert last_words([b"Traceback:\n", data[:cut], data[cut:]]) == REASON


def test_blank_lines_and_a_missing_end_leave_the_reason() -> None:
    assert last_words([b"ValueError", b": ", "é is no board model".encode(), b"\n", b"\n", b"  \n"]) == REASON
    assert last_words([REASON.encode()]) == REASON
    assert last_words([]) == ""


def test_a_line_without_an_end_takes_no_more_than_its_most() -> None:
    lines = LogLines()
    for _ in range(100):
        assert lines.feed(b"x" * 10_000) == []
    assert lines.end() == ["x" * 1000]
