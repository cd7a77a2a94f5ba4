"""The loop: the times that the time left is computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from hilt.engine.events import EngineCommand, Event, StateChanged
from hilt.engine.run_control import Control
from hilt.engine.run_statistics import RunStatistics
from hilt.measure import Report, Request
from hilt.store import RunState
from hilt.trial import Outcome
from hilt.tune import Feedback

from .loop_bench import (
    AssessingTuner,
    Bench,
    PlainTask,
    by_configuration,
)
from .table import TableMeasurer


class NotedStatistics(RunStatistics):
    """Statistics that note the loop's calls."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.notes: list[tuple[Any, ...]] = []
        self.groups = 0
        NotedStatistics.last = self

    last: NotedStatistics

    def lowered(self, asked: int, lengths: Mapping[int, float]) -> None:
        self.notes.append(("lowered", asked, dict(lengths)))
        super().lowered(asked, lengths)

    def measuring(self) -> None:
        self.groups += 1
        super().measuring()

    def told(self, trials: int, seconds: float) -> None:
        self.notes.append(("told", trials, seconds))
        super().told(trials, seconds)

    def confident(self, trials: int, confidence: float | None) -> None:
        self.notes.append(("confident", trials, confidence))
        super().confident(trials, confidence)

    def pause_ended(self) -> None:
        self.notes.append(("pause ended",))
        super().pause_ended()


def test_the_time_left_is_told_of_lengths_groups_and_the_tuners_seconds(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer takes the tuner 4 s and a lesson 1 s. Nobody waits for the first answer alone, which is not counted."""
    clock = [0.0]
    monkeypatch.setattr("hilt.engine.loop.monotonic", lambda: clock[0])
    monkeypatch.setattr("hilt.engine.loop.RunStatistics", NotedStatistics)

    class Thinking(AssessingTuner):
        def ask(self, count: int) -> list[int]:
            clock[0] += 4.0
            return super().ask(count)

        def tell(self, feedback: Sequence[Feedback]) -> None:
            clock[0] += 1.0
            super().tell(feedback)

    class Long(PlainTask):
        def lengths(self, indices: Sequence[int]) -> Sequence[float]:
            return [1000.0 + index for index in indices]

    measured: list[int] = []

    class Counting(TableMeasurer):
        def measure(self, requests: Sequence[Request], report: Report) -> None:
            measured.append(len(requests))
            super().measure(requests, report)

    assert bench.session(Counting(by_configuration), tuner=Thinking(), task=Long())
    notes = NotedStatistics.last.notes
    told = [4, 8, 12, 16, 20, 23]
    assert [note[1:] for note in notes if note[0] == "told"] == [(trials, 5.0) for trials in told[:-1]] + [(23, 1.0)]
    assert [note[1:] for note in notes if note[0] == "confident"] == [(trials, 0.25) for trials in told]
    lowered = [note[1:] for note in notes if note[0] == "lowered" and note[2]]
    assert [asked for asked, _ in lowered] == told
    assert {ordinal: length for _, lengths in lowered for ordinal, length in lengths.items()} == {
        each.ordinal: 1000.0 + each.index for each in bench.trials if each.outcome is not Outcome.REJECTED
    }
    assert NotedStatistics.last.groups == len(measured)


def test_a_pause_is_no_part_of_the_pace(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hilt.engine.loop.RunStatistics", NotedStatistics)
    control = Control()
    control.obey(EngineCommand.PAUSE)

    def resume(event: Event) -> None:
        if isinstance(event, StateChanged) and event.state is RunState.PAUSED:
            control.obey(EngineCommand.RESUME)

    assert bench.session(control=control, publish=resume)
    assert [note for note in NotedStatistics.last.notes if note[0] == "pause ended"] == [("pause ended",)]
