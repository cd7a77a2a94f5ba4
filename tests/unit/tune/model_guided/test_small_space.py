"""The tuner on a space of sixty configurations that compile, with the twin as its only machine: whole runs, quickly."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from hilt.schedule import load_workload
from hilt.simulator.device import MemoryModel
from hilt.trial import Outcome
from hilt.tune import Feedback, Stop, TuningProblem
from hilt.tune.model_guided.analytic_model import bytes_moved
from hilt.tune.model_guided.candidates import candidates_of
from hilt.tune.model_guided.tuner import HiltOptions, HiltTuner
from hilt.virtual.board_model import board_model

PYNQ = board_model("pynq").accelerator
PROBLEM = TuningProblem.of(load_workload("conv2d:n=1,ci=16,h=4,w=6,co=32,k=3x3,p=1x1"), PYNQ, orders=1)
COMPILES = np.flatnonzero(PROBLEM.compiles)
SLOW_MEMORY = MemoryModel(read_latency=90, write_latency=45)
CLOCK = 1.25
"""How much faster the board's clock is than it says."""
LATENCIES = dict(
    zip(
        COMPILES.tolist(),
        (PROBLEM.predicted_cycles(COMPILES, [SLOW_MEMORY])[:, 0] / (100 * CLOCK)).tolist(),
        strict=True,
    )
)
BEST = min(LATENCIES.values())
Board = Callable[[int], Feedback]


def right(index: int) -> Feedback:
    return Feedback(index, Outcome.OK, LATENCIES[index])


def tuner_of(seed: int = 0, **options: float | str) -> HiltTuner:
    return HiltTuner(PROBLEM, seed, HiltOptions(**{"without": "machines", "draws": 128, **options}))  # type: ignore[arg-type]


def run(tuner: HiltTuner, board: Board, count: int = 8, batches: int = 99) -> list[list[int]]:
    """Return the batches that were asked until nothing more was."""
    asked: list[list[int]] = []
    while len(asked) < batches and (batch := tuner.ask(count)):
        asked.append(batch)
        tuner.tell([board(index) for index in batch])
    return asked


def flat(batches: Sequence[Sequence[int]]) -> list[int]:
    return [index for batch in batches for index in batch]


def test_the_best_is_found_and_the_run_ends_once_it_is_sure() -> None:
    tuner = tuner_of()
    assert tuner.confidence() is None and tuner.assessment().stop is Stop.SEARCHING
    told = flat(run(tuner, right))
    assert 16 <= len(told) <= 24 and len(set(told)) == len(told) and set(told) <= set(COMPILES.tolist())
    assert min(LATENCIES[index] for index in told) == BEST
    found = tuner.assessment()
    assert found.stop is Stop.SURE and found.machine == "RTL"
    assert found.confidence is not None and 0.99 <= found.confidence <= 0.999, "the draws resolve no more"
    assert found.board_over_twin == pytest.approx(1 / CLOCK, rel=0.02)
    assert found.scatter is not None and found.scatter < 0.01


def test_fewer_trials_than_sixteen_make_nothing_sure() -> None:
    tuner = tuner_of()
    asked = run(tuner, right, count=5, batches=3)
    confidence = tuner.confidence()
    assert len(flat(asked)) == 15 and confidence is not None and confidence > 0.9
    assert tuner.assessment().stop is Stop.SEARCHING and tuner.ask(5)


def test_without_a_limit_every_configuration_that_compiles_is_asked_once() -> None:
    tuner = tuner_of(stop_at=2.0)
    told = flat(run(tuner, right, count=16))
    assert sorted(told) == COMPILES.tolist()
    assert tuner.confidence() == 1.0 and tuner.assessment().stop is Stop.EXHAUSTED
    assert tuner.ask(8) == []


@pytest.mark.parametrize("count", [0, -1])
def test_no_trials_are_asked_where_none_are_wanted(count: int) -> None:
    assert tuner_of().ask(count) == []


def test_another_seed_explores_elsewhere() -> None:
    one, other = (flat(run(tuner_of(seed, stop_at=2.0, draws=32), right, 16, batches=3)) for seed in (7, 8))
    assert one != other and one[:16] == other[:16], "before any latency nothing is drawn"


