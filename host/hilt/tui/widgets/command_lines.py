"""The commands that work now, in this home: one line each, with phase, count and time left."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from textual import work
from textual.content import Content
from textual.events import Resize
from textual.message import Message
from textual.widgets import Static

from hilt.engine.command_progress import CommandProgress, live_commands
from hilt.tui.event_lines import one_line

_READ_SECONDS = 0.5
_MOST = 3
"""Commands that are shown; more are counted."""


class CommandLines(Static):
    """Takes no room while no command works. Reads the files again twice a second."""

    class Ended(Message):
        """A command ended, so its results may be there."""

    def __init__(self, home: Path) -> None:
        super().__init__("")
        self._home = home
        self._commands: Sequence[CommandProgress] = ()
        self.display = False

    def on_mount(self) -> None:
        self._reading = self._read()
        self.set_interval(_READ_SECONDS, self._read_again)

    def on_resize(self, event: Resize) -> None:
        self._show()

    def _read_again(self) -> None:
        if self._reading.is_finished:
            self._reading = self._read()

    @work(group="commands", exit_on_error=False)
    async def _read(self) -> None:
        before, self._commands = self._commands, await asyncio.to_thread(live_commands, self._home)
        self._show()
        if len(self._commands) < len(before):
            self.post_message(self.Ended())

    def _show(self) -> None:
        self.display = bool(self._commands)
        if not self._commands:
            return
        now = time.time()
        lines = [_line(each, now) for each in self._commands[:_MOST]]
        if len(self._commands) > _MOST:
            lines.append(Content(f"and {len(self._commands) - _MOST} more"))
        self.update(Content("\n").join(lines))


def _line(progress: CommandProgress, now: float) -> Content:
    return Content.assemble((one_line(progress.command), "bold"), f"  {one_line(progress.text(now))}")
