"""The agent's files on the board: one private directory (mode 0700)."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class HomeError(Exception):
    """The agent's directory cannot be used as it is."""


class Home:
    """Paths below the agent's directory: `~/.hilt`, or HILT_AGENT_HOME."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.socket = root / "agent.sock"
        self.process = root / "agent.pid"
        """JSON of the running daemon; locked (flock) as long as it lives."""
        self.start_lock = root / "start.lock"
        self.log = root / "agent.log"
        self.journal = root / "journal"
        self.blobs = root / "blobs"
        self.incoming = root / "incoming"
        self.bitstreams = root / "bitstreams"
        """The folder of .bit files that pynq loads: a .bit name for a blob."""
        self.models = root / "models"
        """Virtual boards: payloads of their bitstreams."""


def open_home() -> Home:
    """Return the agent's directory, made where it is missing.

    Raises HomeError if it is someone else's, a link, or open to others; OSError if it cannot be made.
    """
    root = Path(os.environ.get("HILT_AGENT_HOME") or Path.home() / ".hilt")
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = root.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise HomeError("{} is not a directory of this user: remove it or set HILT_AGENT_HOME".format(root))
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise HomeError("{} is open to others: chmod 700 it".format(root))
    home = Home(root)
    for directory in (home.blobs, home.incoming, home.bitstreams, home.models):
        directory.mkdir(mode=0o700, exist_ok=True)
    return home
