"""Reader of Xilinx .bit files: header fields and where the payload is. Pure Python, reads the header only.

Layout, big endian: uint16 length and that many bytes (0009 and 0ff0 0ff0 0ff0 0ff0 00), uint16 0001, then fields, each
with a tag byte: `a` design, `b` part, `c` date, `d` time (uint16 length, text, NUL), and last `e`: uint32 length of the
payload, which ends the file. The design is "name;UserID=...;Version=...". The payload is configuration data; on a
virtual board, the shared library of the model.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Dict, Tuple

PREAMBLE = bytes.fromhex("0009 0ff0 0ff0 0ff0 0ff0 00 0001")
_TEXT_TAGS = {b"a": "design", b"b": "part", b"c": "date", b"d": "time"}


class BitfileError(Exception):
    """A .bit file that cannot be used. The base of the errors below; the message names the file."""


class NotABitfileError(BitfileError):
    """The bytes do not follow the .bit layout."""


class TruncatedBitfileError(BitfileError):
    """The file is shorter (or longer) than its header says."""


class WrongPartError(BitfileError):
    """Built for another FPGA."""


@dataclass(frozen=True)
class Bitfile:
    """A .bit file's header. `payload_offset` and `payload_bytes` are in bytes of the file."""

    path: Path
    design: str
    """The design name as in the file: a name and, after semicolons, UserID and Version."""
    part: str
    """The part name as in the file, for example "7z020clg484" or "xczu7ev-ffvc1156-2-e"."""
    date: str
    time: str
    payload_offset: int
    payload_bytes: int

    @property
    def name(self) -> str:
        """The design's own name."""
        return self.design.split(";")[0]

    def require_part(self, part: str) -> None:
        """Raise WrongPartError unless this is for `part`, with or without the "xc" that 7-series headers leave out."""
        if _plain_part(self.part) != _plain_part(part):
            raise WrongPartError(
                "{} is for part {}, this board has {}: use the bitstream of this board".format(
                    self.path.name, self.part, part
                )
            )

    def payload(self) -> bytes:
        """Return the payload. Raises TruncatedBitfileError if the file has changed since its header was read."""
        with self.path.open("rb") as file:
            file.seek(self.payload_offset)
            data = file.read(self.payload_bytes)
        if len(data) != self.payload_bytes:
            raise TruncatedBitfileError("{} changed while it was read".format(self.path.name))
        return data


def read_bitfile(path: Path) -> Bitfile:
    """Return the header of a .bit file. Raises NotABitfileError, TruncatedBitfileError or OSError."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if _exactly(file, len(PREAMBLE), path) != PREAMBLE:
            raise NotABitfileError("{} is no .bit file: it does not start as one".format(path.name))
        fields, payload_bytes = _fields(file, path)
        offset = file.tell()
    missing = sorted(set(_TEXT_TAGS.values()) - set(fields))
    if missing:
        raise NotABitfileError("{} is no complete .bit file: its header lacks the {}".format(path.name, missing[0]))
    if size - offset != payload_bytes:
        raise TruncatedBitfileError(
            "{} is truncated or damaged: its header announces {} bytes of payload, it holds {}".format(
                path.name, payload_bytes, size - offset
            )
        )
    return Bitfile(path=path, payload_offset=offset, payload_bytes=payload_bytes, **fields)


def _fields(file: BinaryIO, path: Path) -> Tuple[Dict[str, str], int]:
    fields: Dict[str, str] = {}
    while True:
        tag = _exactly(file, 1, path)
        if tag == b"e":
            return fields, struct.unpack(">I", _exactly(file, 4, path))[0]
        name = _TEXT_TAGS.get(tag)
        if name is None or name in fields:
            raise NotABitfileError("{} is no .bit file: unexpected field {!r} in its header".format(path.name, tag))
        (length,) = struct.unpack(">H", _exactly(file, 2, path))
        value = _exactly(file, length, path)
        try:
            fields[name] = value.rstrip(b"\0").decode("ascii")
        except UnicodeDecodeError:
            raise NotABitfileError("{} is no .bit file: its {} is not text".format(path.name, name)) from None


def _exactly(file: BinaryIO, count: int, path: Path) -> bytes:
    data = file.read(count)
    if len(data) != count:
        raise TruncatedBitfileError("{} is truncated: it ends within its header".format(path.name))
    return data


def _plain_part(part: str) -> str:
    part = part.strip().lower()
    return part[2:] if part.startswith("xc") else part
