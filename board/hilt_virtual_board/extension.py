"""The parts of a virtual board that replace the agent's (hilt_board.extension finds them)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Type

from hilt_board.daemon import Daemon

from .board_model import load_board_model


def is_virtual_board() -> bool:
    """Return whether this machine is a virtual board: HILT_VERILATED names its board model."""
    return bool(os.environ.get("HILT_VERILATED"))


def has_own_system() -> bool:
    """Return whether this board boots a system of its own, and is not a few processes of the host's."""
    return bool(load_board_model(Path(os.environ["HILT_VERILATED"])).computer)


def register_device() -> None:
    """Register the virtual board's device with pynq."""
    from . import verilated  # noqa: F401


def daemon_class() -> Type[Daemon]:
    """Return the daemon with the board's injected faults, whose clock this process follows from now on."""
    from .chaos_clock import ENVIRONMENT, follow_clock

    if not os.environ.get(ENVIRONMENT):
        return Daemon
    from .chaos_daemon import ChaosDaemon

    follow_clock()
    return ChaosDaemon


def worker_class():  # type: ignore[no-untyped-def]  # hilt_board.worker imports pynq: only the worker's process does
    """Return the worker with the board's injected faults, whose clock this process follows from now on."""
    from hilt_board.worker import Worker

    from .chaos_clock import ENVIRONMENT, follow_clock

    if not os.environ.get(ENVIRONMENT):
        return Worker
    from .chaos import ChaosWorker

    follow_clock()
    return ChaosWorker
