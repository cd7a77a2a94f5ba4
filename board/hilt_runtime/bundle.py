"""Reads a bundle: a zip file of a manifest and arrays, every one checked against its SHA-256 before it is used."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any, Dict, List, Union

import numpy as np

from hilt_runtime.errors import NetworkError
from hilt_runtime.manifest import ManifestNotWholeError, check_manifest

FORMAT = "hilt network"
VERSION = 2
MANIFEST = "manifest.json"
_MOST_MANIFEST_BYTES = 64 << 20
_MOST_PART_BYTES = 1 << 30
_AGAIN = "copy the file again, or compile the network again"


class BundleError(NetworkError):
    """A file that is no bundle, is damaged, or is of a version that this runtime does not read."""


class Bundle:
    """A network as compiled: its manifest, and the arrays that the manifest names."""

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
    """Return the bundle in a file, or in bytes that are called `name`.

    Raises:
        BundleError: It is no bundle, damaged, truncated, or of another version.
    """
    if isinstance(source, bytes):
        data = source
    else:
        name = str(source)
        try:
            data = Path(source).read_bytes()
        except OSError as error:
            raise BundleError("bundle {} cannot be read: {}".format(name, error.strerror)) from None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            manifest = _manifest(archive, name)
            arrays = {part: _array(archive, part, facts, name) for part, facts in manifest["parts"].items()}
            check_manifest(manifest, arrays)
    except ManifestNotWholeError as error:
        raise BundleError("the manifest of {} is not whole ({}): {}".format(name, error, _AGAIN)) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise BundleError("{} is no whole bundle ({}): {}".format(name, error, _AGAIN)) from None
    return Bundle(name, manifest, arrays, hashlib.sha256(data).hexdigest())


def _manifest(archive: zipfile.ZipFile, name: str) -> Dict[str, Any]:
    text = _contents(archive, MANIFEST, _MOST_MANIFEST_BYTES, name)
    wanted = _contents(archive, MANIFEST + ".sha256", 64, name).decode("ascii", "replace")
    _require_hash(text, wanted, MANIFEST, name)
    try:
        manifest = json.loads(text)
        if manifest["format"] != FORMAT:
            raise BundleError("{} holds {!r}, not a {}".format(name, manifest["format"], FORMAT))
        if manifest["version"] != VERSION:
            line = "{} has version {}, this runtime reads {}: compile the network again with this hilt"
            raise BundleError(line.format(name, manifest["version"], VERSION))
        for facts in manifest["parts"].values():
            int(facts["bytes"]), str(facts["sha256"])
        return dict(manifest)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BundleError("the manifest of {} cannot be read ({}): {}".format(name, error, _AGAIN)) from None


def _array(archive: zipfile.ZipFile, part: str, facts: Dict[str, Any], name: str) -> Any:
    data = _contents(archive, part, min(int(facts["bytes"]), _MOST_PART_BYTES), name)
    _require_hash(data, facts["sha256"], part, name)
    try:
        return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except ValueError as error:
        raise BundleError("part {} of {} is no array ({}): {}".format(part, name, error, _AGAIN)) from None


def _contents(archive: zipfile.ZipFile, part: str, most: int, name: str) -> bytes:
    try:
        facts = archive.getinfo(part)
    except KeyError:
        raise BundleError("{} has no part {}: {}".format(name, part, _AGAIN)) from None
    if facts.file_size > most:
        raise BundleError(
            "part {} of {} has {} bytes, more than {}: {}".format(part, name, facts.file_size, most, _AGAIN)
        )
    return archive.read(part)


def _require_hash(data: bytes, wanted: str, part: str, name: str) -> None:
    actual = hashlib.sha256(data).hexdigest()
    if actual != wanted:
        text = "part {} of {} was altered: its SHA-256 is {}, the manifest says {}: {}"
        raise BundleError(text.format(part, name, actual[:12], wanted[:12], _AGAIN))
