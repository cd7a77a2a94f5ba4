"""The run's space as a picture: accepted configurations, their clusters, and the measured latencies."""

from __future__ import annotations

import asyncio
import time
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from hilt.schedule import Reason
from hilt.store.listing import latencies
from hilt.trial import Outcome
from hilt.tui import formatting
from hilt.tui.event_lines import one_line
from hilt.tui.messages import ConfigurationChosen
from hilt.tui.run_context import RunContext
from hilt.tui.run_view import RunView
from hilt.tui.screens.run_page import RunPage
from hilt.tui.space_picture import GLYPHS, Unfolding, by_cluster, by_latency
from hilt.tui.watched_run import SHORTEST_TIMER, WatchedRun
from hilt.tui.widgets.space_grid import SpaceGrid

_AGAIN_SECONDS = 2.0


class SpaceScreen(RunPage):
    """The cursor's configuration is said beside the picture; Enter shows it in depth."""

    NAME = "space"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "colour", "Latency/clusters", tooltip="Cells by measured latency, or by cluster"),
        Binding("b", "best", "Best", tooltip="The cursor to the best configuration of the run"),
        Binding("c", "copy", "Copy", show=False, tooltip="The number of the configuration, to the clipboard"),
    ]

    def __init__(self, watch: WatchedRun) -> None:
        super().__init__(watch)
        self._subject: RunContext | None = None
        self._unfolding: Unfolding | None = None
        self._clusters = False
        self._measured: dict[int, float] = {}
        self._failed: dict[int, str] = {}
        self._drawn = (-1, 0.0)
        self._busy = False
        self._waiting: Timer | None = None

    def body(self) -> ComposeResult:
        with Container(id="space"):
            yield SpaceGrid()
            with VerticalScroll(id="cell", can_focus=False):
                yield Static("judging the space ...", id="cell-words")

    def on_mount(self) -> None:
        self.query_one("#cell").border_title = "configuration"

    def refresh_page(self, view: RunView) -> None:
        trials, at = self._drawn
        if self._busy or self._waiting is not None or trials == view.progress.trials:
            return
        wait = at + _AGAIN_SECONDS - time.monotonic()
        if trials < 0 or wait <= SHORTEST_TIMER:
            self._draw(first=trials < 0)
        else:  # nothing may come any more that would remind us
            self._waiting = self.set_timer(wait, self._draw_again)

    def _draw_again(self) -> None:
        self._waiting = None
        self.take(())

    @work(group="draw", exit_on_error=False)
    async def _draw(self, first: bool = False) -> None:
        view = self.view
        assert view is not None
        self._busy = True
        trials = view.progress.trials
        try:
            cells = await asyncio.to_thread(self._cells)
        except Exception as error:  # of board or store, or a space too large: each names the fault in a line
            self._drawn = (trials, time.monotonic())
            self.query_one("#cell-words", Static).update(Content(one_line(str(error))))
            return
        finally:
            self._busy = False
        self._drawn = (trials, time.monotonic())
        assert self._unfolding is not None
        grid = self.query_one(SpaceGrid)
        grid.show(self._unfolding, cells)
        self._describe_space(grid)
        if first:
            wanted = self.watched.explained_configuration()
            grid.go_to(wanted if wanted is not None and wanted < len(self._ready.space) else 0)
        elif grid.index is not None:
            self._describe(grid.index)
        self.take(())  # trials that came while it was drawn

    def _cells(self) -> NDArray[np.int8]:
        watch = self.watched
        self._subject = self._subject or RunContext(watch.store.run(watch.uuid))
        facts = self._subject.facts
        self._unfolding = self._unfolding or Unfolding(self._subject.space)
        trials = latencies(watch.store, watch.uuid)
        cells, self._measured = by_latency(facts, trials)
        self._failed = {index: outcome for index, outcome, _ in trials if outcome not in (Outcome.OK, Outcome.REJECTED)}
        return by_cluster(facts) if self._clusters else cells

    @property
    def _ready(self) -> RunContext:
        assert self._subject is not None
        return self._subject

    def _describe_space(self, grid: SpaceGrid) -> None:
        assert self._unfolding is not None
        found = self._ready.facts.clusters
        sizes = found.sizes
        largest = f", largest {sizes[0]:,}" if len(sizes) else ""
        grid.border_title = (
            f"{len(found.members):,} of {found.size:,} accepted ({100 * found.valid_ratio:.0f}%), "
            f"{len(sizes):,} {'cluster' if len(sizes) == 1 else 'clusters'}{largest}"
        )
        if self._clusters:
            grid.border_subtitle = f"{GLYPHS[4]} largest cluster … {GLYPHS[-1]} small ones, blank rejected"
        else:
            grid.border_subtitle = f"@ best {GLYPHS[4]} fast … {GLYPHS[-1]} slow × failed · not tried, blank rejected"

    def on_space_grid_moved(self, message: SpaceGrid.Moved) -> None:
        self._describe(message.index)

    def on_space_grid_chosen(self, message: SpaceGrid.Chosen) -> None:
        self.post_message(ConfigurationChosen(message.index))

    def _describe(self, index: int) -> None:
        subject, view, unfolding = self._ready, self.view, self._unfolding
        assert view is not None and unfolding is not None
        facts = subject.facts
        verdict, label = Reason(int(facts.verdicts[index])), int(facts.labels[index])
        latency = self._measured.get(index)
        lines = [
            Content.assemble(("configuration ", "dim"), (f"{index}", "bold"), f" of {len(subject.space):,}"),
            Content(formatting.knobs(subject.space.knobs_at(index))),
            Content("accepted" if label >= 0 else f"rejected: {verdict.text}"),
        ]
        if label >= 0:
            lines.append(Content(f"cluster {label + 1}, of {facts.clusters.sizes[label]:,} configurations"))
        if latency is None:
            failed = self._failed.get(index)
            lines.append(Content(f"tried in this run: {failed}" if failed else "not measured in this run"))
        else:
            share = view.run.percent_of_bound(latency)
            lines.append(Content(f"{formatting.microseconds(latency)}, {share:.1f}% of the bound"))
            best = min(self._measured.values())
            lines.append(Content(f"{latency / best:.2f} times the best's"))
        across, down = (", ".join(name.removeprefix("tile_") for name in names) for names in
                        (unfolding.columns, unfolding.rows))  # fmt: skip
        lines.append(Content.styled(f"along a row: {across or 'nothing'}; down: {down or 'nothing'}", "dim"))
        self.query_one("#cell-words", Static).update(Content("\n").join(lines))

    # keys

    def action_colour(self) -> None:
        self._clusters = not self._clusters
        self._draw()

    def action_best(self) -> None:
        if self._measured:
            self.query_one(SpaceGrid).go_to(min(self._measured, key=lambda each: (self._measured[each], each)))
        else:
            self.notify("nothing was measured yet", severity="warning", timeout=3)

    def action_copy(self) -> None:
        index = self.query_one(SpaceGrid).index
        if index is not None:
            self.app.copy_to_clipboard(str(index))
            self.notify(str(index), title="Copied", timeout=3)
