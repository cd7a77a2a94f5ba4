"""Writes a bundle: one file with all that a board needs to run a network. `hilt_runtime.bundle` reads it.

A bundle is a zip file of a manifest (JSON) and arrays (NumPy's .npy, no pickles), none compressed. The manifest names
each array's SHA-256 and bytes. The same network, target and schedules make the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.graph import Graph
from hilt.network.graph_file import MEMBER, graph_bytes
from hilt_runtime.bundle import FORMAT, MANIFEST, VERSION

_DATE = (1980, 1, 1, 0, 0, 0)


def bundle_bytes(manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], graph: Graph) -> bytes:
    """Return the file's contents; `arrays` are by the names that the manifest uses, `graph` is for the host alone."""
    reference = graph_bytes(graph)
    parts = {}
    contents = {}
    for name, array in arrays.items():
        buffer = io.BytesIO()
        np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
        data = buffer.getvalue()
        contents[name] = data
        parts[name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    whole = {"format": FORMAT, "version": VERSION, **manifest, "parts": parts}
    whole["reference"] = hashlib.sha256(reference).hexdigest()
    text = json.dumps(whole, indent=1, sort_keys=True).encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(MANIFEST, _DATE), text)
        archive.writestr(zipfile.ZipInfo(MANIFEST + ".sha256", _DATE), hashlib.sha256(text).hexdigest())
        for name, data in contents.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), data)
        archive.writestr(zipfile.ZipInfo(MEMBER, _DATE), reference)
    return file.getvalue()
