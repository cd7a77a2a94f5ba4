"""The SD card of one emulated board: a copy of the image, which the board writes to."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hilt.virtual.directory import BoardDirectory
from hilt.virtual.errors import VirtualBoardError
from hilt.virtual.linux.image import CardImage

CARD = "card.img"
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
