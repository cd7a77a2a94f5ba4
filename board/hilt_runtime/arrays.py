"""Named arrays and a few facts as bytes: how inputs and results of a network travel. A zip file, stored, no pickles."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any, Dict, Mapping, Tuple

from hilt_runtime.archive import ZipReadError, array_bytes, entry, open_archive, read_array
from hilt_runtime.errors import NetworkError
from hilt_runtime.plain_json import PlainJsonError, read_json

_INDEX = "index.json"


class ArraysError(NetworkError):
    """Bytes that are no arrays of ours."""


def encode_arrays(arrays: Mapping[str, Any], facts: Mapping[str, Any]) -> bytes:
    """Return arrays by name, and facts that JSON can hold, as bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(entry(_INDEX), json.dumps({"names": list(arrays), "facts": facts}))
        for number, array in enumerate(arrays.values()):
            archive.writestr(entry("{}.npy".format(number)), array_bytes(array))
    return file.getvalue()


def decode_arrays(data: bytes) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Return the arrays by name, which cannot be written, and the facts. Raises ArraysError."""
    try:
        with open_archive(data) as archive:
            index = read_json(archive.read(_INDEX))
            names, facts = index["names"], index["facts"]
            arrays = {}
            for number, name in enumerate(names):
                part = "{}.npy".format(number)
                arrays[str(name)] = read_array(archive.read(part), part)
            return arrays, dict(facts)
    except (ZipReadError, PlainJsonError, KeyError, TypeError, ValueError) as error:
        raise ArraysError("bytes that hold no arrays: {}".format(error)) from None
