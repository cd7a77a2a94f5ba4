"""The reader of .bit files, against files made by hand from the format's description."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hilt_board.bitfile import BitfileError, NotABitfileError, TruncatedBitfileError, WrongPartError, read_bitfile

PAYLOAD = b"\xff" * 32 + bytes.fromhex("000000bb11220044ffffffffffffffffaa995566") + bytes(range(200))


def field(tag: bytes, text: str) -> bytes:
    return tag + struct.pack(">H", len(text) + 1) + text.encode() + b"\0"


def bit(part: str = "7z020clg484", payload: bytes = PAYLOAD, announced: int | None = None) -> bytes:
    header = bytes.fromhex("00090ff00ff00ff00ff0000001")
    header += field(b"a", "vta_wrapper;UserID=0XFFFFFFFF;Version=2018.3")
    header += field(b"b", part) + field(b"c", "2020/06/30") + field(b"d", "09:36:08")
    return header + b"e" + struct.pack(">I", len(payload) if announced is None else announced) + payload


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vta.bit"


def test_fields_and_payload(path: Path) -> None:
    path.write_bytes(bit())
    bitfile = read_bitfile(path)
    assert (bitfile.name, bitfile.part, bitfile.date, bitfile.time) == (
        "vta_wrapper",
        "7z020clg484",
        "2020/06/30",
        "09:36:08",
    )
    assert bitfile.design.endswith("Version=2018.3")
    assert bitfile.payload() == PAYLOAD


@pytest.mark.parametrize(
    ("written", "board", "right"),
    [
        ("7z020clg484", "xc7z020clg484", True),
        ("7z020clg484", "7z020clg484", True),
        ("xczu7ev-ffvc1156-2-e", "XCZU7EV-FFVC1156-2-E", True),
        ("7z020clg484", "7z020clg400", False),
        ("7z010clg400", "7z020clg400", False),
    ],
)
def test_the_part(path: Path, written: str, board: str, right: bool) -> None:
    path.write_bytes(bit(written))
    bitfile = read_bitfile(path)
    if right:
        bitfile.require_part(board)
    else:
        with pytest.raises(WrongPartError, match=f"vta.bit is for part {written}, this board has {board}"):
            bitfile.require_part(board)


def test_cut_at_every_byte(path: Path) -> None:
    whole = bit()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(TruncatedBitfileError, match=r"vta\.bit is truncated"):
            read_bitfile(path)


def test_other_sizes_than_announced(path: Path) -> None:
    path.write_bytes(bit() + b"more")
    with pytest.raises(TruncatedBitfileError, match="announces 252 bytes of payload, it holds 256"):
        read_bitfile(path)
    path.write_bytes(bit(announced=2**32 - 1))
    with pytest.raises(TruncatedBitfileError, match="announces 4294967295"):
        read_bitfile(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x7fELF" + bytes(100), "does not start as one"),
        (bit().replace(b"b\0\x0c", b"q\0\x0c"), "unexpected field"),
        (bit().replace(b"c\0\x0b", b"b\0\x0b"), "unexpected field"),
        (bit().replace(b"7z020", b"\xff\xff020"), "its part is not text"),
    ],
)
def test_other_files_are_no_bitfile(path: Path, data: bytes, message: str) -> None:
    path.write_bytes(data)
    with pytest.raises(NotABitfileError, match=message):
        read_bitfile(path)


def test_a_header_without_a_part(path: Path) -> None:
    path.write_bytes(bytes.fromhex("00090ff00ff00ff00ff0000001") + field(b"a", "x") + b"e" + struct.pack(">I", 0))
    with pytest.raises(NotABitfileError, match="its header lacks the date"):
        read_bitfile(path)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=300)
@given(st.data())
def test_damage_is_read_or_refused(path: Path, data: st.DataObject) -> None:
    content = bytearray(bit())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, 150))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content))
    try:
        bitfile = read_bitfile(path)
    except BitfileError:
        return
    assert bitfile.payload_offset + bitfile.payload_bytes == len(content)
