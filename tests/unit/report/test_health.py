"""The health of boards: each that answered or was lost has a row, steps go by length, quiet states say nothing."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

from hilt.engine.events import BoardChanged, Logged
from hilt.report.health import MOST_EVENTS, board_rows, event_rows, step_rows, usage_rows
from hilt.trial import Outcome


def trial(board: str, outcome: Outcome = Outcome.OK, attempt: int = 0, **seconds: float) -> Any:
    return SimpleNamespace(board=board, outcome=outcome, attempt=attempt, seconds=seconds)


def changed(board: str, state: str, detail: str = "", celsius: float | None = None) -> BoardChanged:
    return BoardChanged(board, state, detail, 0.0, celsius)


EVENTS = (
    *(changed("desk", "loaded", celsius=41.5), changed("desk", "loaded", celsius=39.0)),
    *(changed("desk", "recovering", "soft reset"), changed("desk", "recovering"), changed("lost", "lost", "no power")),
    *(changed("shaky", "recovering", "reload"), changed("quiet", "ready"), changed("desk", "released", "90 % busy")),
    *(changed("desk", "released"), Logged("info", "hello", 0.0), Logged("warning", "slow", 0.0)),
)
FACTS: Any = SimpleNamespace(
    events=EVENTS,
    runs=(
        SimpleNamespace(trials=[trial("desk", run=0.5, load=3.0), trial("desk", Outcome.TIMEOUT, 1, run=1.5)]),
        SimpleNamespace(trials=[trial("lab", Outcome.WRONG_ANSWER, run=4.0), trial("", Outcome.REJECTED)]),
    ),
)


def test_each_board_that_answered_or_was_unwell_has_a_row() -> None:
    rows = {row["board"]: row for row in board_rows(FACTS)}
    assert list(rows) == ["desk", "lab", "lost", "shaky"]
    assert rows["desk"] == {
        **{"board": "desk", "trials": 2, "again": 1, "faults": 1, "recoveries": 2, "lost": 0, "hottest": 41.5}
    }
    assert (rows["lab"]["trials"], rows["lab"]["faults"], rows["lab"]["hottest"]) == (1, 0, None)
    assert (rows["lost"]["lost"], rows["lost"]["trials"], rows["shaky"]["recoveries"]) == (1, 0, 1)


def test_steps_are_the_longest_first() -> None:
    assert step_rows(FACTS) == [("run", 3, 1.5, 6.0), ("load", 1, 3.0, 3.0)]


def test_a_use_is_told_where_it_says_something() -> None:
    assert usage_rows(FACTS) == [("desk", "90 % busy")]


def test_events_are_what_a_person_should_see() -> None:
    rows = event_rows(FACTS)
    assert [row[1:] for row in rows] == [
        *(("desk", "recovering: soft reset"), ("desk", "recovering"), ("lost", "lost: no power")),
        *(("shaky", "recovering: reload"), ("warning", "slow")),
    ]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", row[0]) for row in rows)
    many: Any = SimpleNamespace(events=[Logged("error", str(number), 0.0) for number in range(MOST_EVENTS + 3)])
    assert [row[2] for row in event_rows(many)] == [str(number) for number in range(3, MOST_EVENTS + 3)]
