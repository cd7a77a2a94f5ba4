"""The application: which run is shown, help, detaching, light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from hilt.engine.files import RunFiles
from hilt.store import Store
from hilt.tui.messages import RunChosen
from hilt.tui.screens.help_screen import HelpScreen
from hilt.tui.screens.run_screen import RunScreen
from hilt.tui.screens.runs_screen import RunsScreen

_NEWEST = 20
"""Runs among which a live one is looked for."""


class HiltApp(App[None]):
    """Shows the run given, or the live one, or the newest; or the list where none or several are live."""

    TITLE = "hilt"
    CSS_PATH = "hilt.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (40, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "runs", "Runs", tooltip="The list of runs"),
        Binding("t", "toggle_theme", "Light/dark", show=False, tooltip="Light or dark"),
        Binding("question_mark", "help", "Help", key_display="?", tooltip="This help"),
        Binding("q", "detach", "Detach", tooltip="Closes this window; the run goes on"),
        Binding("ctrl+q", "detach", "Detach", show=False, system=True),
    ]

    def __init__(self, home: Path, store: Store, uuid: str | None = None) -> None:
        super().__init__()
        self._home = home
        self._store = store
        self._uuid = uuid

    def on_mount(self) -> None:
        uuid = self._uuid or self._obvious_run()
        if uuid:
            self.push_screen(RunScreen(self._home, self._store, uuid))
        else:
            self.push_screen(RunsScreen(self._home, self._store))

    def _obvious_run(self) -> str | None:
        runs = self._store.runs(_NEWEST)
        live = [run for run in runs if RunFiles(self._home, run.uuid).is_running()]
        candidates = live or runs[:1]
        return candidates[0].uuid if len(candidates) == 1 else None

    def on_run_chosen(self, message: RunChosen) -> None:
        self.switch_screen(RunScreen(self._home, self._store, message.uuid))

    def action_runs(self) -> None:
        if isinstance(self.screen, RunScreen):
            self.switch_screen(RunsScreen(self._home, self._store))

    def action_help(self) -> None:
        shown = [active.binding for active in self.screen.active_bindings.values() if active.binding.tooltip]
        self.push_screen(HelpScreen(shown))

    def action_toggle_theme(self) -> None:
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"

    def action_detach(self) -> None:
        self.exit(message=self.farewell)

    @property
    def farewell(self) -> str | None:
        """What closing the window leaves behind, for the terminal."""
        view = self.screen.view if isinstance(self.screen, RunScreen) else None
        if view is None:
            return None
        if view.interrupted:
            return f"Run {view.short_id} is interrupted: `hilt resume {view.short_id}` goes on with it."
        if view.over:
            return f"Run {view.short_id} is {view.state}. `hilt show {view.short_id}` prints it."
        return f"Run {view.short_id} goes on. `hilt tui {view.short_id}` attaches again."
