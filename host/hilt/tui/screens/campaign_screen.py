"""A network's campaign: every layer's progress, best schedule and gain over the fallback schedule; the time left."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import DataTable, Static

from hilt.engine.campaign_results import LayerResult
from hilt.engine.events import EngineCommand
from hilt.report.facts import campaign_curve
from hilt.report.network_latency import layer_latency
from hilt.store import RunState, Store, StoreError
from hilt.tui import formatting, steering
from hilt.tui.background import in_background
from hilt.tui.campaign_view import CampaignView
from hilt.tui.event_lines import one_line
from hilt.tui.messages import CampaignChosen, RunChosen
from hilt.tui.screens.dialogs import Confirm
from hilt.tui.widgets.key_bar import KeyBar
from hilt.tui.widgets.latency_curve import LatencyCurve
from hilt.tui.widgets.navigation_bar import NavigationBar

_READ_SECONDS = 1.0
_LISTEN_SECONDS = 10.0
"""Seconds between two questions whether the engine answers: the store knows nothing of a stopped process."""
_CURVE_SECONDS = 5.0
"""Seconds between two readings of all trials for the network's curve, at least."""
_COLUMNS = {
    "layer": 18, "times": 6, "trials": 7, "of trials": 10, "best µs": 12, "gain": 8, "share": 7, "state": 12,
}  # fmt: skip
"""Narrow enough for 80 cells together, with the space between them."""
_NOT_NARROW = ("times", "of trials", "share")
"""Columns that a terminal of less than 80 cells has no room for."""
_WIDE_COLUMNS = {"fallback µs": 13, "% of bound": 12, "valid": 7, "all µs": 13, "run": 10}
_LEFT = ("layer", "of trials", "state", "run")
_NARROW, _WIDE = 80, 150
_HIGH = 40
"""Rows of a terminal in which the curve has its part of them, however many the layers."""
_LEAST_CURVE = 8
"""Rows that a curve needs, with its frame."""
_NO_CURVE = "the curve of the network's latency begins when each layer has one"
_BARS = 3
"""Rows of the navigation, of the table's titles and of the keys."""


