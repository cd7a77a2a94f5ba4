"""`python -m hilt.virtual.linux [ARCHITECTURE]`: build the image of an emulated board, if it is not in HILT_CACHE."""

from __future__ import annotations

import argparse
import sys

from hilt.virtual.errors import VirtualBoardError
from hilt.virtual.linux.computer import COMPUTERS
from hilt.virtual.linux.image import ensure_image


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m hilt.virtual.linux", description="Build an emulated board's image."
    )
    parser.add_argument("architecture", nargs="?", choices=COMPUTERS, default="armhf")
    try:
        image = ensure_image(COMPUTERS[parser.parse_args().architecture], _report)
    except VirtualBoardError as error:
        sys.exit(str(error))
    sys.stdout.write(f"{image.card.parent}\n")


def _report(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    main()
