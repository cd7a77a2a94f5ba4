"""Tuner, trials against the budget, time left, and the best so far."""

from __future__ import annotations

import time

from textual.content import Content

from hilt.engine.events import RunProgress
from hilt.store import RunState
from hilt.tui import formatting
from hilt.tui.run_view import Link, RunView
from hilt.tui.widgets.text_panel import TextPanel

_BAR_CELLS = 16
_QUIET_SECONDS = 20.0
"""Seconds without a word from the engine, as in a long trial, after which the time left is not known any more."""


class ProgressPanel(TextPanel):
    """Six short lines; latency is the median over the repeats of a trial whose whole output was right."""

    BORDER_TITLE = "progress"

    def show(self, view: RunView) -> None:
        run, progress = view.run, view.progress
        most = min(run.budget, run.space_size)
        done = min(1.0, progress.trials / most) if most else 1.0
        bar = "█" * round(done * _BAR_CELLS) + "░" * (_BAR_CELLS - round(done * _BAR_CELLS))
        lines = [
            Content(f"{progress.trials} of {most} trials {bar} {done:.0%}"),
            Content(_pace(view, most)),
            Content(f"tuner {run.tuner}, seed {run.seed}; {progress.valid} valid ({_valid_share(progress)})"),
        ]
        self.put(Content("\n").join([*lines, *_best(view)]))


def _pace(view: RunView, most: int) -> str:
    progress = view.progress
    if view.state is RunState.FINISHED and progress.trials < most:
        return "the tuner asked for no more"
    if view.link is not Link.ATTACHED or view.over:
        return "not running now"
    if view.state is RunState.PAUSED:
        return "paused"
    quiet = time.monotonic() - view.heard
    if quiet > _QUIET_SECONDS:
        return f"nothing new for {formatting.duration(quiet)}"
    if progress.trials_per_second is None:
        return "trials/s and time left: not known yet"
    return f"{progress.trials_per_second:.1f} trials/s, {formatting.duration(progress.seconds_left)} left"


def _valid_share(progress: RunProgress) -> str:
    return formatting.share(progress.valid, progress.trials)


def _best(view: RunView) -> list[Content]:
    progress = view.progress
    if progress.best_microseconds is None:
        return [Content("best: no valid trial yet")]
    latency = formatting.microseconds(progress.best_microseconds)
    cycles = f", {progress.best_cycles or 0:,} cycles (trial {progress.best_number})"
    lines = [
        Content.assemble("best ", (latency, "bold"), cycles),
        Content(f"{progress.best_gops or 0:.1f} GOP/s, {progress.best_percent_of_bound or 0:.1f}% of the bound"),
    ]
    if view.best is not None:
        lines.append(Content(formatting.knobs(view.best.knobs)))
    return lines
