"""Boards whose latencies move: the drift is reported and stored, and the winner wins when all take turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer

from hilt.cli.formatting import run_json
from hilt.cli.run_options import repeats
from hilt.cli.summary import summary_text
from hilt.engine import remeasure
from hilt.engine.errors import BoardLostError
from hilt.engine.events import EngineCommand, Logged
from hilt.engine.run_control import Control
from hilt.measure import Request
from hilt.store import ROUNDS, Purpose, largest_drift
from hilt.store.remeasurements import FEWEST_ROUNDS, MOST_ROUNDS, Confirmed, certainty, with_noise
from hilt.trial import Outcome, Result, Verification
from hilt.tune import Feedback

from .loop_bench import BUDGET, UUID, Bench
from .table import ELEMENTS, TableMeasurer, description


class InOrder:
    """Asks for 0, 1, 2, ... whatever it hears."""

    def __init__(self) -> None:
        self._next = 0

    def ask(self, count: int) -> list[int]:
        self._next += count
        return list(range(self._next - count, self._next))

    def tell(self, feedback: Sequence[Feedback]) -> None:
        pass


SHAKY = replace(description(), deterministic=False)
LUCKY = 7
"""A configuration that was fast once, and never again."""


def latency(request: Request) -> Result:
    """Configuration n takes 1000 + n µs; the lucky one 1 µs at first."""
    index = int(request.program.uops[0, 0])
    again = int(request.key.rpartition("/")[2]) >= 1000
    microseconds = 1.0 if index == LUCKY and not again else 1000.0 + index
    return Result(Outcome.OK, "", None, microseconds, (microseconds,), Verification(ELEMENTS, 0), "table:plain")


@pytest.fixture
def bench(tmp_path: Path):
    made = Bench(tmp_path / "hilt.db")
    yield made
    made.store.close()


def measurer(answer: Callable[[Request], Result], **more: object) -> TableMeasurer:
    return TableMeasurer(answer, described=SHAKY, **more)  # type: ignore[arg-type]


def test_the_winner_is_named_after_all_have_taken_turns(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remeasure, "FINALISTS", 3)
    board = measurer(latency)
    assert bench.session(board, tuner=InOrder())
    tried = sorted(trial.index for trial in bench.trials if trial.verified)
    ordinal = {trial.index: trial.ordinal for trial in bench.trials}
    best = bench.store.best(UUID)
    assert best is not None and best.index == min(set(tried) - {LUCKY})
    turns = [key.split("/")[1:] for key in board.keys if int(key.rpartition("/")[2]) >= 9000]
    order = [ordinal[each] for each in (LUCKY, *sorted(set(tried) - {LUCKY})[:2])]
    expected = [(each, 9000 + turn) for turn in range(ROUNDS) for each in order]
    assert [(int(n), int(attempt)) for n, attempt in turns] == expected
    confirmed = bench.store.confirmations(UUID)
    assert confirmed[ordinal[LUCKY]].microseconds == 1000.0 + LUCKY
    assert best.microseconds == confirmed[best.ordinal].microseconds and len(best.repeats) == ROUNDS
    reported = {trial.index: trial for trial in bench.store.reported(UUID)}
    assert reported[LUCKY].microseconds == 1000.0 + LUCKY
    fastest = min((trial for trial in reported.values() if trial.verified), key=lambda each: each.microseconds or 0)
    assert fastest.index == best.index
    assert any("measured again in turn" in event.text for event in bench.events if isinstance(event, Logged))
    assert len(bench.trials) == BUDGET


def test_a_stop_while_confirming_is_gone_on_with(bench: Bench) -> None:
    control = Control()

    def stop_at(request: Request) -> None:
        if request.key.endswith("/9002"):
            control.obey(EngineCommand.STOP)

    first = measurer(latency, before=stop_at)
    assert not bench.session(first, control=control, tuner=InOrder())
    second = measurer(latency)
    assert bench.session(second, tuner=InOrder())
    assert not set(first.keys) & set(second.keys), "something was measured twice"
    rounds = [row.round for row in bench.store.remeasurements(UUID) if row.purpose is Purpose.CONFIRMATION]
    assert sorted(set(rounds)) == list(range(ROUNDS)) and len(rounds) == 5 * ROUNDS


class Noise:
    """Latencies with a normal error that depends on the trial and the attempt alone; neighbours are 0.2 % apart."""

    def __init__(self, deviation: float) -> None:
        self._deviation = deviation

    def __call__(self, request: Request) -> Result:
        result = latency(request)
        index = int(request.program.uops[0, 0])
        ordinal, attempt = map(int, request.key.split("/")[1:])
        drawn = np.random.default_rng([ordinal, attempt]).standard_normal()
        microseconds = (1000.0 + 2.0 * index) * (1.0 + self._deviation * float(drawn))
        return replace(result, microseconds=microseconds, repeats=(microseconds,))


def rounds_of(bench: Bench) -> int:
    rows = [row for row in bench.store.remeasurements(UUID) if row.purpose is Purpose.CONFIRMATION]
    assert len(rows) % remeasure.FINALISTS == 0, "each round is whole"
    return len(rows) // remeasure.FINALISTS


@pytest.fixture
def by_noise(tmp_path: Path):
    """A bench whose run has `--repeat auto`."""
    made = Bench(tmp_path / "by_noise.db", rounds=None)
    yield made
    made.store.close()


@pytest.mark.parametrize(("deviation", "fewest", "most"), [(0.001, 3, 3), (0.02, 10, 31), (0.2, 32, 32)])
def test_the_noise_chooses_the_rounds(by_noise: Bench, deviation: float, fewest: int, most: int) -> None:
    assert by_noise.session(measurer(Noise(deviation)), tuner=InOrder())
    assert FEWEST_ROUNDS <= fewest <= rounds_of(by_noise) <= most <= MOST_ROUNDS
    sure = certainty(by_noise.store.confirmations(UUID))
    assert (sure >= 0.99) == (rounds_of(by_noise) < MOST_ROUNDS)


def test_rounds_by_noise_resume_alike(by_noise: Bench, tmp_path: Path) -> None:
    control = Control()

    def stop_at(request: Request) -> None:
        if request.key.endswith("/9003"):
            control.obey(EngineCommand.STOP)

    assert not by_noise.session(measurer(Noise(0.02), before=stop_at), control=control, tuner=InOrder())
    assert by_noise.session(measurer(Noise(0.02)), tuner=InOrder())
    whole = Bench(tmp_path / "whole.db", rounds=None)
    assert whole.session(measurer(Noise(0.02)), tuner=InOrder())
    assert by_noise.store.confirmations(UUID) == whole.store.confirmations(UUID)
    whole.store.close()


def test_the_certainty_of_a_winner_is_that_of_simulated_boards() -> None:
    """Over many boards of equal trials, the mean certainty is about the share of winners within 1 % of the best."""
    generator = np.random.default_rng(7)
    latencies, noise, times = np.array([100.0, 100.7, 101.5, 104.0]), 0.02, 9
    stated, right = [], []
    for _ in range(400):
        drawn = latencies * (1 + noise * generator.standard_normal((times, 4)))
        seen = {place: Confirmed(tuple(column)) for place, column in enumerate(drawn.T.tolist())}
        stated.append(certainty(seen))
        right.append(latencies[min(seen, key=lambda place: seen[place].microseconds)] <= 1.01 * latencies.min())
    assert np.mean(right) - 0.25 < np.mean(stated) <= np.mean(right)


def test_the_confidence_has_the_noise_of_the_confirmation() -> None:
    shaky = {0: Confirmed((100.0, 102.0, 98.0)), 1: Confirmed((101.0, 99.0, 103.0))}
    assert 0.5 < certainty(shaky) < 0.9
    assert with_noise(0.9, shaky) == 0.9 * certainty(shaky)
    assert with_noise(None, shaky) is None and with_noise(0.9, {}) == 0.9
    assert certainty({0: shaky[0]}) == certainty({0: Confirmed((5.0,) * 3), 1: Confirmed((5.0,) * 3)}) == 1.0


class Sure(InOrder):
    """States a confidence."""

    def confidence(self) -> float:
        return 0.75


def test_json_has_the_confidence_and_how_often_the_best_was_confirmed(by_noise: Bench) -> None:
    assert by_noise.session(measurer(Noise(0.02)), tuner=Sure())
    values = run_json(by_noise.store, by_noise.store.run(UUID), running=False)
    confirmed = by_noise.store.confirmations(UUID)
    assert by_noise.store.run(UUID).confidence == 0.75
    assert values["confidence"] == 0.75 * certainty(confirmed) < 0.75
    own = confirmed[values["best"]["ordinal"]]
    best = values["best"]
    assert (best["microseconds"], best["confirmed"]) == (own.microseconds, rounds_of(by_noise))
    assert best["spread"] == own.spread > 0


@pytest.mark.parametrize(("text", "expected"), [("7", (7, ROUNDS)), ("auto", (1, None))])
def test_repeat_is_a_number_or_auto(text: str, expected: tuple[int, int | None]) -> None:
    assert repeats(text) == expected
    with pytest.raises(typer.BadParameter, match="a number or auto"):
        repeats(f"{text}s")


def test_a_board_that_is_lost_while_confirming_ends_the_session_and_not_the_run(bench: Bench) -> None:
    """No winner is named among the trials that the board happened to answer before its loss."""

    def lost(request: Request) -> Result:
        gone = request.key.endswith("/9001")
        return Result(Outcome.BOARD_LOST, "no route to it") if gone else latency(request)

    first = measurer(lost)
    with pytest.raises(BoardLostError, match=r"lost 3 times while the best .*no route to it.*hilt resume"):
        bench.session(first, tuner=InOrder())
    assert sum(key.endswith("/9001") for key in first.keys) == 3
    assert bench.session(measurer(latency), tuner=InOrder())
    rows = [row for row in bench.store.remeasurements(UUID) if row.purpose is Purpose.CONFIRMATION]
    assert len(rows) == remeasure.FINALISTS * ROUNDS


def test_a_board_that_gets_slower_is_told_once_and_stored(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remeasure, "REFERENCE_EVERY", 4)

    def slower(request: Request) -> Result:
        result = latency(request)
        turn = int(request.key.rpartition("/")[2]) - 1000
        scale = 1.0 + 0.01 * turn if 0 <= turn < 8000 else 1.0
        return replace(result, microseconds=(result.microseconds or 0) * scale)

    assert bench.session(measurer(slower), tuner=InOrder())
    warnings = [event.text for event in bench.events if isinstance(event, Logged) and "drifts" in event.text]
    assert len(warnings) == 1 and "3.0 % off" in warnings[0]
    rows = [row for row in bench.store.remeasurements(UUID) if row.purpose is Purpose.DRIFT]
    assert len({row.ordinal for row in rows}) == 1 and len(rows) >= 5
    first, last = min(row.round for row in rows), max(row.round for row in rows)
    assert largest_drift(rows) == pytest.approx((1 + 0.01 * last) / (1 + 0.01 * first) - 1)


def test_a_deterministic_board_is_asked_nothing_again(bench: Bench) -> None:
    board = TableMeasurer(latency)
    assert bench.session(board, tuner=InOrder())
    assert bench.store.remeasurements(UUID) == []
    assert all(int(key.rpartition("/")[2]) < 1000 for key in board.keys)
    best = bench.store.best(UUID)
    assert best is not None and best.index == LUCKY


def test_the_summary_names_trials_measured_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remeasure, "REFERENCE_EVERY", 4)
    turns = iter(range(10_000))

    def moving(request: Request) -> Result:
        result = latency(request)
        return replace(result, microseconds=(result.microseconds or 0) * (1.0 + 0.004 * (next(turns) % 11)))

    assert bench.session(measurer(moving), tuner=InOrder())
    text = summary_text(bench.store, bench.run)
    assert "measured again 5 times in turn with 4 others" in text
    assert "the board drifted by up to" in text


def test_one_board_of_several_confirms(bench: Bench) -> None:
    """One board of several confirms the result.

    Trials take turns on two boards with one slower than the other; the final comparison is on one board.
    """
    boards: list[str | None] = []

    def two(request: Request) -> Result:
        result = latency(request)
        if int(request.key.rpartition("/")[2]) < 9000:
            return replace(result, board="ab"[request.ordinal % 2])
        boards.append(request.board)
        board = request.board or "b"
        assert result.microseconds is not None
        return replace(result, board=board, microseconds=result.microseconds + 50 * (board == "b"))

    fleet = TableMeasurer(two, described=replace(SHAKY, name="a,b"))
    assert bench.session(fleet, tuner=InOrder())
    rows = [row for row in bench.store.remeasurements(UUID) if row.purpose is Purpose.CONFIRMATION]
    assert {row.board for row in rows} == {"b"}
    assert boards == [None, *["b"] * (len(rows) - 1)]
