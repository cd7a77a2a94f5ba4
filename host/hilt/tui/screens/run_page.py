"""The base of the screens about one run: its name and state on top, and the keys that steer it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen

from hilt.engine.client import NoEngineError
from hilt.engine.events import EngineCommand, Event
from hilt.store import RunState
from hilt.tui import steering
from hilt.tui.run_view import Link, RunView
from hilt.tui.screens.dialogs import Confirm
from hilt.tui.watched_run import WatchedRun
from hilt.tui.widgets.key_bar import KeyBar
from hilt.tui.widgets.navigation_bar import NavigationBar
from hilt.tui.widgets.text_panel import TextPanel


class StatusLine(TextPanel):
    """The top line: name and state of the run; more lines where a reason is long. It tells if the view below is old."""

    def show(self, view: RunView) -> None:
        run = view.run
        self.set_class(view.interrupted, "-stale")
        name = f"{view.short_id}  {view.name} on {run.board}  "
        self.put(Content.assemble(name, (view.state_words, "bold")))


class RunPage(Screen[None]):
    """A page about a run: `body` yields its widgets, and `refresh_page` shows the view.

    `refresh_page` is called when something changed while the page is shown, and when it comes to be shown.
    """

    NAME: ClassVar[str]
    """A word of PAGES."""
    AUTO_FOCUS = "TrialsTable, SpaceGrid, LineView"
    """The widgets that may get the focus first. An input that is hidden until a key shows it is not among them: it
    would take the keys pressed while the screen was being made."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "command('pause')", "Pause", tooltip="Nothing new is given to the board until Resume"),
        Binding("r", "resume", "Resume", tooltip="Goes on: after a pause, an interruption or a failure"),
        Binding("s", "stop", "Stop", tooltip="Ends the run after the trials on the board; asks first"),
        Binding("e", "export", "Export", tooltip="Writes trials, a report, AutoTVM's log or this screen"),
    ]

    def __init__(self, watch: WatchedRun) -> None:
        super().__init__()
        self.watched = watch

    @property
    def view(self) -> RunView | None:
        """Return the view that is shown; None until the store was read."""
        return self.watched.view

    def compose(self) -> ComposeResult:
        yield NavigationBar(self.NAME)
        yield StatusLine("reading the store ...")
        yield from self.body()
        yield KeyBar()

    def body(self) -> ComposeResult:
        raise NotImplementedError

    def on_screen_resume(self) -> None:
        self.take(())

    def take(self, events: Sequence[Event]) -> None:
        """The watch has changed, by these events among others."""
        if self.view is not None and self.is_mounted:
            self.query_one(StatusLine).show(self.view)
            self.refresh_page(self.view)

    def refresh_page(self, view: RunView) -> None:
        raise NotImplementedError

    # keys

    @work(group="command", exit_on_error=False)
    async def action_command(self, word: str) -> None:
        await self._send(EngineCommand(word))

    @work(group="command", exit_on_error=False)
    async def action_stop(self) -> None:
        short = self.watched.short_id
        question = Confirm(
            f"Stop run {short}?",
            f"Trials on the board are finished and recorded; `hilt resume {short}` goes on with it.",
            "Stop",
            "Keep running",
        )
        attached = self.view is not None and self.view.link is Link.ATTACHED
        if not attached or await self.app.push_screen_wait(question):
            await self._send(EngineCommand.STOP)

    @work(group="command", exit_on_error=False)
    async def action_resume(self) -> None:
        """Resume a paused run; start an engine for a run without one."""
        view = self.view
        if view is None or view.link in (Link.ATTACHED, Link.SILENT) or view.state is RunState.FINISHED:
            await self._send(EngineCommand.RESUME)
            return
        self.notify("starting an engine ...", timeout=3)
        try:
            await asyncio.to_thread(steering.resume_run, self.watched.store, self.watched.home, self.watched.uuid)
        except Exception as error:  # of board, link, store or tuner: each names the remedy in a line
            self.notify(str(error), title="Could not resume", severity="error", timeout=20, markup=False)

    async def _send(self, command: EngineCommand) -> None:
        if self.view is not None and self.view.state is RunState.FINISHED:
            text = f"run {self.watched.short_id} has finished"
            self.notify(text, title=f"Nothing to {command}", severity="warning")
            return
        try:
            await asyncio.to_thread(self.watched.feed.send, command)
        except NoEngineError as error:
            self.notify(str(error), title=f"Could not {command}", severity="warning", markup=False)
        else:
            self.notify(f"asked the engine to {command}", timeout=3)

    async def action_export(self) -> None:
        if self.view is not None:
            self.app.clear_notifications()  # that of the last export would stand in the picture of this one
            await self.query("ToastHolder").remove()
            self.call_after_refresh(self._open_export)

    def _open_export(self) -> None:
        from hilt.tui.screens.export_screen import ExportScreen  # loads the writers of TVM's formats

        self.app.push_screen(ExportScreen(self.watched, self.app.export_screenshot()))
