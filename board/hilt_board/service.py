"""A systemd service for the daemon: it is up when the board is, with pynq imported, before anybody connects."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import List

from .home import Home
from .worker_process import agent_archive

UNIT = "hilt-board.service"
DIRECTORY = Path("/etc/systemd/system")
ARCHIVE = Path("/usr/local/lib/hilt/hilt-board.pyz")
"""The archive that the service runs: root's own copy, because a user can change the files in their home."""

# A daemon that ends by itself with 0 was asked to, as by a newer agent that takes its place: it stays ended. One that
# finds another running (3: commands.InUseError) does too: a client's `start` was faster, and one that tries again every
# few seconds would only disturb it.
_TEXT = """[Unit]
Description=hilt board agent
After=network.target

[Service]
Type=simple
ExecStart="{python}" "{archive}" daemon
Environment=HILT_AGENT_HOME={home}
Environment=XILINX_XRT={xrt}
UMask=0077
Restart=on-failure
RestartSec=2
RestartPreventExitStatus=3
KillMode=mixed

[Install]
WantedBy=multi-user.target
"""


class ServiceError(Exception):
    """The service cannot be installed here; says why."""


def unit_text(python: str, archive: str, home: str, xrt: str) -> str:
    """Return the unit file. Raises ServiceError for a path that systemd would read as something else."""
    for value in (python, archive, home, xrt):
        if any(character in value for character in '"\\%$ \n'):
            raise ServiceError("{!r} cannot stand in a unit file".format(value))
    return _TEXT.format(python=python, archive=archive, home=home, xrt=xrt)


def install(home: Home) -> str:
    """Write the unit and enable it, so that it starts with the board. Return a message. Raises ServiceError."""
    archive = agent_archive()
    if archive is None:
        raise ServiceError("the service runs an archive; this agent runs from a folder")
    if not Path("/run/systemd/system").is_dir():
        raise ServiceError("systemd does not run here")
    if os.geteuid() != 0:
        raise ServiceError("installing a service needs root: run it with sudo")
    text = unit_text(sys.executable, str(ARCHIVE), str(home.root), os.environ.get("XILINX_XRT", "/usr"))
    ARCHIVE.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    _write(ARCHIVE, archive.read_bytes())
    _write(DIRECTORY / UNIT, text.encode("ascii"))
    _systemctl(["daemon-reload"])
    _systemctl(["enable", UNIT])
    return "{} is installed; it starts with the board".format(DIRECTORY / UNIT)


def remove() -> str:
    """Disable the service and remove its unit. Raises ServiceError."""
    if not (DIRECTORY / UNIT).exists():
        return "{} was not installed".format(UNIT)
    if os.geteuid() != 0:
        raise ServiceError("removing a service needs root: run it with sudo")
    _systemctl(["disable", UNIT])
    (DIRECTORY / UNIT).unlink()
    ARCHIVE.unlink(missing_ok=True)
    _systemctl(["daemon-reload"])
    return "{} is removed".format(UNIT)


def _write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all; for root to write and all to read."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    fresh.write_bytes(data)
    fresh.chmod(0o644)
    fresh.replace(path)


def _systemctl(words: List[str]) -> None:
    done = subprocess.run(["systemctl", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise ServiceError("systemctl {}: {}".format(" ".join(words), done.stderr.decode("utf-8", "replace").strip()))
