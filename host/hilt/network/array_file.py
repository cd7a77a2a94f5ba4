"""Files of arrays that users give and get: .npy and .npz, without pickled objects."""

from __future__ import annotations

import io
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.atomic_write import atomic_write_bytes

SINGLE = "data"
"""The name of the array in an .npy file, which has none."""
_DATE = (1980, 1, 1, 0, 0, 0)
_DAMAGED = (
    *(ValueError, EOFError, KeyError, SyntaxError, OverflowError, MemoryError, NotImplementedError, RuntimeError),
    *(tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)


class ArrayFileError(ValueError):
    """A file that holds no arrays of numbers."""


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz file by name, or the one of an .npy file under the name "data".

    Raises:
        ArrayFileError: The file cannot be read, is neither, is damaged, or holds objects.
    """
    try:
        with path.open("rb") as file:
            begin = file.read(6)
        if not begin.startswith((b"PK", b"\x93NUMPY")):
            raise ArrayFileError(f"{path} is no .npz or .npy file: write it with np.savez or np.save")
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {SINGLE: loaded}
        with loaded:
            parts = {name: loaded[name] for name in loaded.files}
        return {name: value for name, value in parts.items() if isinstance(value, np.ndarray)}
    except OSError as error:
        raise ArrayFileError(f"cannot read {path}: {error.strerror or error}") from error
    except ArrayFileError:
        raise
    except _DAMAGED as error:
        reason = "it holds Python objects, which are not opened" if "allow_pickle" in str(error) else str(error)
        raise ArrayFileError(f"{path} holds no arrays that can be read: {reason}; write it with np.savez") from error


def are_numbers(array: NDArray[Any]) -> bool:
    """Tell whether an array's elements are real numbers or truth values."""
    return array.dtype.kind in "fiub"


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write one array as .npy, several or a .npz as .npz, whole or not at all. Raises UnwritableFileError, OSError."""
    contents = [_contents(array) for array in arrays.values()]
    if path.suffix != ".npz" and len(contents) == 1:
        atomic_write_bytes(path, contents[0])
        return
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in zip(arrays, contents, strict=True):
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _DATE), data)
    atomic_write_bytes(path, file.getvalue())


def _contents(array: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()
