"""Random and mutated frames against the protocol's two readers. `python -m tests.fuzz` feeds a million.

The only allowed results are messages, FrameError and MessageError. A reader never takes long, and never takes more
memory than its input may need.
"""

from __future__ import annotations

import random
import time
import tracemalloc
from dataclasses import dataclass

from hilt_board.protocol import (
    Frame,
    FrameDecoder,
    FrameError,
    MessageError,
    encode_frame,
    from_frame,
    read_frame,
    to_frame,
)
from tests.unit.board.examples import MESSAGES
from tests.unit.board.test_protocol import mutate

MOST_BYTES = 1 << 20
"""The most bytes that a reader may hold: no stream here is longer than some tens of thousands of bytes."""
_WRONG = (None, True, -1, 0, 1 << 63, 1 << 70, 0.5, 1e308, "", "x" * 300, "\ud7ff\x00", [], [1, [2]], {}, {"a": {}})
_WEIGHED_EVERY = 50
"""Streams between two whose memory is measured, for measuring takes longer than reading."""


@dataclass
class RunStatistics:
    """The statistics of the frames that were fed."""

    frames: int = 0
    messages: int = 0
    refused_frames: int = 0
    refused_messages: int = 0
    slowest_seconds: float = 0.0
    most_bytes: int = 0


def fuzz(frames: int, seed: int) -> RunStatistics:
    """Raises whatever a reader raises that is no error of the protocol."""
    generator = random.Random(seed)
    statistics = RunStatistics()
    streams = 0
    while statistics.frames < frames:
        stream, count = _stream(generator)
        statistics.frames += count
        streams += 1
        if streams % _WEIGHED_EVERY == 0:
            statistics.most_bytes = max(statistics.most_bytes, _weighed(stream, generator, statistics))
            continue
        began = time.thread_time()
        _read(stream, generator, statistics)
        statistics.slowest_seconds = max(statistics.slowest_seconds, time.thread_time() - began)
    return statistics


def _weighed(stream: bytes, generator: random.Random, statistics: RunStatistics) -> int:
    """Bytes that reading it took at most."""
    tracemalloc.start()
    try:
        _read(stream, generator, statistics)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _stream(generator: random.Random) -> tuple[bytes, int]:
    """Some frames: bytes that were changed, fields that were changed below a checksum that is right, or noise."""
    count = generator.randint(1, 8)
    kind = generator.randrange(4)
    if kind == 0:
        return generator.randbytes(generator.randint(0, 200)), 1
    messages = generator.choices(MESSAGES, k=count)
    if kind == 1:
        return b"".join(_changed_field(to_frame(each, n), generator) for n, each in enumerate(messages)), count
    stream = bytearray(b"".join(encode_frame(to_frame(each, n)) for n, each in enumerate(messages)))
    for _ in range(generator.randint(0, 3)):
        mutate(stream, generator)
    return bytes(stream), count


def _changed_field(frame: Frame, generator: random.Random) -> bytes:
    header = dict(frame.header)
    name = generator.choice(sorted(header))
    if generator.randrange(4) == 0:
        del header[name]
    else:
        header[name if generator.randrange(8) else name + "x"] = generator.choice(_WRONG)
    return encode_frame(Frame(header, frame.body[: generator.choice((None, 0, 7))]))


def _read(stream: bytes, generator: random.Random, statistics: RunStatistics) -> None:
    if generator.randrange(2):
        frames = _incrementally(stream, generator, statistics)
    else:
        frames = _blocking(stream, generator, statistics)
    for frame in frames:
        try:
            from_frame(frame)
            statistics.messages += 1
        except MessageError:
            statistics.refused_messages += 1


def _incrementally(stream: bytes, generator: random.Random, statistics: RunStatistics) -> list[Frame]:
    decoder, frames = FrameDecoder(), []
    step = generator.choice((1, 30, 100, 1000, 1 << 20, 1 << 20)) if len(stream) < 2000 else 1 << 12
    try:
        for place in range(0, len(stream), step):
            frames += decoder.feed(stream[place : place + step])
        decoder.end()
    except FrameError:
        statistics.refused_frames += 1
    return frames


def _blocking(stream: bytes, generator: random.Random, statistics: RunStatistics) -> list[Frame]:
    place, frames = 0, []

    def read(most: int) -> bytes:
        nonlocal place
        data = stream[place : place + min(most, generator.choice((20, 100, 1 << 20)) if len(stream) < 2000 else most)]
        place += len(data)
        return data

    try:
        while (frame := read_frame(read)) is not None:
            frames.append(frame)
    except FrameError:
        statistics.refused_frames += 1
    return frames
