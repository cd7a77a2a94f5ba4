"""Figures and lines of a log as the terminal UI writes them."""

from __future__ import annotations

import time

import pytest

from hilt.engine.events import BoardChanged, Event, FailureCause, Finished, Logged, RunProgress, StateChanged
from hilt.store import RunState
from hilt.tui import formatting
from hilt.tui.event_lines import line_of, one_line

AT = time.mktime((2026, 3, 4, 5, 6, 7, 0, 0, -1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (formatting.microseconds(4515.84), "4,515.8 µs"),
        (formatting.microseconds(0.0), "0.0 µs"),
        (formatting.microseconds(None), "–"),
        (formatting.duration(75.0), "1 min 15 s"),
        (formatting.duration(None), "–"),
        (formatting.share(1, 8), "12%"),
        (formatting.share(0, 8), "0%"),
        (formatting.share(0, 0), "–"),
        (formatting.clock(AT), "05:06:07"),
        (formatting.knobs({"tile_h": 7, "oc_nthread": 2}), "h=7 oc_nthread=2"),
        (formatting.bar(0.5, 4), "██░░"),
        (formatting.bar(0.0, 4), "░░░░"),
        (formatting.bar(0.01, 4), "█░░░"),
        (formatting.bar(1.0, 4), "████"),
        (formatting.bar(1.7, 4), "████"),
        (formatting.bar(0.99, 4), "████"),
        (one_line(" a\n  b\t c "), "a b c"),
    ],
)
def test_a_figure_is_written_in_one_way(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.parametrize(
    ("event", "text", "kind"),
    [
        (Logged("info", "hello\nthere", AT), "05:06:07 hello there", ""),
        (Logged("warning", "slow", AT), "05:06:07 WARNING: slow", "warning"),
        (Logged("error", "gone", AT), "05:06:07 ERROR: gone", "error"),
        (BoardChanged("desk", "ready", "", AT), "05:06:07 desk: ready", "muted"),
        (BoardChanged("desk", "recovering", "soft reset", AT), "05:06:07 desk: recovering soft reset", "warning"),
        (BoardChanged("desk", "lost", "no power", AT), "05:06:07 desk: lost no power", "error"),
        (BoardChanged("desk", "quarantined", "", AT), "05:06:07 desk: quarantined", "error"),
        (StateChanged(RunState.RUNNING, "", AT), "05:06:07 run running", "heading"),
        (StateChanged(RunState.PAUSED, "idle", 0.0), "         run paused: idle", "heading"),
        (Finished(RunState.FINISHED, "", None, AT), "05:06:07 run finished", "heading"),
        (Finished(RunState.FAILED, "cable", FailureCause.BOARD, AT), "05:06:07 run failed: cable", "error"),
    ],
)
def test_an_event_is_a_line_with_its_kind(event: Event, text: str, kind: str) -> None:
    assert line_of(event) == (text, kind)


def test_a_log_of_days_has_dates_and_progress_is_no_line() -> None:
    assert line_of(Logged("info", "hello", AT), date=True) == ("03-04 05:06:07 hello", "")
    assert line_of(StateChanged(RunState.PAUSED, "", 0.0), date=True) == (" " * 14 + " run paused", "heading")
    assert line_of(RunProgress(0, 1, {}, 0, 0.0)) is None
