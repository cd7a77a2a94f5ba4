"""The best latency over the trials. Plotext is loaded when there is a curve to draw."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.color import Color
from textual.containers import Container
from textual.content import Content
from textual.events import Resize
from textual.timer import Timer
from textual.widgets import Static

from hilt.tui import formatting
from hilt.tui.run_view import RunView
from hilt.tui.watched_run import SHORTEST_TIMER

if TYPE_CHECKING:
    from textual_plotext.plot import Plot

    from hilt.tui.widgets.redrawn_plot import RedrawnPlot

_LEAST_WIDTH, _LEAST_HEIGHT = 28, 6
"""Cells below which axes leave no room for the curve; words are shown instead."""

_MOST_POINTS = 500
_RANGE = 30.0
"""Latencies above so many times the best are counted, not drawn."""
_LINEAR_RANGE = 5.0
"""A larger range than this has a logarithmic axis."""
_REDRAW_SECONDS = 3.0
"""Drawing takes as long as all else on the screen together; between two drawings at least so much time passes."""


class LatencyCurve(Container):
    """A step at each better trial, up to the trials done; logarithmic where latencies differ by five times."""

    BORDER_TITLE = "latency, µs"

    def compose(self) -> ComposeResult:
        yield Static()

    def on_mount(self) -> None:
        self._picture: RedrawnPlot | None = None
        self._points: list[tuple[int, float]] = []
        self._trials = 0
        self._empty = ""
        self._all: list[tuple[int, float]] = []
        self._bound = 0.0
        self._zoomed = False
        self._scale = ""
        self._drawn = -_REDRAW_SECONDS
        self._waiting: Timer | None = None

    def on_resize(self, event: Resize) -> None:
        self._draw()

    def show(self, view: RunView) -> None:
        """Show a run: its verified trials, and the best so far."""
        empty = "" if view.progress.valid else "no valid trial yet"
        self.put(view.curve, view.points, view.progress.trials, view.run.bound_microseconds, empty)

    def put(
        self,
        curve: Sequence[tuple[int, float]],
        points: list[tuple[int, float]],
        trials: int,
        bound: float,
        empty: str = "",
    ) -> None:
        """Show a curve.

        Args:
            curve: (trial, microseconds) of each better result.
            points: The same of all results; not always in order.
            trials: Those that were made.
            bound: Microseconds below which nothing can be; 0 draws none.
            empty: The words in place of a curve without points.
        """
        self._empty, self._bound, self._all = empty, bound, points
        # Drawing is dear: without a better trial the line only grows, and a hundredth of it is less than a cell.
        if list(curve) == self._points and self._trials <= trials <= 1.01 * self._trials:
            return
        self._points, self._trials = list(curve), trials
        if self._waiting is None:
            wait = self._drawn + _REDRAW_SECONDS - time.monotonic()
            self._waiting = self.set_timer(wait, self._draw) if wait > SHORTEST_TIMER else None
            if self._waiting is None:
                self.call_after_refresh(self._draw)  # the trials first

    def toggle_zoom(self) -> None:
        """Show the latencies after the first improvement only, or all of them."""
        self._zoomed = not self._zoomed
        self._draw()

    def toggle_scale(self) -> None:
        """Show the latencies on a logarithmic axis, or on a linear one."""
        self._scale = "linear" if self._axis() == "log" else "log"
        self._draw()

    def _axis(self) -> str:
        if self._scale:
            return self._scale
        highest = self._highest()
        latencies = [latency for _, latency in (*self._points, *self._all) if latency <= highest]
        return "log" if latencies and max(latencies) > _LINEAR_RANGE * min(latencies) else "linear"

    def _draw(self) -> None:
        """Draw the points that were put. It is called after a drawing of the screen, also where that has left since."""
        self._waiting = None
        if not self.is_attached:
            return
        room = self.content_size
        plotted = bool(self._points) and room.width >= _LEAST_WIDTH and room.height >= _LEAST_HEIGHT
        if self._picture is not None:
            self._picture.display = plotted
        self.query_one(Static).display = not plotted
        if plotted:
            self._drawn = time.monotonic()
            self._plot()
        else:
            self.query_one(Static).update(Content(self._words()))

    def _plot(self) -> None:
        if self._picture is None:
            from hilt.tui.widgets.redrawn_plot import RedrawnPlot

            self._picture = RedrawnPlot(self._fill)
            self.mount(self._picture)
        highest = self._highest()
        above = sum(latency > highest for _, latency in (self._all or self._points))
        self.border_title = self._title()
        self.border_subtitle = "best ─  trials •  bound ┄" + (f"  {above} above" if above else "")
        self._picture.refresh()

    def _fill(self, plot: Plot) -> None:
        """Put the points, the bound and the best line into an empty plot."""
        ordinals, latencies = _steps(_thinned(self._points), self._trials)
        # Said, for Plotext's own differs before and after it was first shown.
        colour = Color.parse(self.app.theme_variables["primary"]).rgb
        last = max(self._trials, 1)
        highest = self._highest()
        # A later line covers an earlier one: the best line stays seen where it reaches the bound.
        if self._bound:
            red = Color.parse(self.app.theme_variables["error"]).rgb
            plot.plot([0, last], [self._bound, self._bound], marker="┄", color=red)
        points = _thinned([point for point in self._all if point[1] <= highest])
        if points:
            grey = Color.parse(self.app.theme_variables["foreground"]).blend(Color.parse("black"), 0.4).rgb
            plot.scatter(*map(list, zip(*points, strict=True)), marker="dot", color=grey)
        shown = [(ordinal, latency) for ordinal, latency in zip(ordinals, latencies, strict=True) if latency <= highest]
        plot.plot(*map(list, zip(*shown, strict=True)), marker="braille", color=colour)
        plot.yscale(self._axis())
        plot.xlim(0, last)
        plot.xticks(sorted({round(last * quarter / 4) for quarter in range(5)}))
        plot.xlabel("trials")

    def _highest(self) -> float:
        """Return the highest latency that is drawn, so that outliers leave room for the best line.

        Zoomed, it is that of the second best-so-far schedule.
        """
        if self._zoomed and len(self._points) > 1:
            return self._points[1][1]
        return _RANGE * self._points[-1][1] if self._points else float("inf")

    def _title(self) -> str:
        zoom = ", zoomed" if self._zoomed else ""
        return f"latency, µs, {self._axis()}{zoom}"

    def _words(self) -> str:
        if not self._points:
            return self._empty
        last = self._points[-4:]
        return "\n".join(f"trial {ordinal}: {formatting.microseconds(latency)}" for ordinal, latency in last)


def _thinned(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return about _MOST_POINTS of them at most, the last always: more would not be seen, and would take seconds."""
    every = len(points) // _MOST_POINTS + 1
    return [*points[:-1:every], *points[-1:]]


def _steps(points: list[tuple[int, float]], trials: int) -> tuple[list[float], list[float]]:
    """Return the corners of the staircase."""
    ordinals: list[float] = []
    latencies: list[float] = []
    for place, (ordinal, latency) in enumerate(points):
        until = points[place + 1][0] if place + 1 < len(points) else max(trials, ordinal + 1)
        ordinals += [ordinal, until]
        latencies += [latency, latency]
    return ordinals, latencies
