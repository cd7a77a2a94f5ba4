"""The end of the board's boot.

A PYNQ image runs boot.py of its boot partition late in it, long after SSH answers, and that loads a bitstream of
its own: over ours, if ours was there first, and while its registers are being read.
"""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path

from .extension import virtual_board

_LOG = logging.getLogger("hilt.board")
_SYSTEMD = Path("/run/systemd/system")
_BOOTING = ("initializing", "starting")
_LONGEST_SECONDS = 150.0
"""Seconds after power-on. A boot that is not over by then may never be: its fault is not the agent's. An agent that is
started later waits for nothing."""
_PAUSE_SECONDS = 1.0
_ANSWER_SECONDS = 10.0


async def wait_for_boot(systemd: Path = _SYSTEMD) -> None:
    """Wait until systemd has started all its units; return at once without a systemd of the board's own."""
    virtual = virtual_board()
    if not systemd.is_dir() or (virtual and not virtual.has_own_system()):
        return
    began = time.monotonic()
    while await _state() in _BOOTING:
        if _uptime() > _LONGEST_SECONDS:
            _LOG.warning("the board is still booting %g s after power-on: it is used as it is", _LONGEST_SECONDS)
            return
        await asyncio.sleep(_PAUSE_SECONDS)
    if time.monotonic() - began > _PAUSE_SECONDS:
        _LOG.info("waited %.0f s for the end of the boot", time.monotonic() - began)


def _uptime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


async def _state() -> str:
    """Return systemd's state in one word; an empty string if systemd cannot be asked."""
    try:
        process = await asyncio.create_subprocess_exec(
            "systemctl",
            "is-system-running",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return ""
    try:
        said, _ = await asyncio.wait_for(process.communicate(), _ANSWER_SECONDS)
    except asyncio.TimeoutError:
        process.kill()
        await process.wait()
        return "starting"
    return said.decode("ascii", "replace").strip()