class CampaignScreen(Screen[None]):
    """The screen of one campaign. Enter shows a layer's run. Without an engine it shows the results so far."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", "Pause", tooltip="Nothing new is given to the board until Resume"),
        Binding("r", "resume", "Resume", tooltip="Goes on: after a pause, an interruption or a failure"),
        Binding("s", "stop", "Stop", tooltip="Ends the campaign after the trials on the board; asks first"),
        Binding("x", "skip", "Skip layer", tooltip="The selected layer gets no more trials; asks first"),
        Binding("v", "curve", "Curve", tooltip="The network's latency in place of the layers, or they again"),
        Binding("c", "next_campaign", "Next", tooltip="The next older campaign; after the oldest, the newest"),
    ]

    def __init__(self, home: Path, store: Store, uuid: str | None = None) -> None:
        super().__init__()
        self._home = home
        self._store = store
        self._uuid = uuid
        self._view: CampaignView | None = None
        self._silent = False
        self._curve: list[tuple[int, float]] = []
        self._curve_of: tuple[str, int] | None = None
        self._curve_from = 0.0
        self._shown: tuple[object, ...] = ()
        self._names: list[str] = []

    @property
    def view(self) -> CampaignView | None:
        """Return the campaign that is shown; None if there is none."""
        return self._view

    @property
    def selected_run(self) -> str | None:
        """Return the run of the selected layer; None if there is none."""
        layer = self._selected()
        return layer.run.uuid if layer is not None and layer.run is not None else None

    def compose(self) -> ComposeResult:
        yield NavigationBar("campaign")
        yield Static("reading the store ...", id="campaign-words")
        yield LatencyCurve()
        yield DataTable(cursor_type="row", zebra_stripes=True, cell_padding=0)
        yield KeyBar()

    def on_mount(self) -> None:
        self._set_columns()
        self.query_one(DataTable).focus()
        self._reading, self._listening = self._read(), self._listen()
        self.set_interval(_READ_SECONDS, self._read_again)
        self.set_interval(_LISTEN_SECONDS, self._listen_again)

    def on_resize(self, event: Resize) -> None:
        if self._names:  # it is mounted
            self._set_columns()
            self._give_room()

    def _set_columns(self) -> None:
        """Set the columns that the terminal has room for."""
        columns = _columns(self.app.size.width)
        if self._names == list(columns):
            return
        table = self.query_one(DataTable)
        row = table.cursor_row
        table.clear(columns=True)
        for name, width in columns.items():
            title = name.rjust(width) if name not in _LEFT else name if name == "layer" else f" {name}"
            table.add_column(title, width=width)
        self._names, self._shown = list(columns), ()
        if self._view is not None:
            self._show()
            table.move_cursor(row=row)

    def _read_again(self) -> None:
        if self._reading.is_finished:  # begun anew each time, one that takes longer would never end
            self._reading = self._read()

    def _listen_again(self) -> None:
        if self._listening.is_finished:
            self._listening = self._listen()

    @work(group="read", exclusive=True, exit_on_error=False)
    async def _read(self) -> None:
        try:
            self._view = await asyncio.to_thread(self._load)
        except Exception as error:  # of store or network: each names the fault in a line
            self.query_one("#campaign-words", Static).update(Content(one_line(str(error))))
            return
        self._show()

    @work(group="listen", exit_on_error=False)
    async def _listen(self) -> None:
        view = self._view
        if view is None or not view.live:
            self._silent = False
        else:
            self._silent = not await in_background(lambda: steering.answers(self._home, view.engine))

    def _load(self) -> CampaignView | None:
        campaigns = self._store.campaigns()
        chosen = next(
            (campaign for campaign in campaigns if campaign.uuid == self._uuid), campaigns[0] if campaigns else None
        )
        if chosen is None:
            return None
        self._uuid = chosen.uuid
        view = CampaignView.load(self._store, self._home, chosen)
        if (key := (chosen.uuid, view.result.trials)) != self._curve_of and time.monotonic() >= self._curve_from:
            self._curve, self._curve_of = campaign_curve(self._store, view.result), key
            self._curve_from = time.monotonic() + _CURVE_SECONDS
        return replace(view, silent=self._silent)

    def _show(self) -> None:
        view = self._view
        head = self.query_one("#campaign-words", Static)
        if view is None:
            head.update(Content("no campaigns yet; n begins one: give a network, such as resnet18, as workload"))
            return
        head.update(_head(view))
        bound = sum(layer.layer.count * layer.run.bound_microseconds for layer in view.result.layers if layer.run)
        better = [point for place, point in enumerate(self._curve) if not place or point[1] < self._curve[place - 1][1]]
        self.query_one(LatencyCurve).put(better, [], view.result.trials, bound, _NO_CURVE)
        rows = [self._row(view, layer) for layer in view.result.layers]
        if rows != list(self._shown):
            self._shown = tuple(rows)
            table = self.query_one(DataTable)
            cursor = table.cursor_row
            table.clear()
            for row in rows:
                table.add_row(*row)
            table.move_cursor(row=cursor)
        self.call_after_refresh(self._give_room)

    def _give_room(self) -> None:
        """Show the curve in the rows that head and layers leave, or in a part of a high terminal.

        In place of the layers it has all rows, however few. It is called after a drawing, also of a screen that left.
        """
        if self._view is None or self.has_class("-curve-alone") or not self.is_attached:
            return
        left = self.size.height - self.query_one("#campaign-words").size.height - len(self._view.result.layers) - _BARS
        self.set_class(self.size.height >= _HIGH or left >= _LEAST_CURVE, "-curve")

    def _row(self, view: CampaignView, layer: LayerResult) -> list[str]:
        best = layer.best.microseconds if layer.best is not None else None
        fallback = layer.fallback.microseconds if layer.fallback is not None else None
        trials = view.result.trials
        share = view.share(layer)
        cells = {
            "layer": layer.layer.name,
            "times": str(layer.layer.count).rjust(6),
            "trials": str(layer.trials).rjust(7),
            "of trials": " " + formatting.bar(layer.trials / trials if trials else 0.0, 8),
            "best µs": layer_latency(layer).rjust(12),
            "gain": (f"{layer.gain:.2f}x" if layer.gain else formatting.NONE).rjust(8),
            "share": (f"{100 * share:.1f}%" if share else formatting.NONE).rjust(7),
            "state": f" {view.layer_state(layer)}",
            "fallback µs": _number(fallback, 13),
            "% of bound": (f"{layer.run.percent_of_bound(best):.1f}" if layer.run and best else formatting.NONE).rjust(
                12
            ),
            "valid": formatting.share(layer.valid, layer.trials).rjust(7),
            "all µs": _number(layer.microseconds, 13),
            "run": f" {layer.run.uuid[:8] if layer.run else formatting.NONE}",
        }
        return [cells[name] for name in self._names]

    # keys

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        layer = self._selected()
        if layer is not None and layer.run is not None:
            self.post_message(RunChosen(layer.run.uuid))
        elif layer is not None:
            self.notify(f"{layer.layer.name} has not begun yet", timeout=3, markup=False)

    def _selected(self) -> LayerResult | None:
        row = self.query_one(DataTable).cursor_row
        layers = self._view.result.layers if self._view is not None else ()
        return layers[row] if 0 <= row < len(layers) else None

    def action_pause(self) -> None:
        self._steer("pause", EngineCommand.PAUSE)

    @work(group="command", exit_on_error=False)
    async def action_stop(self) -> None:
        if self._view is None:
            return
        name = self._view.result.campaign.name
        question = Confirm(
            f"Stop the campaign of {name}?",
            "Trials on the board are finished and recorded; r goes on with it.",
            "Stop",
            "Keep running",
        )
        if await self.app.push_screen_wait(question):
            self._steer("stop", EngineCommand.STOP)

    @work(group="command", exit_on_error=False)
    async def action_skip(self) -> None:
        layer = self._selected()
        if layer is None or layer.run is None:
            self.notify("a layer that has not begun cannot be skipped yet", severity="warning", timeout=4)
            return
        question = Confirm(
            f"Skip {layer.layer.name}?",
            "It gets no more trials in this campaign; its results are kept.",
            "Skip",
            "Keep it",
        )
        if await self.app.push_screen_wait(question):
            await self._do("skip it", steering.send, self._home, layer.run.uuid, EngineCommand.STOP)

    @work(group="command", exit_on_error=False)
    async def action_resume(self) -> None:
        view = self._view
        if view is None:
            return
        await self._do("resume", steering.resume_campaign, self._home, view.result.campaign.uuid)

    @work(group="command", exit_on_error=False)
    async def _steer(self, word: str, command: EngineCommand) -> None:
        """The campaign's engine, or, of a campaign without one, that of the run which is going on."""
        view = self._view
        if view is None:
            return
        campaign = view.result.campaign
        if campaign.state is RunState.FINISHED:
            text = f"campaign {campaign.uuid[:8]} has finished"
            self.notify(text, title=f"Nothing to {word}", severity="warning")
            return
        await self._do(word, steering.send, self._home, view.engine, command)

    async def _do(self, word: str, act: Callable[..., None], *arguments: object) -> None:
        try:
            await asyncio.to_thread(act, *arguments)
        except Exception as error:  # of engine, board or store: each names the remedy in a line
            self.notify(str(error), title=f"Could not {word}", severity="warning", timeout=15, markup=False)
        else:
            self.notify(f"asked the engine to {word}", timeout=3)
        self._read()

    def action_curve(self) -> None:
        self.toggle_class("-curve-alone")
        if not self.has_class("-curve-alone"):
            self._give_room()
            self.query_one(DataTable).focus()

    def action_next_campaign(self) -> None:
        try:
            names = [campaign.uuid for campaign in self._store.campaigns()]
        except StoreError as error:
            self.notify(str(error), title="The store cannot be read", severity="error", timeout=20, markup=False)
            return
        if self._uuid in names:
            self._uuid = names[(names.index(self._uuid) + 1) % len(names)]
            self._silent = False
            self.post_message(CampaignChosen(self._uuid))
            self._read()


