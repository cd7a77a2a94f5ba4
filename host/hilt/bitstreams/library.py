"""The user's library of .bit files: fetched or added, kept by content, never half-written."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import BinaryIO

from hilt.bitstreams.manifest import Bitstream, BitstreamError, load_manifest, read_manifest, user_directory
from hilt.bitstreams.verify import verify
from hilt.toml_text import toml_value

MAX_BYTES = 256 << 20
"""No bitstream of these parts comes near it (a ZU9EG's is 26 MB); a longer download is cut off."""
_TIMEOUT_SECONDS = 30


def path_of(bitstream: Bitstream) -> Path:
    """Return the file of a bitstream that was fetched or added. Raises BitstreamError if it was not."""
    path = user_directory() / f"{bitstream.sha256}.bit"
    if not bitstream.sha256 or not path.is_file():
        how = (
            f"hilt bitstream fetch {bitstream.name}"
            if bitstream.source
            else f"build it (hls/vivado), then hilt bitstream add FILE --like {bitstream.name}"
        )
        raise BitstreamError(f"the file of bitstream {bitstream.name} is not here yet: {how}")
    return path


def add(file: Path, bitstream: Bitstream) -> Bitstream:
    """Check a .bit file against its entry, keep it and return the entry with its sha256.

    The entry is now in the user's manifest. Raises the errors of `verify`, and OSError if it cannot be stored.
    """
    _, digest = verify(bitstream, file)
    known = replace(bitstream, sha256=digest)
    target = user_directory() / f"{digest}.bit"
    if not target.is_file():
        with _whole(target) as out, file.open("rb") as source:
            shutil.copyfileobj(source, out)
    if load_manifest().get(known.name) != known:
        _remember(known)
    return known


def fetch(bitstream: Bitstream) -> Bitstream:
    """Download a bitstream from its source, check it and add it.

    Raises BitstreamError if there is no source or it does not answer, and the errors of `verify`.
    """
    if not bitstream.source:
        raise BitstreamError(f"{bitstream.name} has no source; build it (hls/vivado), then hilt bitstream add")
    with tempfile.TemporaryDirectory(prefix="hilt-fetch-") as folder:
        file = Path(folder) / bitstream.source.rsplit("/", 1)[-1]
        try:
            _download(bitstream.source, file)
        except OSError as error:
            reason = getattr(error, "reason", None) or error
            raise BitstreamError(
                f"cannot fetch {bitstream.source}: {reason}; download it elsewhere, then "
                f"hilt bitstream add FILE --like {bitstream.name}"
            ) from error
        return add(file, bitstream)


def _download(source: str, file: Path) -> None:
    # Entries are checked to be https.
    with urllib.request.urlopen(source, timeout=_TIMEOUT_SECONDS) as answer, file.open("wb") as out:  # noqa: S310
        received = 0
        while chunk := answer.read(1 << 20):
            received += len(chunk)
            if received > MAX_BYTES:
                raise OSError(f"longer than {MAX_BYTES >> 20} MiB, which no bitstream is")
            out.write(chunk)


def _remember(bitstream: Bitstream) -> None:
    path = user_directory() / "manifest.toml"
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of two that are added at once neither is lost
        entries = read_manifest(path) | {bitstream.name: bitstream}
        with _whole(path) as out:
            out.write("\n".join(map(_table, entries.values())).encode())


def _table(bitstream: Bitstream) -> str:
    rows = [f'["{bitstream.name}"]']
    for field in fields(bitstream):
        value = getattr(bitstream, field.name)
        if field.name == "name" or value in ("", False):
            continue
        rows.append(f"{field.name} = {toml_value(value)}")
    return "\n".join(rows) + "\n"


@contextmanager
def _whole(target: Path) -> Iterator[BinaryIO]:
    """Yield a file that appears under its name only when it is complete and on disk."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".partial-")
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
