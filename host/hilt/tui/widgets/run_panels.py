"""The panels beside a run's chart and trials: progress, outcomes, tuner, boards and log."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from textual.content import Content

from hilt.engine.events import Event, RunProgress
from hilt.store import RunState
from hilt.trial import Outcome
from hilt.tui import formatting
from hilt.tui.event_lines import line_of
from hilt.tui.run_view import Link, RunView
from hilt.tui.watched_run import WatchedRun
from hilt.tui.widgets.line_view import Line, LineView
from hilt.tui.widgets.text_panel import TextPanel

_BAR_CELLS = 16
_QUIET_SECONDS = 20.0
"""Seconds without a word from the engine, as in a long trial, after which the time left is not known any more."""
_MOST_LINES = 1000


class ProgressPanel(TextPanel):
    """Six short lines; latency is the median over the repeats of a trial whose whole output was right."""

    BORDER_TITLE = "progress"

    def show(self, view: RunView) -> None:
        run, progress = view.run, view.progress
        most = min(run.budget, run.space_size)
        lines = [
            Content(_trials(view, most)),
            Content(_pace(view, most)),
            Content(f"tuner {run.tuner}, seed {run.seed}; {progress.valid} valid ({_valid_share(progress)})"),
        ]
        self.put(Content("\n").join([*lines, *_best(view)]))


def _trials(view: RunView, most: int) -> str:
    """Return the trials done and the share of the budget; of a layer the campaign decides how many it gets."""
    trials = view.progress.trials
    if view.run.campaign and view.state is not RunState.FINISHED:
        return f"{trials} trial{'' if trials == 1 else 's'} of its campaign"
    done = min(1.0, trials / most) if most else 1.0
    bar = "█" * round(done * _BAR_CELLS) + "░" * (_BAR_CELLS - round(done * _BAR_CELLS))
    return f"{trials} of {most} trials {bar} {done:.0%}"


def _pace(view: RunView, most: int) -> str:
    progress = view.progress
    if view.state is RunState.FINISHED and progress.trials < most:
        return "the tuner asked for no more"
    if view.link is not Link.ATTACHED or view.over:
        return "not running now"
    if view.state is RunState.PAUSED:
        return "paused"
    quiet = time.monotonic() - view.last_event_at
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
    cycles = f", {progress.best_cycles:,} cycles" if progress.best_cycles is not None else ""  # a board may not count
    lines = [
        Content.assemble("best ", (latency, "bold"), f"{cycles} (trial {progress.best_number})"),
        Content(f"{progress.best_gops or 0:.1f} GOP/s, {progress.best_percent_of_bound or 0:.1f}% of the bound"),
    ]
    if view.best is not None:
        lines.append(Content(formatting.knobs(view.best.knobs)))
    return lines


class OutcomesPanel(TextPanel):
    """`ok 12 (40%)   rejected 18 (60%)`: those that occurred, in the order of the outcomes' definition."""

    BORDER_TITLE = "outcomes"

    def show(self, view: RunView) -> None:
        counts = view.progress.counts
        total = sum(counts.values())
        parts = [
            # Spaces within a count do not break over lines.
            f"{outcome} {counts[outcome]} ({formatting.share(counts[outcome], total)})".replace(
                " ", "\N{NO-BREAK SPACE}"
            )
            for outcome in Outcome
            if counts.get(outcome)
        ]
        self.put(Content("  ".join(parts) or "no trials yet"))


class TunerPanel(TextPanel):
    """Its confidence, the share of valid trials lately, the last better one, how well the twin orders the trials."""

    BORDER_TITLE = "tuner and model"
    agreement: float | None = None
    """Share of pairs of the latest valid trials that the twin orders as the board; None if it is not known."""

    def show(self, view: RunView, watch: WatchedRun) -> None:
        lines = [_confidence(view, watch), _lately(view)]
        if self.agreement is not None:
            lines.append(f"twin orders {100 * self.agreement:.0f}% of pairs of trials as the board does")
        self.put(Content("\n".join(lines)))


def _confidence(view: RunView, watch: WatchedRun) -> str:
    tuner = watch.tuner
    if tuner is None or tuner.confidence is None:
        return f"{view.run.tuner}: no confidence yet"
    return f"{100 * tuner.confidence:.1f}% sure that nothing is 1% better, after {tuner.trials} trials"


def _lately(view: RunView) -> str:
    if not view.recent:
        return "no trials yet"
    share = formatting.share(sum(view.recent), len(view.recent))
    lately = f"{share} of the last {len(view.recent)} valid"
    if not view.curve:
        return lately
    # Of trials that are answered out of their order, one may have a number above those that are recorded.
    return f"{lately}; last better one {max(view.progress.trials - 1 - view.curve[-1][0], 0)} trials ago"


class BoardPanel(TextPanel):
    """A line a board: name, state, since when, and why."""

    BORDER_TITLE = "board"

    def show(self, view: RunView) -> None:
        if not view.boards:
            self.put(Content(f"{view.run.board}: {view.text_without_events}"))
            return
        past = "" if view.link is Link.ATTACHED else "last known: "
        lines = [
            Content.assemble(
                f"{board.board}: {past}", (board.state, "bold"), f" since {formatting.clock(board.at)} {board.detail}"
            )
            for board in view.boards.values()
        ]
        self.put(Content("\n").join(lines))


class LogPanel(LineView):
    """Bounded; the newest is followed while the cursor is there. The log screen has all of it."""

    BORDER_TITLE = "log"

    def __init__(self) -> None:
        super().__init__(follow=True)
        self._latest: deque[Line] = deque(maxlen=_MOST_LINES)

    def add(self, events: Sequence[Event]) -> None:
        self._latest.extend(line for event in events if (line := line_of(event)) is not None)
        self.set_lines(self._latest)
