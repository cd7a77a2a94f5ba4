"""Reads a bundle: a zip file of a manifest and arrays, each checked against its SHA-256, and all against each other."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import Any, BinaryIO, Dict, List, Union

from hilt_runtime.archive import StoredZip, ZipReadError, read_array
from hilt_runtime.errors import NetworkError
from hilt_runtime.manifest import ManifestNotWholeError, check_manifest, check_parts
from hilt_runtime.plain_json import PlainJsonError, read_json

FORMAT = "hilt network"
VERSION = 8
READABLE = (2, 3, 4, 5, 6, 7, 8)
"""2 has no steps on packed tensors, 3 packs no tensors whose channels are last, 4 has no int8 LSTM, GRU or RNN, 5 has
no buffers within others, 7 has no products that add numbers."""
MANIFEST = "manifest.json"
_SUM = MANIFEST + ".sha256"
_SUM_BYTES = 64
_MOST_MANIFEST_BYTES = 16 << 20
_FEW_VALUES = 1 << 15
_BYTES_A_VALUE = 128
"""A manifest may have so many values, and one more for so many bytes of the file; networks of 200 tensors have
13,000. They take no more memory than the file's size beside 3 MB."""
_CHUNK_BYTES = 1 << 20
_AGAIN = "copy the file again, or compile the network again"


class BundleError(NetworkError):
    """A file that is no bundle, is damaged, or is of a version that this runtime does not read."""


class Bundle:
    """A network as compiled: its manifest, and the arrays that it names. `read_bundle` checks and makes it."""

    def __init__(self, name: str, manifest: Dict[str, Any], arrays: Dict[str, Any], sha256: str) -> None:
        self.name = name
        self.manifest = manifest
        self.arrays = arrays
        self.sha256 = sha256
        """The hash of the whole file."""

    @property
    def inputs(self) -> List[Dict[str, Any]]:
        """The tensors that a caller gives: name, shape, dtype, scale."""
        return list(self.manifest["inputs"])

    @property
    def outputs(self) -> List[Dict[str, Any]]:
        """The tensors that a caller gets: name, shape, dtype, scale."""
        return list(self.manifest["outputs"])


def read_bundle(source: Union[str, Path, bytes], name: str = "") -> Bundle:
    """Return the bundle in a file, or in bytes, checked whole. `name` is its name for messages, else the path.

    It takes as much memory as the arrays that the manifest declares, which the file must hold. The arrays cannot be
    written.

    Raises:
        BundleError: It is no bundle, damaged, truncated, of another version, or has a program that would leave its
            buffers or never end.
    """
    name = name or (str(source) if not isinstance(source, bytes) else "the bundle")
    try:
        if isinstance(source, bytes):
            return _read(io.BytesIO(source), len(source), name)
        with Path(source).open("rb") as file:
            return _read(file, os.fstat(file.fileno()).st_size, name)
    except OSError as error:
        raise BundleError("bundle {} cannot be read: {}".format(name, error.strerror)) from None
    except MemoryError:
        raise BundleError("bundle {} needs more memory than there is".format(name)) from None


def _read(file: BinaryIO, size: int, name: str) -> Bundle:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
    try:
        with StoredZip(file, size) as archive:
            manifest = _manifest(archive, name, _FEW_VALUES + size // _BYTES_A_VALUE)
            arrays = _arrays(archive, manifest["parts"])
            check_manifest(manifest, arrays)
    except (ManifestNotWholeError, PlainJsonError) as error:
        raise BundleError("the manifest of {} is not whole ({}): {}".format(name, error, _AGAIN)) from None
    except ZipReadError as error:
        raise BundleError("{} is no whole bundle ({}): {}".format(name, error, _AGAIN)) from None
    return Bundle(name, manifest, arrays, digest.hexdigest())


def _manifest(archive: StoredZip, name: str, most_values: int) -> Dict[str, Any]:
    if archive.size(MANIFEST) > _MOST_MANIFEST_BYTES or archive.size(_SUM) > _SUM_BYTES:
        raise ZipReadError("its manifest is larger than any")
    text, wanted = archive.read(MANIFEST), archive.read(_SUM).decode("ascii", "replace")
    _require_hash(text, wanted, MANIFEST)
    manifest = read_json(text, most_values)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BundleError("{} is not a {}: its manifest names another format".format(name, FORMAT))
    if manifest.get("version") not in READABLE:
        line = "{} has version {!r:.40}, this runtime reads {}: compile the network again with this hilt"
        raise BundleError(line.format(name, manifest.get("version"), " and ".join(map(str, READABLE))))
    check_parts(manifest.get("parts"))
    return manifest


def _arrays(archive: StoredZip, parts: Dict[str, Dict[str, Any]]) -> Dict[str, Any]:
    """Return the arrays; all sizes are compared before the first is read."""
    for part, facts in parts.items():
        if archive.size(part) != facts["bytes"]:
            text = "part {} has {} bytes, the manifest says {}"
            raise ZipReadError(text.format(part, archive.size(part), facts["bytes"]))
    arrays = {}
    for part, facts in parts.items():
        data = archive.read(part)
        _require_hash(data, facts["sha256"], part)
        arrays[part] = read_array(data, part)
    return arrays


def _require_hash(data: bytes, wanted: str, part: str) -> None:
    actual = hashlib.sha256(data).hexdigest()
    if actual != wanted:
        text = "part {} was altered: its SHA-256 is {}, the manifest says {}"
        raise ZipReadError(text.format(part, actual[:12], wanted[:12]))
