"""Frames: the bytes on the wire. Bounded, versioned and checksummed; nothing is allocated before its size is accepted.

Layout (docs/protocol.md), little endian: a 24-byte prefix, a UTF-8 JSON object, a binary body.

    0  magic "HILT"      4  version u16     6  flags u16 (0)      8  JSON bytes u32
    12 body bytes u32    16 crc32 of JSON and body               20 crc32 of the prefix's first 20 bytes
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional

PROTOCOL_VERSION = 2
"""1: messages and fields under other names (docs/protocol.md, Versions)."""
OLDER_VERSIONS = (1,)
"""Versions whose `status` an agent of this version can ask, to replace their daemon."""
MAGIC = b"HILT"
PREFIX_BYTES = 24
MAX_HEADER_BYTES = 1 << 20
MAX_BODY_BYTES = 64 << 20

_PREFIX = struct.Struct("<4sHHIIII")


class ProtocolError(Exception):
    """The received bytes are not the protocol; the connection cannot be used further. The base of all errors here."""


class FrameError(ProtocolError):
    """Bytes that are not a frame: wrong magic, size out of bounds, checksum, or no JSON object."""


class VersionError(FrameError):
    """The peer speaks another version of the protocol."""

    def __init__(self, theirs: int) -> None:
        super().__init__(
            "peer speaks protocol version {}, this side speaks {}: install the same hilt on both".format(
                theirs, PROTOCOL_VERSION
            )
        )
        self.theirs = theirs


class TruncatedError(FrameError):
    """The stream ended within a frame."""


@dataclass(frozen=True)
class Frame:
    """One frame: a JSON object and a binary body."""

    header: Dict[str, Any]
    body: bytes = b""


@dataclass(frozen=True)
class _Prefix:
    header_bytes: int
    body_bytes: int
    checksum: int


def encode_frame(frame: Frame, version: int = PROTOCOL_VERSION) -> bytes:
    """Return the bytes of a frame. Raises FrameError if it exceeds MAX_HEADER_BYTES or MAX_BODY_BYTES."""
    try:
        header = json.dumps(frame.header, separators=(",", ":"), allow_nan=False, sort_keys=True).encode("utf-8")
    except (TypeError, ValueError, UnicodeError, RecursionError) as error:
        raise FrameError("header cannot be written as JSON: {}".format(error)) from None
    _check_sizes(len(header), len(frame.body))
    checksum = zlib.crc32(frame.body, zlib.crc32(header))
    start = struct.pack("<4sHHIII", MAGIC, version, 0, len(header), len(frame.body), checksum)
    return b"".join((start, struct.pack("<I", zlib.crc32(start)), header, frame.body))


class FrameDecoder:
    """An incremental decoder: `feed` takes the received bytes and returns the completed frames.

    It holds at most one frame and the bytes of the last call. After an error it stays in error: a byte stream that
    lost its framing cannot be trusted again.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._prefix: Optional[_Prefix] = None
        self._error: Optional[FrameError] = None

    def feed(self, data: bytes) -> List[Frame]:
        """Return the frames completed by `data`, in order. Raises FrameError (and again at every later call)."""
        if self._error is not None:
            raise self._error
        self._buffer += data
        frames: List[Frame] = []
        try:
            frame = self._take()
            while frame is not None:
                frames.append(frame)
                frame = self._take()
        except FrameError as error:
            self._error = error
            self._buffer.clear()
            # Frames before the fault are whole; the error waits for the next call.
            if frames:
                return frames
            raise
        return frames

    def end(self) -> None:
        """End the stream. Raises TruncatedError within a frame, or the error that is pending."""
        if self._error is not None:
            raise self._error
        if self._buffer:
            raise TruncatedError("stream ended within a frame, after {} bytes".format(len(self._buffer)))

    def _take(self) -> Optional[Frame]:
        if self._prefix is None:
            # A wrong magic is refused at its first byte, not after the prefix that would never come.
            _check_magic(bytes(self._buffer[:4]))
            if len(self._buffer) < PREFIX_BYTES:
                return None
            self._prefix = _parse_prefix(bytes(self._buffer[:PREFIX_BYTES]))
        end = PREFIX_BYTES + self._prefix.header_bytes + self._prefix.body_bytes
        if len(self._buffer) < end:
            return None
        middle = PREFIX_BYTES + self._prefix.header_bytes
        with memoryview(self._buffer) as view:
            header, body = bytes(view[PREFIX_BYTES:middle]), bytes(view[middle:end])
        del self._buffer[:end]
        prefix, self._prefix = self._prefix, None
        return _build(prefix, header, body)


def read_frame(read: Callable[[int], bytes], version: int = PROTOCOL_VERSION) -> Optional[Frame]:
    """Read the next frame, blocking, from `read(n)`, which returns 1..n bytes, or b"" at the end of the stream.

    Returns None if the stream ends between frames. Raises FrameError; errors of `read` pass through.
    """
    start = _read_exactly(read, PREFIX_BYTES, at_boundary=True)
    if not start:
        return None
    prefix = _parse_prefix(start, version)
    return _build(prefix, _read_exactly(read, prefix.header_bytes), _read_exactly(read, prefix.body_bytes))


def _read_exactly(read: Callable[[int], bytes], count: int, at_boundary: bool = False) -> bytes:
    data = bytearray()
    while len(data) < count:
        shard = read(min(count - len(data), 1 << 20))
        if not shard:
            if at_boundary and not data:
                return b""
            raise TruncatedError("stream ended within a frame: {} of {} bytes".format(len(data), count))
        data += shard
    return bytes(data)


def _parse_prefix(data: bytes, expected: int = PROTOCOL_VERSION) -> _Prefix:
    magic, version, flags, header_bytes, body_bytes, checksum, own_checksum = _PREFIX.unpack(data)
    _check_magic(magic)
    if zlib.crc32(data[:20]) != own_checksum:
        raise FrameError("checksum of the frame's prefix does not match: the stream is damaged")
    if version != expected:
        raise VersionError(version)
    if flags != 0:
        raise FrameError("unknown flags 0x{:04x} in a frame of version {}".format(flags, version))
    _check_sizes(header_bytes, body_bytes)
    return _Prefix(header_bytes, body_bytes, checksum)


def _check_magic(magic: bytes) -> None:
    if not MAGIC.startswith(magic):
        raise FrameError("not a hilt frame: it starts with {!r}".format(magic))


def _check_sizes(header_bytes: int, body_bytes: int) -> None:
    if not 2 <= header_bytes <= MAX_HEADER_BYTES:
        raise FrameError("frame header of {} bytes: allowed are 2 to {}".format(header_bytes, MAX_HEADER_BYTES))
    if body_bytes > MAX_BODY_BYTES:
        raise FrameError("frame body of {} bytes: allowed are {}".format(body_bytes, MAX_BODY_BYTES))


def _build(prefix: _Prefix, header: bytes, body: bytes) -> Frame:
    if zlib.crc32(body, zlib.crc32(header)) != prefix.checksum:
        raise FrameError("checksum of the frame does not match: the stream is damaged")
    try:
        value = json.loads(header.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise FrameError("frame header is no JSON: {}".format(error)) from None
    if not isinstance(value, dict):
        raise FrameError("frame header is no JSON object but {}".format(type(value).__name__))
    return Frame(value, body)


def _refuse_constant(name: str) -> Any:
    raise ValueError("{} is not JSON".format(name))
