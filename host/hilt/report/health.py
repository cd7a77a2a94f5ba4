"""The health of the boards of a run or campaign: trials, faults, time by step, events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from statistics import median

from hilt.engine.events import BoardChanged, Event, Logged
from hilt.report.facts import FAULTS, Facts
from hilt.store import Trial

MOST_EVENTS = 60
_QUIET = ("connecting", "loaded", "ready", "running", "released")
"""States on the way to measuring, which say nothing of a board's health."""


def board_rows(facts: Facts) -> list[dict[str, object]]:
    """Return a row for each board.

    A row has the trials it answered, those it was asked again for, timeouts, crashes and bus errors, recoveries,
    and the
    highest temperature it reported (it reports one when its bitstream is programmed).
    """
    measured = [trial for trial in _trials(facts) if trial.board]
    changes = [event for event in facts.events if isinstance(event, BoardChanged)]
    recoveries = Counter(event.board for event in changes if event.state == "recovering")
    lost = Counter(event.board for event in changes if event.state == "lost")
    hottest = _hottest(changes)
    names = sorted({trial.board for trial in measured} | set(recoveries) | set(lost))
    return [
        {
            "board": name,
            **_counts([trial for trial in measured if trial.board == name]),
            "recoveries": recoveries[name],
            "lost": lost[name],
            "hottest": hottest.get(name),
        }
        for name in names
    ]


def _counts(trials: Sequence[Trial]) -> dict[str, object]:
    return {
        "trials": len(trials),
        "again": sum(trial.attempt > 0 for trial in trials),
        "faults": sum(trial.outcome in FAULTS for trial in trials),
    }


def _hottest(changes: Sequence[BoardChanged]) -> dict[str, float]:
    hottest: dict[str, float] = {}
    for event in changes:
        if event.celsius is not None:
            hottest[event.board] = max(event.celsius, hottest.get(event.board, event.celsius))
    return hottest


def step_rows(facts: Facts) -> list[tuple[str, int, float, float]]:
    """Return (step, trials, median seconds, seconds in all) of wall clock, longest first.

    `answer` holds all that a board does for a trial, so the steps overlap.
    """
    spent: dict[str, list[float]] = {}
    for trial in _trials(facts):
        for step, seconds in trial.seconds.items():
            spent.setdefault(step, []).append(seconds)
    rows = [(step, len(seconds), median(seconds), sum(seconds)) for step, seconds in spent.items()]
    return sorted(rows, key=lambda row: -row[3])


def usage_rows(facts: Facts) -> list[tuple[str, str]]:
    """Return (board, how it was used), for each time that it was released."""
    return [
        (event.board, event.detail)
        for event in facts.events
        if isinstance(event, BoardChanged) and event.state == "released" and event.detail
    ]


def event_rows(facts: Facts) -> list[tuple[str, str, str]]:
    """Return the last changes of a board's health and warnings.

    Each row is (time, board or level, text), at most MOST_EVENTS, oldest first.
    """
    rows = [row for event in facts.events for row in _row_of_event(event)]
    return rows[-MOST_EVENTS:]


def _row_of_event(event: Event) -> Iterator[tuple[str, str, str]]:
    if isinstance(event, BoardChanged) and event.state not in _QUIET:
        yield _clock(event.at), event.board, f"{event.state}: {event.detail}" if event.detail else event.state
    elif isinstance(event, Logged) and event.level != "info":
        yield _clock(event.at), event.level, event.text


def _trials(facts: Facts) -> Iterator[Trial]:
    return (trial for run in facts.runs for trial in run.trials)


def _clock(since_epoch: float) -> str:
    return datetime.fromtimestamp(since_epoch).astimezone().strftime("%Y-%m-%d %H:%M:%S")
