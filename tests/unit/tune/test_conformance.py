"""Requirements of the engine on every tuner, whatever its method."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hilt.trial import Outcome
from hilt.tune import Feedback

from . import conformance
from .conformance import TUNERS, Build
from .grids import Grid

GRID = Grid((8, 6, 6, 2, 2), valid_share=0.4, seed=5)

every_tuner = pytest.mark.parametrize("build", TUNERS.values(), ids=TUNERS.keys())


@pytest.mark.slow
@every_tuner
@pytest.mark.parametrize("lag", [True, False])
def test_indices_are_distinct_and_in_range(build: Build, lag: bool) -> None:
    told = conformance.run(build(GRID, 1), 300, 16, GRID.measure, lag)
    indices = [feedback.index for feedback in told]
    assert len(indices) == 300 == len(set(indices))
    assert all(type(index) is int and 0 <= index < len(GRID) for index in indices)


@every_tuner
@pytest.mark.parametrize("counts", [(5, 4, 3), (1,), (1, 1, 7), (3,)])
def test_a_small_space_is_used_up_exactly(build: Build, counts: tuple[int, ...]) -> None:
    grid = Grid(counts)
    tuner = build(grid, 2)
    told = conformance.run(tuner, 10_000, 7, grid.measure)
    assert sorted(feedback.index for feedback in told) == list(range(len(grid)))
    assert tuner.ask(1) == []


@every_tuner
def test_asking_for_nothing_gives_nothing(build: Build) -> None:
    assert build(GRID, 1).ask(0) == []


@pytest.mark.slow
def test_same_seed_and_calls_give_same_indices_in_another_process() -> None:
    command = [sys.executable, "-m", conformance.__name__, "9", "120"]
    clone = Path(__file__).parents[3]
    output = subprocess.run(command, cwd=clone, check=True, capture_output=True, text=True, timeout=120).stdout
    assert json.loads(output) == conformance.every_search(9, 120)


@pytest.mark.parametrize("name", sorted(TUNERS.keys() - {"grid"}))
def test_another_seed_gives_another_search(name: str) -> None:
    assert TUNERS[name](GRID, 1).ask(20) != TUNERS[name](GRID, 2).ask(20)


@pytest.mark.parametrize(("one", "other"), [("random", "ga"), ("autotvm", "autotvm-ei"), ("autotvm", "ml2tuner")])
def test_those_that_begin_at_random_begin_with_the_same_draws_of_a_seed(one: str, other: str) -> None:
    """Tuners that begin at random begin with the same draws of a seed.

    The draws agree until either tuner has results, so comparisons by seed compare the searches, not the luck of
    their first trials.
    """
    begun = [[index for _ in range(4) for index in TUNERS[name](GRID, 6).ask(8)] for name in (one, other)]
    assert begun[0] == begun[1]


@every_tuner
@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.OK])
def test_failures_only_are_survived(build: Build, outcome: Outcome) -> None:
    told = conformance.run(build(GRID, 3), 200, 16, lambda index: Feedback(index, outcome))
    assert len({feedback.index for feedback in told}) == 200


@every_tuner
def test_results_never_told_are_survived(build: Build) -> None:
    """A tuner survives results that never arrive.

    A stopped run's last batch stays out; the tuner goes on with untried indices.
    """
    tuner = build(GRID, 4)
    asked = [index for _ in range(10) for index in tuner.ask(16)]
    tuner.tell([GRID.measure(index) for index in asked[:100]])
    asked += tuner.ask(100)
    assert len(set(asked)) == 260


def test_latency_belongs_to_ok_and_to_nothing_else() -> None:
    with pytest.raises(ValueError, match="timeout"):
        Feedback(3, Outcome.TIMEOUT, 1.0)
    with pytest.raises(ValueError, match="ok"):
        Feedback(3, Outcome.OK)
