"""`hilt` as it is started."""

from __future__ import annotations

import sys

_INTERRUPTED = 130


def main() -> None:
    """Runs the command line and exits: see hilt.cli.exit_codes. Ctrl-C is no traceback while that is still loaded."""
    try:
        from hilt.cli.main import main as command_line
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    command_line()
