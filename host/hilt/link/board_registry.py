"""The addresses of boards: endpoints, and HILT_HOME/boards.toml for the real ones.

[pynq-z2]
host = "192.168.2.99"
bitstream = "pynq"             # a name of the bitstream manifest; the following lines may be left out
port = 22
user = "xilinx"
key = "~/.ssh/id_ed25519"      # without it: the SSH agent's keys and those of ~/.ssh
python = "/usr/local/share/pynq-venv/bin/python3"
sudo = true                    # registers and contiguous memory need root
[pynq-z2.power.drivers]        # and .resources: labgrid's, see hilt.link.power
ExternalPowerDriver = { cmd_on = "relay 3 on", cmd_off = "relay 3 off", delay = 5.0 }
"""

from __future__ import annotations

import contextlib
import difflib
import fcntl
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from hilt import paths
from hilt.atomic_write import atomic_write
from hilt.link.errors import BoardFileError, UnknownBoardError
from hilt.toml_text import toml_value

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}\Z")
_NAME_RULE = "take up to 32 letters, digits, - and _, a letter or digit first"
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:%-]{0,252}\Z")
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}\Z")
REMOTE_PATH = re.compile(r"[A-Za-z0-9._/][A-Za-z0-9._/-]{0,254}\Z")
"""Paths on the board that may stand in a command: nothing a shell would read as more than a word."""


@dataclass(frozen=True)
class Endpoint:
    """The SSH address of a board. Raises BoardFileError for a value that could be read as something else."""

    name: str
    host: str
    port: int = 22
    user: str = "xilinx"
    key_file: Path | None = None
    """The private key file; None: the SSH agent's keys and those of ~/.ssh."""
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
    power: Mapping[str, Any] | None = None
    """The configuration of its power switch (hilt.link.power); None: switched by hand."""
    memory: Mapping[str, float] | None = None
    """The memory that `hilt boards selftest` found: read_latency and write_latency in cycles, bytes_per_cycle."""


def registered_boards(path: Path | None = None) -> dict[str, RegisteredBoard]:
    """Return the boards of HILT_HOME/boards.toml by name; none if there is no such file. Raises BoardFileError."""
    path = path or paths.home() / "boards.toml"
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BoardFileError(f"{path} cannot be read: {error}") from None
    except RecursionError:
        raise BoardFileError(f"{path} cannot be read: its tables or lists are nested too deep") from None
    for name in tables:
        if not _NAME.match(name):
            raise BoardFileError(f"{path}: {name!r} cannot name a board: {_NAME_RULE}")
    return {name: _board(path, name, values) for name, values in tables.items()}


