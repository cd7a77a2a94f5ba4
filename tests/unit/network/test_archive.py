"""Zip files of plain arrays: the largest directory and shape that are read, and the first past each."""

from __future__ import annotations

import io
import struct
import warnings
import zipfile

import numpy as np
import pytest

from hilt_runtime.archive import ZipReadError, array_bytes, entry, open_archive, read_array

MEMBERS, DIRECTORY = 1 << 15, 1 << 22


def ended(members: int, directory: int, before: int) -> bytes:
    """Return bytes with the end of a zip file, that says how many members there are in how many bytes."""
    return bytes(before) + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, members, members, directory, 0, 0)


def stored(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(entry(name), data)
    return file.getvalue()


@pytest.mark.parametrize(
    ("members", "directory", "before", "is_refused"),
    [
        (MEMBERS, 0, 0, False),
        (MEMBERS + 1, 0, 0, True),
        (0, DIRECTORY, DIRECTORY, False),
        (0, DIRECTORY + 1, DIRECTORY, True),
        (0, 122, 100, False),
        (0, 123, 100, True),
    ],
)
def test_a_directory_is_no_larger_than_any_of_hilts_nor_than_its_file(
    members: int, directory: int, before: int, is_refused: bool
) -> None:
    try:
        open_archive(ended(members, directory, before))
        text = ""
    except ZipReadError as error:
        text = str(error)
    assert text.endswith("which is too large") == is_refused


def test_a_comment_may_have_the_65535_bytes_that_the_format_allows() -> None:
    data = bytearray(stored(a=b"1"))
    data[-2:] = b"\xff\xff"
    assert open_archive(bytes(data) + b"c" * 65535).names == ["a"]
    with pytest.raises(ZipReadError, match=r"it is no whole zip file$"):
        open_archive(bytes(data) + b"c" * 65537)


@pytest.mark.parametrize("data", [b"", b"PK\x05\x06", ended(0, 0, 0)[:-1]])
def test_a_file_without_a_whole_end_is_no_zip_file(data: bytes) -> None:
    with pytest.raises(ZipReadError, match=r"it is no whole zip file$"):
        open_archive(data)


def test_a_file_of_no_parts_is_whole() -> None:
    with open_archive(ended(0, 0, 0)) as archive:
        assert archive.names == []


def test_a_zip_file_in_64_bits_is_refused() -> None:
    locator = b"PK\x06\x07" + bytes(16)
    with pytest.raises(ZipReadError, match="it is a zip file in 64 bits, which hilt does not write"):
        open_archive(b"before" + locator + ended(0, 0, 0))


def test_parts_have_names_of_their_own() -> None:
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w") as archive:
        warnings.simplefilter("ignore")
        for data in (b"1", b"2"):
            archive.writestr("a", data)
    with pytest.raises(ZipReadError, match="two of its parts have one name"):
        open_archive(file.getvalue())


def test_a_part_is_read_whole_or_not_at_all() -> None:
    data = stored(a=b"contents", b=b"")
    archive = open_archive(data)
    assert (archive.size("a"), archive.read("a"), archive.size("b"), archive.read("b")) == (8, b"contents", 0, b"")
    for read in (archive.read, archive.size):
        with pytest.raises(ZipReadError, match="it has no part c"):
            read("c")
    with pytest.raises(ZipReadError, match=r"part a is damaged \(Bad CRC-32"):
        open_archive(data.replace(b"contents", b"Contents")).read("a")


def npy(shape: str, data: bytes = b"", descr: str = "|i1", order: str = "False") -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({shape}), }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def test_an_array_comes_back_in_its_order_and_cannot_be_written() -> None:
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    read = read_array(array_bytes(array.T), "a")
    np.testing.assert_array_equal(read, array.T)
    assert read.dtype == np.int16 and not read.flags.writeable
    by_columns = read_array(npy("2, 3", array.T.tobytes(), "<i2", "True"), "a")
    np.testing.assert_array_equal(by_columns, array)


@pytest.mark.parametrize(
    ("whole", "too_large"),
    [
        (npy("1, " * 16, b"1"), npy("1, " * 17, b"1")),
        (npy(f"0, {1 << 40}"), npy(f"0, {(1 << 40) + 1}")),
        (npy(f"0, {1 << 40}"), npy("0, " + "9" * 14)),
        (npy("1, " + " " * 397, b"1"), npy("1, " + " " * 398, b"1")),
    ],
    ids=["axes", "axis", "digits", "text"],
)
def test_a_shape_has_so_many_axes_and_elements_at_most(whole: bytes, too_large: bytes) -> None:
    assert read_array(whole, "a").size <= 1
    with pytest.raises(ZipReadError, match="part a (has a shape that no array has|is no array of numbers)"):
        read_array(too_large, "a")


@pytest.mark.parametrize("data", [b"", b"12345", b"1234567"])
def test_an_array_has_the_bytes_of_its_shape(data: bytes) -> None:
    assert read_array(npy("3,", b"123456", "<i2"), "a").shape == (3,)
    text = rf"part a has {len(data)} bytes, its shape \(3,\) of int16 needs 6"
    with pytest.raises(ZipReadError, match=text):
        read_array(npy("3,", data, "<i2"), "a")


@pytest.mark.parametrize("shape", ["3, a", "3.0", "3 3"])
def test_a_shape_is_digits_and_commas(shape: str) -> None:
    with pytest.raises(ZipReadError, match="part a (has a shape that no array has|is no array of numbers)"):
        read_array(npy(shape, b"123"), "a")


@pytest.mark.parametrize("descr", ["<c8", "|O8", ">i2", "<i3"])
def test_an_array_of_another_dtype_is_refused(descr: str) -> None:
    with pytest.raises(ZipReadError, match="part a is no array of numbers as numpy writes it"):
        read_array(npy("0,", descr=descr), "a")


def test_an_array_without_elements_has_axes_that_numpy_can_hold() -> None:
    with pytest.raises(ZipReadError, match="part a has shape .*: "):
        read_array(npy(f"0, {1 << 40}, {1 << 40}"), "a")


def test_objects_are_not_written() -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        array_bytes(np.array([{}], dtype=object))


def test_a_member_says_no_time_of_day() -> None:
    assert stored(a=b"1") == stored(a=b"1")
    assert entry("a").date_time == (1980, 1, 1, 0, 0, 0)
