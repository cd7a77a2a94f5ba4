"""Zip files of plain arrays, read with bounded memory: members are stored, whole, and no larger than the file.

The directory is checked before anything is read, so a file cannot ask for more memory than its own size. Array headers
have the one form that numpy writes; nothing is evaluated or unpickled.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
from typing import Any, List, Tuple

import numpy as np

from hilt_runtime.errors import NetworkError

_END = b"PK\x05\x06"
_END_BYTES, _MOST_COMMENT = 22, 1 << 16
_ZIP64 = b"PK\x06\x07"
_ZIP64_BYTES = 20
_MOST_MEMBERS = 1 << 15
_MOST_DIRECTORY_BYTES = 1 << 22
_ENCRYPTED = 1
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '([<|][a-z]\d)', 'fortran_order': (True|False), 'shape': \(([0-9, ]{0,400})\), \} *\n"
)
_DTYPES = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8")
_MOST_AXES, _LARGEST_AXIS = 16, 1 << 40


class ZipReadError(NetworkError):
    """A file that is no whole zip file of stored members, or a part that is no plain array."""


class StoredZip:
    """The members of a zip file. A context manager."""

    def __init__(self, file: Any, size: int) -> None:
        """`file`: a binary file of `size` bytes. Raises ZipReadError."""
        _check_directory(file, size)
        try:
            self._zip = zipfile.ZipFile(file)
            self._members = {facts.filename: facts for facts in self._zip.infolist()}
        except _DAMAGED as error:
            raise ZipReadError("it is no whole zip file ({})".format(_reason(error))) from None
        for name, facts in self._members.items():
            _check_member(name, facts)
        if len(self._members) != len(self._zip.infolist()):
            raise ZipReadError("two of its parts have one name")
        if sum(facts.file_size for facts in self._members.values()) > size:
            raise ZipReadError("its parts have more bytes than the file")

    def __enter__(self) -> "StoredZip":
        return self

    def __exit__(self, *_: Any) -> None:
        self._zip.close()

    @property
    def names(self) -> List[str]:
        return list(self._members)

    def size(self, name: str) -> int:
        """Return a member's bytes. Raises ZipReadError where there is none of that name."""
        return self._facts(name).file_size

    def read(self, name: str) -> bytes:
        """Return a member's contents. Raises ZipReadError."""
        try:
            return self._zip.read(self._facts(name))
        except _DAMAGED as error:
            raise ZipReadError("part {} is damaged ({})".format(name, _reason(error))) from None

    def _facts(self, name: str) -> zipfile.ZipInfo:
        if name not in self._members:
            raise ZipReadError("it has no part {}".format(name))
        return self._members[name]


_DAMAGED = (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, RuntimeError, ValueError, struct.error)
"""Errors of zipfile for files that are damaged, encrypted or of another kind (ValueError: a name that is no text)."""


def _reason(error: Exception) -> str:
    return str(error)[:200] or type(error).__name__


def _check_directory(file: Any, size: int) -> None:
    """Check the end of a zip file: where its directory is, and how large."""
    length = min(size, _END_BYTES + _MOST_COMMENT)
    file.seek(size - length)
    tail = file.read(length)
    place = tail.rfind(_END)
    if place < 0 or len(tail) - place < _END_BYTES:
        raise ZipReadError("it is no whole zip file")
    members, directory = struct.unpack("<HI", tail[place + 10 : place + 16])
    if tail[max(0, place - _ZIP64_BYTES) : place].startswith(_ZIP64):
        raise ZipReadError("it is a zip file in 64 bits, which hilt does not write")
    if members > _MOST_MEMBERS or directory > min(size, _MOST_DIRECTORY_BYTES):
        raise ZipReadError("its directory has {} parts in {} bytes, which is too large".format(members, directory))


def _check_member(name: str, facts: zipfile.ZipInfo) -> None:
    if facts.flag_bits & _ENCRYPTED:
        raise ZipReadError("part {} is encrypted".format(name[:200]))
    if facts.compress_type != zipfile.ZIP_STORED or facts.compress_size != facts.file_size:
        raise ZipReadError("part {} is compressed; hilt's parts are stored".format(name[:200]))


def open_archive(data: bytes) -> StoredZip:
    """Return the zip file in bytes. Raises ZipReadError."""
    return StoredZip(io.BytesIO(data), len(data))


def read_array(data: bytes, part: str) -> Any:
    """Return the array in the contents of an .npy file: a view of `data`, which cannot be written.

    `part` is its name for messages. Raises ZipReadError.
    """
    begin = len(_MAGIC) + 2
    header = data[begin : begin + int.from_bytes(data[len(_MAGIC) : begin], "little")]
    match = _HEADER.fullmatch(header) if data.startswith(_MAGIC) else None
    descr = match.group(1).decode("ascii") if match is not None else ""
    if match is None or descr not in _DTYPES:
        raise ZipReadError("part {} is no array of numbers as numpy writes it".format(part))
    dtype, shape = np.dtype(descr), _shape(match.group(3), part)
    count = 1
    for length in shape:
        count *= length
    held = len(data) - begin - len(header)
    if count * dtype.itemsize != held:
        text = "part {} has {} bytes, its shape {} of {} needs {}"
        raise ZipReadError(text.format(part, held, shape, dtype, count * dtype.itemsize))
    array = np.frombuffer(data, dtype, count, begin + len(header))
    try:
        return array.reshape(shape, order="F" if match.group(2) == b"True" else "C")
    except ValueError as error:  # an axis of 0 beside one that no array has
        raise ZipReadError("part {} has shape {}: {}".format(part, shape, error)) from None


def _shape(text: bytes, part: str) -> Tuple[int, ...]:
    lengths = [length.strip() for length in text.split(b",") if length.strip()]
    if len(lengths) > _MOST_AXES or not all(length.isdigit() and len(length) < 14 for length in lengths):
        raise ZipReadError("part {} has a shape that no array has".format(part))
    shape = tuple(int(length) for length in lengths)
    if max(shape, default=0) > _LARGEST_AXIS:
        raise ZipReadError("part {} has a shape that no array has".format(part))
    return shape


def array_bytes(array: Any) -> bytes:
    """Return an array as the contents of an .npy file."""
    file = io.BytesIO()
    np.save(file, np.asarray(array, order="C"), allow_pickle=False)
    return file.getvalue()


def entry(name: str) -> zipfile.ZipInfo:
    """Return a member without the time of day: the same contents make the same bytes."""
    return zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
