"""Files of arrays that users give: .npy and .npz are read, all others are refused in one line."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from hilt.network.array_file import ArrayFileError, read_arrays, write_arrays

ARRAY = np.arange(600, dtype=np.float32).reshape(2, 300)


@pytest.mark.parametrize("names", [("file",), ("x", "a/b"), ("file", "self", "data")])
def test_arrays_come_back_under_their_names(names: tuple[str, ...], tmp_path: Path) -> None:
    write_arrays(tmp_path / "a.npz", {name: ARRAY + place for place, name in enumerate(names)})
    read = read_arrays(tmp_path / "a.npz")
    assert list(read) == list(names)
    assert all(np.array_equal(read[name], ARRAY + place) for place, name in enumerate(names))


def test_a_single_array_is_an_npy_file(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a.npy", {"y": ARRAY})
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), ARRAY)
    np.testing.assert_array_equal(read_arrays(tmp_path / "a.npy")["data"], ARRAY)


def test_an_output_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "y.npy").write_bytes(b"old")
    with pytest.raises(ValueError, match="allow_pickle"):
        write_arrays(tmp_path / "y.npy", {"y": np.array([{}], dtype=object)})
    assert (tmp_path / "y.npy").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["y.npy"]


def _npz(path: Path) -> bytes:
    np.savez(path, x=ARRAY)
    return path.read_bytes()


def _with_header(data: bytes) -> bytes:
    place = data.index(b"{")
    return data[:place] + b"{'shape':(" + data[place + 10 :]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"", "is no .npz or .npy file: write it with np.savez or np.save"),
        (lambda data: b"junk", "is no .npz or .npy file"),
        (lambda data: data[:1000], "holds no arrays that can be read: File is not a zip file"),
        (lambda data: data[:500] + bytes(100) + data[600:], "Bad CRC-32"),
        (_with_header, "holds no arrays that can be read"),
    ],
)
def test_a_damaged_file_is_refused(change: object, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(change(_npz(path)))  # type: ignore[operator]
    with pytest.raises(ArrayFileError, match=message):
        read_arrays(path)


def test_objects_are_not_opened(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([{}], dtype=object))
    with pytest.raises(ArrayFileError, match="it holds Python objects, which are not opened"):
        read_arrays(tmp_path / "a.npz")


def test_members_that_are_no_arrays_are_left_out(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert read_arrays(tmp_path / "a.npz") == {}
