"""Named arrays and a few facts as bytes: how inputs and results of a network travel. A zip file, stored, no pickles."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any, Dict, Mapping, Tuple

import numpy as np

from hilt_runtime.errors import NetworkError

_INDEX = "index.json"


class ArraysError(NetworkError):
    """Bytes that are no arrays of ours."""


def encode_arrays(arrays: Mapping[str, Any], facts: Mapping[str, Any]) -> bytes:
    """Return arrays by name, and facts that JSON can hold, as bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_entry(_INDEX), json.dumps({"names": list(arrays), "facts": facts}))
        for number, array in enumerate(arrays.values()):
            part = io.BytesIO()
            np.save(part, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(_entry("{}.npy".format(number)), part.getvalue())
    return file.getvalue()


def _entry(name: str) -> zipfile.ZipInfo:
    """Return an entry without the time of day: the same arrays make the same bytes."""
    return zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))


def decode_arrays(data: bytes) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Return the arrays by name and the facts. Raises ArraysError."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(facts.file_size for facts in archive.infolist()) > len(data):
                raise ArraysError("arrays of more bytes than were sent")
            index = json.loads(archive.read(_INDEX))
            arrays = {}
            for number, name in enumerate(index["names"]):
                part = io.BytesIO(archive.read("{}.npy".format(number)))
                arrays[str(name)] = np.lib.format.read_array(part, allow_pickle=False)
            return arrays, dict(index["facts"])
    except (zipfile.BadZipFile, ValueError, KeyError, TypeError, EOFError, NotImplementedError) as error:
        raise ArraysError("bytes that hold no arrays: {}".format(error)) from None
