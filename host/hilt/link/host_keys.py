"""HILT_HOME/known_hosts: which key each board showed when somebody accepted it. OpenSSH's format, nothing hashed."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
from pathlib import Path

from hilt import paths
from hilt.link.errors import UnknownHostKeyError


class HostKeys:
    """The file of accepted host keys; it may be shared by several processes."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or paths.home() / "known_hosts"

    def of(self, host: str, port: int) -> list[str]:
        """Return the keys accepted for a host, each "TYPE BASE64"; none if nobody accepted one."""
        wanted = host_pattern(host, port)
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return []
        fields = [line.split() for line in lines if line.strip() and not line.startswith("#")]
        return [f"{field[1]} {field[2]}" for field in fields if len(field) >= 3 and wanted in field[0].split(",")]

    def accept(self, unknown: UnknownHostKeyError) -> None:
        """Remember the key of a first contact: somebody has compared its fingerprint."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if unknown.key not in self.of(unknown.host, unknown.port):
                # Who edited the file may have left its last line without an end.
                before = "" if self.path.read_bytes()[-1:] in (b"", b"\n") else "\n"
                file.write(f"{before}{host_pattern(unknown.host, unknown.port)} {unknown.key}\n")
                file.flush()
                os.fsync(file.fileno())


def host_pattern(host: str, port: int) -> str:
    """Return the name of a host in known_hosts: with its port unless that is 22."""
    return host if port == 22 else f"[{host}]:{port}"


def fingerprint(key: str) -> str:
    """Return "SHA256:..." of "TYPE BASE64", as ssh-keygen -l prints it."""
    digest = hashlib.sha256(base64.b64decode(key.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode("ascii").rstrip("=")
