"""The entry point of the command `hilt`."""

from __future__ import annotations

import sys

_INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit; Ctrl-C while it is still loading is no traceback."""
    try:
        from hilt.cli.main import main as command_line
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    command_line()
