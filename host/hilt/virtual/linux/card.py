"""The disks of one emulated board: its SD card, a copy of the image, and a small one with the keys and board model.

One image serves every board, because each takes its keys from the second disk at every boot.
"""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

from hilt.virtual.directory import BoardDirectory
from hilt.virtual.errors import VirtualBoardError
from hilt.virtual.linux.image import CardImage, add_file

CARD, GIVEN = "card.img", "given.tar"
_GIVEN = {"host_key": 0o600, "authorized_keys": 0o644, "board_model.json": 0o644}
_SECONDS = 600.0


def insert_card(directory: BoardDirectory, image: CardImage) -> Path:
    """Return the board's card, copied from the image if there is none, or if it comes from an earlier image.

    Raises:
        VirtualBoardError: It cannot be copied.
    """
    card, key = directory.root / CARD, directory.root / "card.key"
    if card.is_file() and key.is_file() and key.read_text(encoding="ascii") == image.key:
        return card
    key.unlink(missing_ok=True)
    command = ["cp", "--reflink=auto", "--sparse=always", str(image.card), str(card)]
    copied = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
    if copied.returncode:
        card.unlink(missing_ok=True)
        raise VirtualBoardError(f"the SD card of {directory.name} cannot be made: {copied.stderr.strip()}")
    card.chmod(0o600)
    key.write_text(image.key, encoding="ascii")
    return card


def write_given(directory: BoardDirectory) -> None:
    """Write the disk of the board's keys and board model: a tar, readable by this user only."""
    temporary = directory.root / f"{GIVEN}.new"
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w+b") as file, tarfile.open(fileobj=file, mode="w") as archive:
        for name, mode in _GIVEN.items():
            add_file(archive, name, (directory.root / name).read_bytes(), mode)
    temporary.replace(directory.root / GIVEN)
