"""The tuner `order` proposes configurations that compile first, cheapest first by its figure, and everything once."""

from __future__ import annotations

import numpy as np
import pytest

from hilt.schedule import load_workload
from hilt.simulator.device import MemoryModel
from hilt.tune import TunerOptionError, TuningProblem
from hilt.tune.fixed_order import ORDERS, OrderOptions, OrderTuner
from hilt.vta.accelerator import Accelerator
from hilt.vta.parameters import VTAParameters

SMALL = "conv2d:n=1,ci=32,h=8,w=8,co=32,k=3x3,s=1x1,p=1x1"


@pytest.fixture(scope="module")
def problem() -> TuningProblem:
    accelerator = Accelerator.for_parameters(VTAParameters.from_name("1x16_i8w8a32_15_15_18_17"))
    return TuningProblem.of(load_workload(SMALL), accelerator, orders=1)


@pytest.mark.parametrize("by", ORDERS)
def test_what_compiles_comes_first_and_everything_once(problem: TuningProblem, by: str) -> None:
    tuner = OrderTuner(problem, 3, OrderOptions(by))
    asked = [index for _ in range(len(problem.space)) for index in tuner.ask(7)]
    assert sorted(asked) == list(range(len(problem.space)))
    compiling = int(problem.compiles.sum())
    assert problem.compiles[asked[:compiling]].all() and not problem.compiles[asked[compiling:]].any()


def test_the_order_of_the_twin_is_that_of_its_cycles(problem: TuningProblem) -> None:
    asked = OrderTuner(problem, 0, OrderOptions("twin")).ask(int(problem.compiles.sum()))
    cycles = problem.predicted_cycles(np.array(asked), [MemoryModel()])[:, 0]
    assert (np.diff(cycles[np.isfinite(cycles)]) >= 0).all()


def test_the_order_of_bytes_is_that_of_the_programs(problem: TuningProblem) -> None:
    """The least order moves no more data and instructions than the last: counted in the lowered programs."""
    asked = OrderTuner(problem, 0, OrderOptions("bytes")).ask(int(problem.compiles.sum()))
    first, last = (problem.lowered(asked[place]) for place in (0, -1))
    assert first is not None and last is not None
    assert len(first.instructions) <= len(last.instructions)


def test_only_the_random_order_depends_on_the_seed(problem: TuningProblem) -> None:
    for by in ORDERS:
        same = OrderTuner(problem, 1, OrderOptions(by)).ask(20) == OrderTuner(problem, 2, OrderOptions(by)).ask(20)
        assert same == (by != "random")


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(TunerOptionError, match="random, bytes, formula, twin"):
        OrderOptions("size")
