"""Faults on purpose, on virtual boards only: a daemon that answers with the result of another trial."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import replace
from pathlib import Path

from hilt_board.daemon import Daemon
from hilt_board.protocol import Measured, Record

from .chaos_clock import ENVIRONMENT


class ChaosDaemon(Daemon):
    """A daemon that forges the key of a reply where the worker has asked for it by the file `forge`.

    hilt_virtual_board.chaos writes that. The journal holds the right one.
    """

    async def _device(self, message: Record, gone: asyncio.Event) -> Record:
        reply = await super()._device(message, gone)
        if isinstance(reply, Measured):
            with contextlib.suppress(FileNotFoundError):
                (Path(os.environ[ENVIRONMENT]) / "forge").unlink()
                run, number, attempt = reply.key.split("/")
                return replace(reply, key="{}/{}/{}".format(run, int(number) + 1, attempt))
        return reply
