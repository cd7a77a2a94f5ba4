"""Bitstreams by name.

The manifest ships with hilt, the user's own additions extend it, and checks decide whether a .bit file may travel to a
board.
"""

from hilt.bitstreams.library import add, fetch, path_of
from hilt.bitstreams.manifest import (
    Bitstream,
    BitstreamError,
    ManifestError,
    UnknownBitstreamError,
    find,
    load_manifest,
)
from hilt.bitstreams.verify import HashMismatchError, verify

__all__ = [
    "Bitstream",
    "BitstreamError",
    "HashMismatchError",
    "ManifestError",
    "UnknownBitstreamError",
    "add",
    "fetch",
    "find",
    "load_manifest",
    "path_of",
    "verify",
]