def test_a_board_on_which_all_fails_is_tried_to_the_end() -> None:
    tuner = tuner_of()
    told = flat(run(tuner, lambda index: Feedback(index, Outcome.WRONG_ANSWER)))
    assert sorted(told) == COMPILES.tolist()
    found = tuner.assessment()
    assert (found.confidence, found.stop, found.board_over_twin, found.scatter) == (None, Stop.EXHAUSTED, None, None)


def without_tiles(*widths: int) -> tuple[set[int], Board]:
    """Return the configurations with tiles of these widths, and a board on which they are wrong."""
    column = PROBLEM.columns(COMPILES)["tile_w"]
    bad = set(COMPILES[np.isin(column, widths)].tolist())
    return bad, lambda index: Feedback(index, Outcome.WRONG_ANSWER) if index in bad else right(index)


def test_a_rule_that_breaks_the_favourites_is_learnt_from_one_batch() -> None:
    bad, board = without_tiles(6)
    first, *rest = run(tuner_of(), board)
    assert sum(index in bad for index in first) >= 6 and sum(index in bad for index in flat(rest)) <= 4
    right_ones = LATENCIES.keys() - bad
    assert min(map(LATENCIES.__getitem__, right_ones)) in {LATENCIES[index] for index in first + flat(rest)}


def test_while_all_fail_half_of_the_trials_see_other_parts_of_the_space() -> None:
    """Only one of the next eight favourites is valid."""
    bad, board = without_tiles(3, 6)
    first, second, *_ = run(tuner_of(), board)
    assert set(first) <= bad and sum(index not in bad for index in second) >= 3


def test_a_lost_board_tells_nothing_of_its_trials() -> None:
    tuner, quiet = tuner_of(), tuner_of()
    first = tuner.ask(8)
    assert quiet.ask(8) == first
    tuner.tell([Feedback(index, Outcome.BOARD_LOST) for index in first])
    assert tuner.confidence() is None and tuner.ask(8) == quiet.ask(8)


def test_a_result_that_was_not_asked_for_is_learnt_and_one_outside_the_space_is_not() -> None:
    tuner = tuner_of()
    refused = next(index for index in range(len(PROBLEM.space)) if index not in LATENCIES)
    tuner.tell([Feedback(refused, Outcome.OK, 1e-3)])
    assert tuner.confidence() is None
    best = min(LATENCIES, key=LATENCIES.__getitem__)
    tuner.tell([right(best)])
    assert tuner.confidence() is not None
    assert tuner.assessment().board_over_twin is None, "no machine is fitted to one latency"


def test_the_first_trial_is_the_favourite_and_the_second_moves_the_fewest_bytes() -> None:
    candidates = candidates_of(PROBLEM)
    moved = bytes_moved(PYNQ, candidates.hidden)
    asked = [int(candidates.row_of[index]) for index in tuner_of().ask(8)]
    lightest = moved <= moved.min() * 1.01
    assert lightest[asked[1]] or lightest[asked[0]]
    mean = candidates.analytic_model.cycles(np.log([32.0, 16.0, 1.0]))
    assert mean[asked[0]] <= np.quantile(mean, 0.2)


def test_a_trial_in_flight_is_not_asked_again() -> None:
    tuner = tuner_of(stop_at=2.0)
    batches = [tuner.ask(8) for _ in range(4)]
    told = flat(batches)
    assert len(told) == len(set(told)) == 32
    tuner.tell([right(index) for index in told[:16]])
    assert not set(tuner.ask(16)) & set(told)


def test_without_doubts_and_exact_predictions_the_best_is_found_too() -> None:
    told = flat(run(tuner_of(without="machines, validity , exact"), right))
    assert min(LATENCIES[index] for index in told) <= 1.01 * BEST


def test_a_hidden_step_is_looked_for_before_anything_is_sure() -> None:
    """Tiles of more than one channel block are four times as fast as the twin says, and are never its favourites."""
    column = PROBLEM.columns(np.arange(len(PROBLEM.space)))["tile_co"]
    fast = column == column.max()
    stepped = {index: latency / (4 if fast[index] else 1) for index, latency in LATENCIES.items()}
    told = flat(run(tuner_of(), lambda index: Feedback(index, Outcome.OK, stepped[index])))
    assert min(stepped[index] for index in told) <= 1.01 * min(stepped.values())
