"""Tuner, trials against the budget, time left, and the best so far."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from hilt.tui import words
from hilt.tui.run_view import RunView

_BAR_CELLS = 16


class ProgressPanel(Static):
    """Seven short lines; latency is the median over the repeats of a trial whose whole output was right."""

    BORDER_TITLE = "progress"

    def show(self, view: RunView) -> None:
        run, progress = view.run, view.progress
        done = min(1.0, progress.trials / run.budget) if run.budget else 1.0
        bar = "█" * round(done * _BAR_CELLS) + "░" * (_BAR_CELLS - round(done * _BAR_CELLS))
        rate = words.NONE if progress.trials_per_second is None else f"{progress.trials_per_second:.1f} trials/s"
        valid_share = words.share(progress.valid, progress.trials)
        lines = [
            Content(f"{progress.trials} of {run.budget} trials {bar} {done:.0%}"),
            Content(f"tuner {run.tuner}, seed {run.seed}; {rate}, left {words.duration(progress.seconds_left)}"),
            Content(f"valid {progress.valid} ({valid_share}) of a space of {run.space_size:,}"),
        ]
        self.update(Content("\n").join([*lines, *_best(view)]))


def _best(view: RunView) -> list[Content]:
    progress = view.progress
    if progress.best_microseconds is None:
        return [Content("best: no valid trial yet")]
    figures = (
        f"{progress.best_cycles or 0:,} cycles, {progress.best_gops or 0:.1f} GOP/s, "
        f"{progress.best_percent_of_bound or 0:.1f}% of the bound"
    )
    latency = words.microseconds(progress.best_microseconds)
    lines = [
        Content.assemble("best ", (latency, "bold"), f" (trial {progress.best_number})"),
        Content(figures),
    ]
    if view.best is not None:
        lines.append(Content(words.knobs(view.best.knobs)))
    return lines
