"""One run, live: curve, trials, outcomes, board, log, and the keys that pause, resume and stop it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar, Protocol

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.screen import Screen
from textual.widgets import Footer

from hilt.engine.client import NoEngineError
from hilt.engine.events import Command, TrialRecorded
from hilt.engine.files import RunFiles
from hilt.store import RunState, Store, StoreError
from hilt.tui.feed import RunFeed
from hilt.tui.messages import EngineGone, EventsArrived, RunLoaded
from hilt.tui.run_view import PAGE_TRIALS, Link, RunView
from hilt.tui.screens.confirm_stop import ConfirmStop
from hilt.tui.widgets.board_panel import BoardPanel
from hilt.tui.widgets.latency_curve import LatencyCurve
from hilt.tui.widgets.log_panel import LogPanel
from hilt.tui.widgets.outcomes_panel import OutcomesPanel
from hilt.tui.widgets.progress_panel import ProgressPanel
from hilt.tui.widgets.status_line import StatusLine
from hilt.tui.widgets.trials_table import TrialsTable


class Panel(Protocol):
    """A widget that shows a part of a run."""

    def show(self, view: RunView) -> None: ...


class RunScreen(Screen[None]):
    """Shows what its feed posts."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "command('pause')", "Pause", tooltip="Nothing new is given to the board until Resume"),
        Binding("r", "command('resume')", "Resume", tooltip="Goes on after a pause"),
        Binding("s", "stop", "Stop", tooltip="Ends the run after what is on the board; asks first"),
        Binding("c", "copy", "Copy", tooltip="The selected trial, as JSON, to the clipboard"),
        Binding("left_square_bracket", "older", "Older", tooltip="The trials before this page"),
        Binding("right_square_bracket", "newer", "Newer", tooltip="The trials after this page; the last page is live"),
    ]

    def __init__(self, home: Path, store: Store, uuid: str) -> None:
        super().__init__()
        self._store = store
        self._uuid = uuid
        self._log_path = RunFiles(home, uuid).log_path
        self._feed = RunFeed(home, store, uuid, self.post_message)
        self._view: RunView | None = None

    @property
    def view(self) -> RunView | None:
        """What is shown; None until the store was read."""
        return self._view

    def compose(self) -> ComposeResult:
        yield StatusLine("reading the store ...")
        with Container(id="top"):
            with Vertical(id="facts"):
                yield ProgressPanel()
                yield OutcomesPanel()
                yield BoardPanel()
            yield LatencyCurve()
        yield TrialsTable()
        yield LogPanel()
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self._panels: tuple[Panel, ...] = (
            self.query_one(StatusLine),
            self.query_one(ProgressPanel),
            self.query_one(OutcomesPanel),
            self.query_one(BoardPanel),
            self.query_one(LatencyCurve),
            self.query_one(TrialsTable),
        )
        self.query_one(TrialsTable).focus()
        self._follow()

    @work(group="feed", exclusive=True, exit_on_error=False)
    async def _follow(self) -> None:
        try:
            await self._feed.follow()
        except StoreError as error:
            self.notify(str(error), title="The store cannot be read", severity="error", timeout=60)

    def on_run_loaded(self, message: RunLoaded) -> None:
        if message.view.link is not Link.ATTACHED:
            self.query_one(LogPanel).write(f"before: {self._log_path}")
        self._view = message.view
        self.query_one(TrialsTable).show_page(message.view.trials, newest=True)
        self._show()

    def on_events_arrived(self, message: EventsArrived) -> None:
        if self._view is None:
            return
        for event in message.events:
            self._view.apply(event)
        self.query_one(TrialsTable).add([event for event in message.events if isinstance(event, TrialRecorded)])
        self.query_one(LogPanel).add(message.events)
        self._show()

    def on_engine_gone(self, message: EngineGone) -> None:
        if self._view is None:
            return
        self._view.engine_gone()
        self._show()

    def _show(self) -> None:
        assert self._view is not None
        for panel in self._panels:
            panel.show(self._view)

    # keys

    @work(group="command", exit_on_error=False)
    async def action_command(self, word: str) -> None:
        await self._send(Command(word))

    @work(group="command", exit_on_error=False)
    async def action_stop(self) -> None:
        attached = self._view is not None and self._view.link is Link.ATTACHED
        if not attached or await self.app.push_screen_wait(ConfirmStop(self._uuid[:8])):
            await self._send(Command.STOP)

    async def _send(self, command: Command) -> None:
        if self._view is not None and self._view.state is RunState.FINISHED:
            self.notify(f"run {self._uuid[:8]} has finished", title=f"Nothing to {command}", severity="warning")
            return
        try:
            await asyncio.to_thread(self._feed.send, command)
        except NoEngineError as error:
            self.notify(str(error), title=f"Could not {command}", severity="warning")
        else:
            self.notify(f"asked the engine to {command}", timeout=3)

    def action_copy(self) -> None:
        row = self.query_one(TrialsTable).selected()
        if row is None:
            self.notify("there is no trial to copy yet", severity="warning")
        else:
            self.app.copy_to_clipboard(row)
            self.notify(row, title="Copied", timeout=4, markup=False)

    @work(group="page", exclusive=True, exit_on_error=False)
    async def action_older(self) -> None:
        table = self.query_one(TrialsTable)
        page = await asyncio.to_thread(
            self._store.latest_trials, self._uuid, PAGE_TRIALS, table.first_number if table.row_count else None
        )
        if page:
            table.show_page(page[::-1], newest=False)
        else:
            self.notify("these are the first trials", timeout=3)

    @work(group="page", exclusive=True, exit_on_error=False)
    async def action_newer(self) -> None:
        table = self.query_one(TrialsTable)
        if table.newest_page or table.last_number is None:
            return
        page = await asyncio.to_thread(self._store.trials, self._uuid, table.last_number + 1, PAGE_TRIALS + 1)
        if len(page) > PAGE_TRIALS:
            table.show_page(page[:PAGE_TRIALS], newest=False)
        else:
            latest = await asyncio.to_thread(self._store.latest_trials, self._uuid, PAGE_TRIALS)
            table.show_page(latest[::-1], newest=True)
