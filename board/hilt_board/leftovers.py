"""The removal of the files that pynq leaves beside the agent's home: no file of hilt's outlives the agent."""

from __future__ import annotations

import contextlib
import logging
import re
import sys
from pathlib import Path
from typing import Optional

_LOG = logging.getLogger("hilt.leftovers")
FIRMWARE = Path("/lib/firmware")
"""The folder in which pynq writes the bitstream for the kernel, under the name of the .bit file."""
SOCKETS = Path("/tmp")  # noqa: S108  the place is pynq's choice
_OURS = re.compile(r"[0-9a-f]{64}\.bin\Z")
"""The agent names bitstreams by their SHA-256, and nobody else does."""


def frees_buffers(version: str) -> bool:
    """Return whether this pynq gives a buffer back to the kernel that nobody holds any more.

    pynq 2.7 does so only when the process ends (pynq/pl_server/xrt_device.py, `_xrt_allocate`).
    """
    major = version.split(".")[0]
    return not major.isdecimal() or int(major) >= 3


def remove_firmware(keep: Optional[str] = None, directory: Optional[Path] = None) -> None:
    """Remove the bitstreams that pynq wrote for the kernel, but that of the SHA-256 `keep`."""
    for path in (directory or FIRMWARE).glob("*.bin"):
        if _OURS.match(path.name) and path.stem != keep:
            with contextlib.suppress(OSError):  # a card that is read-only by now keeps it
                path.unlink()


def remove_sockets(pid: int, directory: Optional[Path] = None) -> None:
    """Remove the sockets of the PL server that pynq 2.7 starts in a process; a killed one leaves them."""
    for path in (directory or SOCKETS).glob("pynq.*.{}.socket".format(pid)):
        with contextlib.suppress(OSError):
            path.unlink()


def forget_bitstream(directory: Path) -> None:
    """Clear pynq's note of the bitstream loaded last where it names a file of `directory`.

    pynq 3 opens that file before it loads another; without it, no notebook could load anything after hilt is removed.
    """
    notes = sys.modules.get("pynq.pl_server.global_state")
    if notes is None or not notes.global_state_file_exists():
        return
    try:
        noted = Path(str(notes.load_global_state().bitfile_name))
    except (OSError, ValueError, AttributeError) as error:
        _LOG.warning("pynq's note of the last bitstream cannot be read: %s", error)
        return
    if directory in noted.parents:
        notes.clear_global_state()
