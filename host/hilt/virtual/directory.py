"""The directory of a virtual board: its disk, its keys, its port and its power switch, below HILT_HOME/virtual."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from hilt import paths
from hilt.virtual.chaos import Chaos
from hilt.virtual.errors import BoardNameError, VirtualBoardError

USER = "xilinx"
_REBOOT = b'#!/bin/sh\nkill -USR1 "$HILT_INIT_PID"\n'
"""Asks the board's first process, as on any board; never the machine that it is simulated on."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}\Z")


class BoardDirectory:
    """The directory of the virtual board `name`. Raises VirtualBoardError for an invalid name."""

    def __init__(self, name: str) -> None:
        if not _NAME.match(name):
            raise BoardNameError(
                f"{name!r} cannot name a virtual board: take 1 to 32 of a-z, 0-9, - and _, a letter or digit first"
            )
        self.name = name
        self.root = paths.home() / "virtual" / name
        self.home = self.root / "home"
        """The filesystem that SSH sessions and SFTP see."""
        self.commands = self.root / "bin"
        """Commands of the board's own, before all others on its PATH."""
        self.authorized_keys = self.root / "authorized_keys"
        self.host_key = self.root / "host_key"
        self.port = self.root / "port"
        self.board_model = self.root / "board_model.json"
        """The settings that the board's pynq Device reads (HILT_VERILATED)."""
        self.log = self.root / "supervisor.log"
        self.chaos = self.root / "chaos"
        """The folder of requested faults and of past ones (hilt_virtual_board.chaos)."""

    @property
    def client_key(self) -> Path:
        """The private key that hilt shows to all virtual boards of this HILT_HOME."""
        return self.root.parent / "id_ed25519"

    def create(self) -> None:
        """Make the missing directories, keys and authorised keys. Nothing that exists is changed."""
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.locked("create"):
            public = _ensure_key(self.client_key)
            _ensure_key(self.host_key)
            self.commands.mkdir(mode=0o700, exist_ok=True)
            self.chaos.mkdir(mode=0o700, exist_ok=True)
            _write(self.commands / "reboot", _REBOOT, 0o700)
            if not self.authorized_keys.exists():
                _write(self.authorized_keys, f"{public}\n".encode())

    def host_public_key(self) -> str:
        """Return the public host key in the format of OpenSSH: "ssh-ed25519 BASE64"."""
        return self.host_key.with_suffix(".pub").read_text(encoding="ascii").strip()

    def write_board_model(self, settings: dict[str, Any]) -> None:
        """Write the board model file. Raises VirtualBoardError if this board was made with another board model."""
        if self.board_model.exists():
            before = json.loads(self.board_model.read_text(encoding="utf-8"))["name"]
            if before != settings["name"]:
                raise VirtualBoardError(
                    f"virtual board {self.name} was made as {before}, not {settings['name']}: "
                    f"take {before}@{self.name} or another name, or remove {self.root}"
                )
        _write(self.board_model, json.dumps(settings, indent=2).encode())

    def write_chaos(self, chaos: Chaos | None) -> None:
        """Set the faults from the next trial on; with None there are no faults any more."""
        settings = self.chaos / "settings.json"
        if chaos is None:
            settings.unlink(missing_ok=True)
        else:
            _write(settings, json.dumps(asdict(chaos)).encode())

    def take_chaos(self, name: str) -> str | None:
        """Take the request of the board's worker under the name `name`.

        Returns None if there is none, or another process took it.
        """
        try:
            text = (self.chaos / name).read_text(encoding="ascii")
            (self.chaos / name).unlink()
        except FileNotFoundError:
            return None
        return text

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Hold the lock named by `name` of all virtual boards of this HILT_HOME; another process waits."""
        with (self.root.parent / f"{name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def short_path(self, name: str) -> Iterator[str]:
        """A path of `name` in the directory that fits a Unix socket address (107 bytes), wherever HILT_HOME is."""
        descriptor = os.open(self.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield f"/proc/self/fd/{descriptor}/{name}"
        finally:
            os.close(descriptor)


CONTROL_SOCKET = "control.sock"


def _ensure_key(path: Path) -> str:
    """Return the public half of the key at `path`, which is made where it is missing."""
    public_path = path.with_suffix(".pub")
    if not (path.exists() and public_path.exists()):
        key = Ed25519PrivateKey.generate()
        public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        _write(path, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
        _write(public_path, public + b"\n")
    return public_path.read_text(encoding="ascii").strip()


def _write(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file whole or not at all, readable by this user only."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(data)
    temporary.replace(path)
