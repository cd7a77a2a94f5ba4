"""Check that a .bit file is the bitstream that its entry describes."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hilt.bitstreams.manifest import Bitstream, BitstreamError
from hilt_board.bitfile import Bitfile, read_bitfile


class HashMismatchError(BitstreamError):
    """The file is not the one that the manifest names."""


def verify(bitstream: Bitstream, path: Path) -> tuple[Bitfile, str]:
    """Return the file's header and its sha256.

    Raises NotABitfileError, TruncatedBitfileError or WrongPartError of hilt_board.bitfile for a file that is none,
    is cut short or is for another part, and HashMismatchError for one whose bytes are not those of the manifest; in
    that order, so that the message names the plainest cause.
    """
    bitfile = read_bitfile(path)
    bitfile.require_part(bitstream.part)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if bitstream.sha256 and digest != bitstream.sha256:
        raise HashMismatchError(
            f"{path.name} has sha256 {digest}, the manifest's {bitstream.name} is {bitstream.sha256}: "
            f"fetch it again (hilt bitstream fetch {bitstream.name}), or add yours under a name of its own"
        )
    return bitfile, digest
