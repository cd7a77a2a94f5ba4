"""The end of a run in plain words: comparisons, failures, the best, its certainty, the next steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hilt.cli.summary import summary_text
from hilt.store import Purpose, Remeasurement, RunState, Store, Trial, database_path
from hilt.trial import Outcome, Verification
from tests.unit.store.examples import ELEMENTS, run, trial

UUID = "ab12cd34" + "0" * 24
FAILED = Trial(3, 3, {}, Outcome.TIMEOUT, "no FINISH", board="virtual:pynq")


def lines(
    home: Path,
    trials: Sequence[Trial],
    state: RunState = RunState.FINISHED,
    detail: str = "",
    again: Sequence[Remeasurement] = (),
    running: bool = False,
    **changes: Any,
) -> list[str]:
    with Store(database_path(home)) as store:
        store.create_run(run(UUID, **changes))
        store.record(UUID, trials)
        for row in again:
            store.record_remeasurement(UUID, row)
        store.set_state(UUID, state, detail)
        return summary_text(store, store.run(UUID), running=running).splitlines()


def test_a_finished_run_says_what_was_compared_and_what_is_best(tmp_path: Path) -> None:
    assert lines(tmp_path, [trial(0, 7, 9000.0), trial(1, 9, 4515.8), FAILED], budget=3) == [
        "",
        "resnet18.C5 on virtual:pynq: 3 of 3 trials, 2 valid",
        "every valid trial's output was compared in full with the reference (100,352 elements each) and is right",
        "  1 timeout: no FINISH 1",
        "best: configuration 9: tile_h=2 tile_w=7",
        "  451,580 cycles = 4,515.8 µs at 100 MHz, 51.2 GOP/s, 100.0% of the roofline bound (451,584 cycles)",
        "run ab12cd34, finished: `hilt show ab12cd34` shows it",
    ]


def test_a_tuner_may_end_before_its_budget_and_say_why(tmp_path: Path) -> None:
    found = lines(tmp_path, [trial(0, 7, 9000.0)], detail="the best is within 1 %", budget=64)
    assert found[1].endswith("1 of 64 trials, 1 valid; the tuner asked for no more")
    assert found[-2] == "the tuner's assessment: the best is within 1 %"


@pytest.mark.parametrize(
    ("state", "running", "word"),
    [
        (RunState.STOPPED, False, "stopped"),
        (RunState.RUNNING, True, "running"),
        (RunState.RUNNING, False, "interrupted"),
    ],
)
def test_a_run_that_has_not_finished_can_go_on(tmp_path: Path, state: RunState, running: bool, word: str) -> None:
    found = lines(tmp_path, [trial(0, 7, 9000.0)], state, "Ctrl-C", running=running)
    assert found[-1] == f"run ab12cd34, {word}: `hilt show ab12cd34` shows it; `hilt resume ab12cd34` goes on"
    assert not any("asked for no more" in line or "assessment" in line for line in found)


def test_a_run_without_a_right_trial_has_no_best(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    assert "no trial was made" in lines(tmp_path / "none", [])
    found = lines(tmp_path, [FAILED])
    assert "no verified configuration was found; more trials or another seed may find one" in found
    assert not any("compared in full" in line for line in found)


def test_a_trial_that_was_compared_in_part_does_not_count(tmp_path: Path) -> None:
    part = replace(trial(1, 9, 10.0), verification=Verification(ELEMENTS - 1, 0))
    found = lines(tmp_path, [trial(0, 7, 9000.0), part])
    assert "2 of 64 trials, 1 valid" in found[1]
    assert "  1 ran but were not compared in full, so they do not count" in found
    assert any(line.startswith("best: configuration 7:") for line in found)


def measured(purpose: Purpose, ordinal: int, *latencies: float) -> list[Remeasurement]:
    return [Remeasurement(purpose, place, ordinal, each, "b") for place, each in enumerate(latencies)]


def test_a_winner_that_was_measured_again_says_how_sure_it_is(tmp_path: Path) -> None:
    again = measured(Purpose.CONFIRMATION, 0, 98.0, 100.0, 102.0) + measured(Purpose.CONFIRMATION, 1, 200.0, 200.0)
    found = lines(tmp_path, [trial(0, 7, 90.0), trial(1, 9, 95.0)], again=again)
    first = found.index("best: configuration 7: tile_h=2 tile_w=7")
    assert "100.0 µs" in found[first + 1], "the median"
    assert found[first + 2].startswith(
        "  the median, measured again 3 times in turn with 1 others (± 2.0%): 100.0% sure"
    )


@pytest.mark.parametrize(("last", "said"), [(101.9, False), (102.5, True), (97.5, True)])
def test_a_drift_of_more_than_two_hundredths_is_said(tmp_path: Path, last: float, said: bool) -> None:
    found = lines(tmp_path, [trial(0, 7, 90.0)], again=measured(Purpose.DRIFT, 0, 100.0, last))
    drifted = "  the board drifted by up to 2.5% during this run: differences below that say nothing"
    assert [line for line in found if "drifted" in line] == ([drifted] if said else [])


def test_a_dataset_verifies_nothing_and_has_a_fastest_record(tmp_path: Path) -> None:
    answers = [
        replace(trial(place, place, latency), verification=None, cycles=cycles)
        for place, (latency, cycles) in enumerate([(9000.0, 900_000), (4515.8, None)])
    ]
    found = lines(tmp_path, [*answers, replace(FAILED, board="dataset:some")], board="dataset:some", budget=3)
    assert found[1:] == [
        "resnet18.C5 on dataset:some: 3 of 3 trials, 2 valid on record",
        "  1 timeout: no FINISH 1",
        "a dataset answers from records: nothing of this run was verified",
        "fastest on record: configuration 1: tile_h=2 tile_w=7",
        "  4,515.8 µs, 51.2 GOP/s, 100.0% of the roofline bound (451,584 cycles)",
        "run ab12cd34, finished: `hilt show ab12cd34` shows it",
    ]


def test_a_dataset_without_a_right_answer_has_no_fastest_record(tmp_path: Path) -> None:
    found = lines(tmp_path, [replace(FAILED, board="dataset:some")], board="dataset:some")
    assert not any("fastest" in line for line in found)
