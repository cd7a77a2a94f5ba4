"""The application: which run is watched, which screen is shown, the command palette, detaching, light and dark."""

from __future__ import annotations

import gc
import importlib
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from rich.segment import Segment
from textual import work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.filter import LineFilter
from textual.screen import Screen

from hilt.engine.events import Event
from hilt.engine.run_files import RunFiles
from hilt.store import Campaign, Run, RunState, Store, StoreError, UnknownRunError
from hilt.tui.messages import CampaignChosen, ConfigurationChosen, EngineGone, EventsArrived, RunChosen, RunLoaded
from hilt.tui.run_view import Link
from hilt.tui.screens.help_screen import HelpScreen
from hilt.tui.screens.run_page import RunPage
from hilt.tui.watched_run import WatchedRun
from hilt.tui.widgets.navigation_bar import PAGES

_NEWEST = 100
"""Runs among which a live one is looked for."""
_STARTED_SECONDS = 2.0
"""Seconds after which objects made at the start are taken to stay."""
_RUN_PAGES = {
    "run": "run_screen.RunScreen",
    "board": "board_screen.BoardScreen",
    "space": "space_screen.SpaceScreen",
    "configuration": "configuration_screen.ConfigurationScreen",
    "log": "log_screen.LogScreen",
}
"""Screens of a run by the names of PAGES. Each is loaded when it is first shown: SSH, schedules and tuners take time,
and the run is there at once without them."""
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


