"""Where boards are reached: endpoints, and HILT_HOME/boards.toml for the real ones.

    [pynq-z2]
    host = "192.168.2.99"
    bitstream = "pynq"             # a name of the bitstream manifest; what follows may be left out
    port = 22
    user = "xilinx"
    key = "~/.ssh/id_ed25519"      # without it: the SSH agent's keys and those of ~/.ssh
    python = "/usr/local/share/pynq-venv/bin/python3"
    sudo = true                    # registers and contiguous memory need root
"""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from hilt import paths
from hilt.link.errors import BoardFileError, UnknownBoardError

_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:%-]{0,252}\Z")
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}\Z")
REMOTE_PATH = re.compile(r"[A-Za-z0-9._/][A-Za-z0-9._/-]{0,254}\Z")
"""Paths on the board that may stand in a command: nothing a shell would read as more than a word."""


@dataclass(frozen=True)
class Endpoint:
    """How to reach a board over SSH. Raises BoardFileError for a value that could be read as something else."""

    name: str
    host: str
    port: int = 22
    user: str = "xilinx"
    key_file: Path | None = None
    """None: the SSH agent's keys and those of ~/.ssh."""
    host_key: str | None = None
    """The board's key as "TYPE BASE64" where it is known from elsewhere; None: HILT_HOME/known_hosts decides."""
    python: str = "/usr/local/share/pynq-venv/bin/python3"
    """A path, or a name found on the board's PATH."""
    sudo: bool = True

    def __post_init__(self) -> None:
        if not _HOST.match(self.host):
            raise BoardFileError(f"board {self.name}: host {self.host!r} is no host name or address")
        if not _USER.match(self.user):
            raise BoardFileError(f"board {self.name}: user {self.user!r} is no user name")
        if not REMOTE_PATH.match(self.python):
            raise BoardFileError(f"board {self.name}: python {self.python!r} must be a plain path without spaces")
        if not 1 <= self.port <= 65535:
            raise BoardFileError(f"board {self.name}: port {self.port} is not from 1 to 65535")


@dataclass(frozen=True)
class RegisteredBoard:
    """A real board: its endpoint, and the bitstream it is to be programmed with."""

    endpoint: Endpoint
    bitstream: str
    """A name of the manifest (hilt.bitstreams)."""


def registered_boards(path: Path | None = None) -> dict[str, RegisteredBoard]:
    """The boards of HILT_HOME/boards.toml by name; none where there is no such file. Raises BoardFileError."""
    path = path or paths.home() / "boards.toml"
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BoardFileError(f"{path} cannot be read: {error}") from None
    return {name: _board(path, name, values) for name, values in tables.items()}


def registered_board(name: str) -> RegisteredBoard:
    """The board of that name. Raises UnknownBoardError, BoardFileError."""
    boards = registered_boards()
    if name in boards:
        return boards[name]
    close = difflib.get_close_matches(name, boards, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    known = ", ".join(boards) or "none yet"
    raise UnknownBoardError(
        f"no board {name!r}: {hint}in {paths.home() / 'boards.toml'} there is {known}; virtual:pynq needs no hardware"
    )


_TYPES: dict[str, type] = {
    "host": str,
    "port": int,
    "user": str,
    "key": str,
    "python": str,
    "sudo": bool,
    "bitstream": str,
}
_NEEDED = ("host", "bitstream")


def _board(path: Path, name: str, values: Any) -> RegisteredBoard:
    where = f"{path}, board {name}"
    if not isinstance(values, dict):
        raise BoardFileError(f"{where}: a table [{name}] is needed")
    for key, value in values.items():
        if key not in _TYPES:
            raise BoardFileError(f"{where}: unknown key {key!r}; known are {', '.join(_TYPES)}")
        if type(value) is not _TYPES[key]:
            raise BoardFileError(f"{where}: {key} must be a {_TYPES[key].__name__}, not {value!r}")
    for key in _NEEDED:
        if key not in values:
            raise BoardFileError(f"{where}: {key} is missing")
    own = {field.name for field in fields(Endpoint)}
    key_file = Path(values["key"]).expanduser() if "key" in values else None
    endpoint = Endpoint(name=name, key_file=key_file, **{key: value for key, value in values.items() if key in own})
    return RegisteredBoard(endpoint, values["bitstream"])