def registered_board(name: str) -> RegisteredBoard:
    """Return the board of that name. Raises UnknownBoardError, BoardFileError."""
    boards = registered_boards()
    if name in boards:
        return boards[name]
    close = difflib.get_close_matches(name, boards, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    known = ", ".join(boards) or "none yet"
    raise UnknownBoardError(
        f"no board {name!r}: {hint}in {paths.home() / 'boards.toml'} there is {known}; virtual:pynq needs no hardware"
    )


def add_board(name: str, values: Mapping[str, Any]) -> Path:
    """Append a board to HILT_HOME/boards.toml, whose other lines stay as they are; return the file.

    Raises BoardFileError for a name that is invalid or taken, or for impossible values.
    """
    path = paths.home() / "boards.toml"
    if not _NAME.match(name):
        raise BoardFileError(f"{name!r} cannot name a board: {_NAME_RULE}")
    _board(path, name, dict(values))
    table = f"[{name}]\n" + "".join(f"{key} = {toml_value(value)}\n" for key, value in values.items())
    with _locked(path):
        if name in registered_boards(path):
            raise BoardFileError(f"there is a board {name} in {path} already: take another name, or edit that file")
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        try:
            with atomic_write(path) as file:
                file.write(f"{before.rstrip()}\n\n{table}".lstrip())
        except UnicodeEncodeError:
            raise BoardFileError(f"{values!r} has bytes that are no text: give the key file another name") from None
    return path


def remove_board(name: str) -> None:
    """Remove the entry that `add_board` appended last. Raises BoardFileError if that was another board."""
    path = paths.home() / "boards.toml"
    with _locked(path):
        text = path.read_text(encoding="utf-8")
        rest, header, _ = text.rpartition(f"[{name}]\n")
        if not header or len(tomllib.loads(text)) != len(tomllib.loads(rest)) + 1:
            raise BoardFileError(f"board {name} is not the last of {path}: remove it there")
        with atomic_write(path) as file:
            file.write(rest.rstrip() + "\n" if rest.strip() else "")


def write_memory(name: str, memory: Mapping[str, float]) -> Path:
    """Write the memory that was found into the entry of a board, in the place of an earlier one; return the file.

    Raises BoardFileError, UnknownBoardError, UnwritableFileError; then the file is as it was.
    """
    path = paths.home() / "boards.toml"
    header = f"[{name}.memory]"
    table = [header, *(f"{key} = {toml_value(memory[key])}" for key in _MEMORY_KEYS)]
    with _locked(path):
        registered_board(name)
        lines = path.read_text(encoding="utf-8").splitlines()
        if header in (line.strip() for line in lines):
            first = next(number for number, line in enumerate(lines) if line.strip() == header)
            after = (number for number in range(first + 1, len(lines)) if lines[number].lstrip().startswith("["))
            del lines[first : next(after, len(lines))]
        text = "\n".join(lines).rstrip() + "\n\n" + "\n".join(table) + "\n"
        try:
            read = tomllib.loads(text)
        except ValueError as error:
            raise BoardFileError(f"{path}: board {name} has a memory already, written otherwise: {error}") from None
        _board(path, name, read[name])
        with atomic_write(path) as file:
            file.write(text)
    return path


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


_TYPES: dict[str, type] = {
    "host": str,
    "port": int,
    "user": str,
    "key": str,
    "python": str,
    "sudo": bool,
    "bitstream": str,
    "power": dict,
    "memory": dict,
}
_MEMORY_KEYS = ("read_latency", "write_latency", "bytes_per_cycle")
_POWER_TABLES = {"resources", "drivers"}
_NEEDED = ("host", "bitstream")


def _board(path: Path, name: str, values: Any) -> RegisteredBoard:
    where = f"{path}, board {name}"
    _check_keys(where, name, values)
    own = {field.name for field in fields(Endpoint)}
    key_file = Path(values["key"]).expanduser() if "key" in values else None
    endpoint = Endpoint(name=name, key_file=key_file, **{key: value for key, value in values.items() if key in own})
    memory = _memory(where, values.get("memory"))
    return RegisteredBoard(endpoint, values["bitstream"], _power(where, values.get("power")), memory)


def _check_keys(where: str, name: str, values: Any) -> None:
    """Raise BoardFileError unless a board's table has the keys that it needs, and known ones of the right types."""
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


def _memory(where: str, table: Any) -> Mapping[str, float] | None:
    if table is None:
        return None
    numbers = [value for value in table.values() if type(value) in (int, float) and 0 <= value < 1e6]
    if set(table) != set(_MEMORY_KEYS) or len(numbers) != len(table):
        raise BoardFileError(
            f"{where}: memory needs the numbers {', '.join(_MEMORY_KEYS)}, as `hilt boards selftest` writes them"
        )
    return dict(table)


def _power(where: str, table: Any) -> Mapping[str, Any] | None:
    if table is None:
        return None
    arguments = [settings for kind in table.values() if isinstance(kind, dict) for settings in kind.values()]
    well_formed = all(isinstance(kind, dict) for kind in table.values()) and all(
        isinstance(settings, dict) for settings in arguments
    )
    if not set(table) <= _POWER_TABLES or "drivers" not in table or not well_formed:
        raise BoardFileError(
            f"{where}: power needs a table `drivers`, and `resources` where the driver wants one, "
            f'as in drivers.ExternalPowerDriver = {{ cmd_on = "...", cmd_off = "..." }}'
        )
    return dict(table)