class HiltApp(App[None]):
    """Shows the run or campaign given, or the live one, or the newest; or the list where none or several are live."""

    TITLE = "hilt"
    CSS_PATH = "hilt.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (40, "-high"), (55, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(str(place), f"page('{name}')", title, show=False, tooltip=f"Screen: {title.lower()}")
            for place, (name, title) in enumerate(PAGES.items(), start=1)
        ),
        Binding("l", "page('runs')", "Runs", show=False, tooltip="The list of runs"),
        Binding("n", "new_run", "New", tooltip="Starts a run, or the campaign of a network"),
        Binding("t", "toggle_theme", "Theme", tooltip="Light or dark"),
        Binding("question_mark", "help", "Help", key_display="?", tooltip="This help"),
        Binding("q", "detach", "Detach", tooltip="Closes this window; the run goes on"),
        Binding("ctrl+q", "detach", "Detach", show=False, system=True),
    ]

    def __init__(self, home: Path, store: Store, record: Run | Campaign | None = None) -> None:
        super().__init__()
        self._home = home
        self._store = store
        self._record = record
        self._watch: WatchedRun | None = None
        self._pages: dict[str, RunPage] = {}
        self._campaign: str | None = None
        self.failure: StoreError | None = None
        """The error that kept it from showing anything."""

    def on_mount(self) -> None:
        self.set_timer(_STARTED_SECONDS, _collect_garbage)
        try:
            record = self._record or self._obvious_record()
            if isinstance(record, Campaign):
                self._campaign = record.uuid
                self.action_page("campaign")
            elif record is not None:
                self._watch_run(record.uuid)
        except StoreError as error:
            self.failure = error
            self.exit()
            return
        if record is None:
            self.push_screen(_loaded("runs_screen.RunsScreen")(self._home, self._store))

    def _obvious_record(self) -> Run | Campaign | None:
        """Return the only live run, or the newest; the campaign of a layer's run."""
        runs = self._store.runs(_NEWEST)
        live = [run for run in runs if RunFiles(self._home, run.uuid).is_running()]
        candidates = {run.campaign or run.uuid: run for run in live or runs[:1]}
        if len(candidates) != 1:
            return None
        (run,) = candidates.values()
        return (self._store.campaign(run.campaign) or run) if run.campaign else run

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [_PLAIN_TEXT, *super().get_line_filters()]

    # the run that is watched

    def _watch_run(self, uuid: str) -> None:
        if self._watch is not None and self._watch.uuid == uuid:
            self.action_page("run")
            return
        before = list(self._pages.values())
        self._watch = WatchedRun(self._home, self._store, uuid, self.post_message)
        self._pages = {}
        self._follow(self._watch)
        self.action_page("run")
        for old in before:
            self.uninstall_screen(old)

    @work(group="feed", exclusive=True, exit_on_error=False)
    async def _follow(self, watch: WatchedRun) -> None:
        try:
            await watch.feed.follow()
        except (StoreError, UnknownRunError, OSError) as error:
            title = "The run cannot be followed any more"
            self.notify(str(error), title=title, severity="error", timeout=60, markup=False)

    def on_run_loaded(self, message: RunLoaded) -> None:
        self._take(message, ())

    def on_events_arrived(self, message: EventsArrived) -> None:
        self._take(message, message.events)

    def on_engine_gone(self, message: EngineGone) -> None:
        self._take(message, ())

    def _take(self, message: RunLoaded | EventsArrived | EngineGone, events: Sequence[Event]) -> None:
        if not self.is_running:
            return  # the screens are being taken down
        assert self._watch is not None
        if isinstance(message, RunLoaded) and message.view.run.uuid != self._watch.uuid:
            return  # of the run that was watched before: it was on its way
        self._watch.take(message)
        for screen in self.screen_stack:  # a question may stand before it
            if isinstance(screen, RunPage):
                screen.take(events)

    def on_run_chosen(self, message: RunChosen) -> None:
        try:
            self._watch_run(message.uuid)
        except StoreError as error:
            self.notify(str(error), title="The run cannot be shown", severity="error", timeout=20, markup=False)

    def on_configuration_chosen(self, message: ConfigurationChosen) -> None:
        if self._watch is not None:
            self._watch.index = message.index
            self.action_page("configuration")

    def on_campaign_chosen(self, message: CampaignChosen) -> None:
        self._campaign = message.uuid
        if message.show:
            self.action_page("campaign")

    # screens

    def action_page(self, name: str) -> None:
        if len(self.screen_stack) > 2:  # a question is to be answered first
            return
        screen = self._screen(name)
        selected = getattr(self.screen, "selected_run", None) if screen is None else None
        if selected is not None:
            self._watch_run(selected)
            self.action_page(name)
        elif screen is None:
            self.notify("choose a run first: Enter shows one", severity="warning", timeout=4)
        elif len(self.screen_stack) == 1:
            self.push_screen(screen)
        elif self.screen is not screen:
            self.switch_screen(screen)

    def _screen(self, name: str) -> Screen[None] | None:
        screen: Screen[None]
        if name == "runs":
            screen = _loaded("runs_screen.RunsScreen")(self._home, self._store)
            return screen
        if name in ("campaign", "network"):
            view = self._watch.view if self._watch is not None else None
            campaign = self._campaign or (view.run.campaign if view else None)
            if view is not None and campaign is None:
                text = f"run {view.short_id} belongs to no campaign: the newest campaign is shown"
                self.notify(text, severity="warning", timeout=5)
            kind = "campaign_screen.CampaignScreen" if name == "campaign" else "network_screen.NetworkScreen"
            screen = _loaded(kind)(self._home, self._store, campaign)
            return screen
        return self._run_page(name)

    def _run_page(self, name: str) -> RunPage | None:
        """Return the page of a run, made once for each run that is watched, so that its cursor and its choices stay."""
        if self._watch is not None and name not in self._pages:
            page: RunPage = _loaded(_RUN_PAGES[name])(self._watch)
            self.install_screen(page, f"{name} of {self._watch.uuid}")
            self._pages[name] = page
        return self._pages.get(name)

    def action_new_run(self) -> None:
        view = self._watch.view if self._watch is not None else None
        self.push_screen(_loaded("new_run_screen.NewRunScreen")(self._home, view.run if view else None))

    def action_help(self) -> None:
        shown = [active.binding for active in self.screen.active_bindings.values() if active.binding.tooltip]
        self.push_screen(HelpScreen(shown))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield the commands of the app, under the names of the keys."""
        for active in screen.active_bindings.values():
            binding = active.binding
            if binding.tooltip and active.enabled:
                action = self._runner(active.node, binding.action)
                yield SystemCommand(f"{binding.description} ({_key(binding)})", binding.tooltip, action)

    def _runner(self, node: Any, action: str) -> Callable[[], None]:
        def run() -> None:
            self.call_later(self.run_action, action, node)

        return run

    def action_toggle_theme(self) -> None:
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"

    def action_detach(self) -> None:
        self.exit(message=self.farewell)

    @property
    def farewell(self) -> str | None:
        """Return the line for the terminal that the window leaves behind."""
        view = self._watch.view if self._watch is not None else None
        if view is None:
            return self._campaign_farewell()
        if view.link is Link.SILENT and not view.over:
            return f"Run {view.short_id}: its engine does not answer. `hilt tui {view.short_id}` looks again."
        if view.interrupted:
            return f"Run {view.short_id} is interrupted: `hilt resume {view.short_id}` goes on with it."
        if view.over:
            return f"Run {view.short_id} is {view.state}. `hilt show {view.short_id}` prints it."
        return f"Run {view.short_id} goes on. `hilt tui {view.short_id}` attaches again."

    def _campaign_farewell(self) -> str | None:
        campaign = self._store.campaign(self._campaign) if self._campaign else None
        if campaign is None:
            return None
        short = campaign.uuid[:8]
        if RunFiles(self._home, campaign.uuid).is_running():
            return f"Campaign {short} goes on. `hilt tui {short}` attaches again."
        if campaign.state in (RunState.CREATED, RunState.RUNNING, RunState.PAUSED):
            return f"Campaign {short} is interrupted: `hilt resume {short}` goes on with it."
        return f"Campaign {short} is {campaign.state}. `hilt show {short}` prints it."


def _collect_garbage() -> None:
    """Collect garbage again after the start, during which it is off.

    Objects made until now are not scanned any more.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def _loaded(name: str) -> Any:
    """Return a class of hilt.tui.screens, by module and name."""
    module, _, kind = name.partition(".")
    return getattr(importlib.import_module(f"hilt.tui.screens.{module}"), kind)


def _key(binding: Binding) -> str:
    return binding.key_display or binding.key.partition(",")[0]


class PlainText(LineFilter):
    """A filter that leaves control characters out of the drawing. They take no cell, so nothing moves."""

    def apply(self, segments: Sequence[Segment], background: Color) -> list[Segment]:
        return [
            Segment(_CONTROL.sub("", text), style, control) if _CONTROL.search(text) else segment
            for segment in segments
            for text, style, control in (segment,)
        ]


_PLAIN_TEXT = PlainText()
