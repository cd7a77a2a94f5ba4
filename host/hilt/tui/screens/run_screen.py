"""One run, live: curve, trials, outcomes, tuner, board, log."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Protocol

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.timer import Timer
from textual.widgets import Input

from hilt.engine.events import Event
from hilt.store import StoreError
from hilt.store.listing import Listing, Order, Which, trial_numbers
from hilt.tui.messages import ConfigurationChosen
from hilt.tui.run_view import Link, RunView
from hilt.tui.screens.run_page import RunPage
from hilt.tui.watched_run import SHORTEST_TIMER, WatchedRun
from hilt.tui.widgets.latency_curve import LatencyCurve
from hilt.tui.widgets.run_panels import BoardPanel, LogPanel, OutcomesPanel, ProgressPanel, TunerPanel
from hilt.tui.widgets.trials_table import TrialsTable

if TYPE_CHECKING:
    from hilt.tui.run_context import RunContext

_ARRANGE_SECONDS = 2.0
"""A list in another order than that of the trials is made anew at most so often while trials come in."""
_AGREEMENT_SECONDS = 30.0
_FIRST_AGREEMENT_SECONDS = 3.0
"""Seconds after the screen was opened: loading the twin and the tuners takes longer than everything seen at first."""
_AGREEMENT_TRIALS = 64


class Panel(Protocol):
    """A widget that shows a part of a run."""

    def show(self, view: RunView) -> None: ...


class RunScreen(RunPage):
    """The live screen of a run; the table's order and selection are its own."""

    NAME = "run"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "copy", "Copy", show=False, tooltip="The selected trial, as JSON, to the clipboard"),
        Binding("f", "filter", "Filter", tooltip="All trials, valid ones, rejected ones, or those that failed"),
        Binding("o", "order", "Order", show=False, tooltip="By trial, by latency, by outcome; or click a title"),
        Binding("z", "zoom", "Zoom", show=False, tooltip="The chart after the first improvement, or all of it"),
        Binding("y", "scale", "Log/linear", show=False, tooltip="The chart's latencies: logarithmic or linear"),
        Binding("slash", "search", "Search", key_display="/", show=False, tooltip="Only trials that hold a text"),
    ]

    def __init__(self, watch: WatchedRun) -> None:
        super().__init__(watch)
        self._arranged = 0.0
        self._wanted = Listing()
        self._arranging: Timer | None = None
        self._compare_from = math.inf
        self._subject: RunContext | None = None

    def body(self) -> ComposeResult:
        with Container(id="top"):
            with Vertical(id="facts"):
                yield ProgressPanel()
                yield OutcomesPanel()
                yield TunerPanel()
                yield BoardPanel()
            yield LatencyCurve()
        yield Input(placeholder="text in reason, outcome or knobs; Enter keeps it, Escape shows all", id="search")
        yield TrialsTable(self.watched.trials)
        yield LogPanel()

    def on_mount(self) -> None:
        self._told = 0
        self._panels: tuple[Panel, ...] = (
            self.query_one(ProgressPanel),
            self.query_one(OutcomesPanel),
            self.query_one(BoardPanel),
            self.query_one(LatencyCurve),
            self.query_one(TrialsTable),
        )
        self.query_one("#search").display = False
        self._compare_from = time.monotonic() + _FIRST_AGREEMENT_SECONDS
        self.set_timer(_FIRST_AGREEMENT_SECONDS, self._compare_if_due)

    def take(self, events: Sequence[Event]) -> None:
        super().take(events)
        if self.view is not None and self.is_mounted:
            self._show_log()

    def refresh_page(self, view: RunView) -> None:
        for panel in self._panels:
            panel.show(view)
        self.query_one(TunerPanel).show(view, self.watched)
        if self.watched.trials.listing.is_plain:
            self.query_one(TrialsTable).changed()
        elif self._arranging is None:
            wait = self._arranged + _ARRANGE_SECONDS - time.monotonic()
            if wait > SHORTEST_TIMER:
                self._arranging = self.set_timer(wait, self._arrange_again)
            else:
                self._arrange_again()
        self._compare_if_due()

    def _show_log(self) -> None:
        panel = self.query_one(LogPanel)
        new = self.watched.arrived - self._told
        self._told = self.watched.arrived
        if new:
            panel.add(list(self.watched.history)[-min(new, len(self.watched.history)) :])

    # which trials, in which order

    def _arrange_again(self) -> None:
        self._arranging = None
        self._arrange(self._wanted)

    def action_filter(self) -> None:
        listing = self._wanted
        kinds = list(Which)
        self._arrange(replace(listing, which=kinds[(kinds.index(listing.which) + 1) % len(kinds)]))

    def action_order(self) -> None:
        listing = self._wanted
        orders = list(Order)
        order = orders[(orders.index(listing.order) + 1) % len(orders)]
        self._arrange(replace(listing, order=order, descending=False))

    def on_trials_table_order_asked(self, message: TrialsTable.OrderAsked) -> None:
        listing = self._wanted
        descending = message.order is listing.order and not listing.descending
        self._arrange(replace(listing, order=message.order, descending=descending))

    def action_zoom(self) -> None:
        """Show the chart after the first improvement only, or all of it."""
        self.query_one(LatencyCurve).toggle_zoom()

    def action_scale(self) -> None:
        """Make the chart's latencies logarithmic or linear."""
        self.query_one(LatencyCurve).toggle_scale()

    def action_search(self) -> None:
        search = self.query_one("#search", Input)
        search.display = True
        search.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._arrange(replace(self._wanted, text=event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._leave_search()

    def key_escape(self) -> None:
        search = self.query_one("#search", Input)
        search.value = ""
        self._leave_search()
        if not self._wanted.is_plain:
            self._arrange(Listing())

    def _leave_search(self) -> None:
        search = self.query_one("#search", Input)
        search.display = bool(search.value)
        self.query_one(TrialsTable).focus()

    def _arrange(self, listing: Listing) -> None:
        self._wanted = listing  # a key that follows at once goes on from here
        self._read_numbers(listing)

    @work(group="arrange", exclusive=True, exit_on_error=False)
    async def _read_numbers(self, listing: Listing) -> None:
        watch, table = self.watched, self.query_one(TrialsTable)
        changed = listing != watch.trials.listing
        self._arranged = time.monotonic()
        ordinals = None
        if not listing.is_plain:
            try:
                ordinals = await asyncio.to_thread(trial_numbers, watch.store, watch.uuid, listing)
            except StoreError as error:
                self.notify(str(error), title="The store cannot be read", severity="error", markup=False)
                return
        held = table.held
        watch.trials.arrange(listing, ordinals)
        if changed:
            table.move_to(len(watch.trials) - 1 if ordinals is None else 0)
        elif held is not None and (row := watch.trials.row_of(held)) is not None:
            table.hold(row)
        table.changed()

    # the rest

    def action_copy(self) -> None:
        row = self.query_one(TrialsTable).selected()
        if row is None:
            self.notify("there is no trial to copy yet", severity="warning")
        else:
            self.app.copy_to_clipboard(row)
            self.notify(row, title="Copied", timeout=4, markup=False)

    def on_trials_table_chosen(self, message: TrialsTable.Chosen) -> None:
        self.post_message(ConfigurationChosen(message.index))

    def _compare_if_due(self) -> None:
        if self.view is not None and self.view.curve and time.monotonic() >= self._compare_from:
            self._compare_from = time.monotonic() + _AGREEMENT_SECONDS
            self._compare_with_twin()

    @work(group="agreement", exclusive=True, exit_on_error=False)
    async def _compare_with_twin(self) -> None:
        """Compare the order of the measured latencies with the timing model's: soon, and every half minute."""
        try:
            self.query_one(TunerPanel).agreement = await asyncio.to_thread(self._agreement)
        except Exception:  # a board that is not known here, a twin that cannot be built: then it is not known
            self.query_one(TunerPanel).agreement = None
        if self.view is not None and self.view.link is not Link.ATTACHED:
            self.query_one(TunerPanel).show(self.view, self.watched)

    def _agreement(self) -> float | None:
        watch = self.watched
        latest = watch.store.latest_trials(watch.uuid, 4 * _AGREEMENT_TRIALS)
        valid = [(trial.index, trial.microseconds) for trial in latest if trial.verified][:_AGREEMENT_TRIALS]
        if len(valid) < 2:
            return None
        from hilt.tui.run_context import RunContext  # loads tuners, schedules and the twin

        self._subject = self._subject or RunContext(watch.store.run(watch.uuid))
        found = self._subject.twin_agreement([pair[0] for pair in valid], [pair[1] or 0.0 for pair in valid])
        return found if math.isfinite(found) else None