def _number(value: float | None, width: int) -> str:
    return (formatting.NONE if value is None else f"{value:,.1f}").rjust(width)


def _head(view: CampaignView) -> Content:
    """Return the head: network and state; progress; latency; gain; the meaning of the marks."""
    result, trials = view.result, view.budget_trials
    budget = f"{result.trials} of {trials} trials" if trials is not None else f"{result.trials} trials"
    left = f", {formatting.duration(view.seconds_left)} left" if view.live and view.seconds_left else ""
    figure = view.figure
    gain = f"{figure.gain:.2f} times the fallback's speed" if figure.gain else ""
    both = len(result.compared)
    if gain and not figure.whole and both < len(result.layers):
        gain += f" in {'the layer that has' if both == 1 else f'the {both} layers that have'} both"
    legend = "" if figure.whole else figure.legend
    latency = "\n".join(line for line in (figure.text, gain, legend) if line)
    where = f"{result.network.name} on {result.campaign.settings['board']}"
    return Content("\n").join(
        [
            Content.assemble(f"{result.campaign.uuid[:8]}  {where}  ", (view.state_words, "bold")),
            Content(f"{budget} {formatting.bar(view.share_done, 16)} {view.share_done:.0%}{left}"),
            Content(latency),
        ]
    )


def _columns(width: int) -> dict[str, int]:
    """Return the columns, with their widths, of a terminal of so many cells."""
    if width < _NARROW:
        return {name: cells for name, cells in _COLUMNS.items() if name not in _NOT_NARROW}
    return _COLUMNS | (_WIDE_COLUMNS if width >= _WIDE else {})
