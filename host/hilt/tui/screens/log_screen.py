"""All that the engine and the boards said of this run, earlier sessions too."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, Static

from hilt.tui.event_lines import line_of
from hilt.tui.run_view import RunView
from hilt.tui.screens.run_page import RunPage
from hilt.tui.watched_run import WatchedRun
from hilt.tui.widgets.line_view import LineView

_LEVELS = ("all", "warnings and errors")


class LogScreen(RunPage):
    """Newest last, and followed while the cursor is there."""

    NAME = "log"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "copy", "Copy", tooltip="The line under the cursor, to the clipboard"),
        Binding("f", "filter", "Filter", tooltip="All lines, or warnings and errors only"),
        Binding("slash", "search", "Search", key_display="/", tooltip="Only lines that hold a text; Escape shows all"),
        Binding("o", "pager", "Pager", tooltip="The engine's own log file in $PAGER: tracebacks are there"),
    ]

    def __init__(self, watch: WatchedRun) -> None:
        super().__init__(watch)
        self._level = _LEVELS[0]
        self._shown: tuple[object, ...] = ()

    def body(self) -> ComposeResult:
        yield Input(placeholder="text; Enter keeps it, Escape shows all", id="search")
        yield LineView(follow=True, id="log")
        yield Static(id="line", markup=False)
        yield Static(str(self.watched.engine_files.log_path), id="path", markup=False)

    def on_mount(self) -> None:
        self.query_one("#search").display = False

    def refresh_page(self, view: RunView) -> None:
        text = self.query_one("#search", Input).value.lower()
        state = (self.watched.arrived, self._level, text)
        if state == self._shown:
            return
        self._shown = state
        lines = [line for event in self.watched.history if (line := line_of(event, date=True)) is not None]
        if self._level != _LEVELS[0]:
            lines = [line for line in lines if line[1] in ("warning", "error")]
        lines = [line for line in lines if text in line[0].lower()]
        log = self.query_one("#log", LineView)
        log.border_title = Content(f"log: {self._level}" + (f', with "{text}"' if text else ""))
        log.border_subtitle = f"{len(lines):,} lines"
        log.set_lines(lines or [("nothing was said", "muted")])

    def on_line_view_highlighted(self, message: LineView.Highlighted) -> None:
        """All of it: in the list above a long one is cut."""
        self.query_one("#line", Static).update(message.line)

    def action_filter(self) -> None:
        self._level = _LEVELS[(_LEVELS.index(self._level) + 1) % len(_LEVELS)]
        self.take(())

    def action_search(self) -> None:
        search = self.query_one("#search", Input)
        search.display = True
        search.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self.take(())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.input.display = bool(event.value)
        self.query_one("#log").focus()

    def key_escape(self) -> None:
        search = self.query_one("#search", Input)
        search.value = ""
        search.display = False
        self.query_one("#log").focus()

    def action_copy(self) -> None:
        line = self.query_one("#log", LineView).selected
        if line is not None:
            self.app.copy_to_clipboard(line)
            self.notify(line, title="Copied", timeout=4, markup=False)

    def action_pager(self) -> None:
        path = self.watched.engine_files.log_path
        if not path.exists() or not path.stat().st_size:
            self.notify(f"{path} is empty: no engine reported an error", timeout=5, markup=False)
            return
        try:
            with self.app.suspend():
                subprocess.run([*shlex.split(os.environ.get("PAGER") or "less"), str(path)], check=False)
        except Exception as error:  # a terminal that cannot be handed over, a pager that is not there
            self.notify(f"no pager can be shown here ({error}); the file is {path}", severity="warning", markup=False)
