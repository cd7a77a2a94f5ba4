"""The entry point of the command `hilt`."""

from __future__ import annotations

import sys

from hilt.cli.interrupts import interrupts
from hilt.cli.starting import starting_line

_INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit; Ctrl-C while it is still loading is no traceback."""
    interrupts.begin()
    try:
        starting_line.begin(sys.argv[1:])
        from hilt.cli.main import main as command_line
    except KeyboardInterrupt:
        starting_line.end()
        interrupts.end()
        sys.exit(_INTERRUPTED)
    command_line()
