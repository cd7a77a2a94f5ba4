from __future__ import annotations

import numpy as np

from hilt.schedule import load_workload
from hilt.tune import TuningProblem
from hilt.virtual.board_model import board_model

BOARD = board_model("pynq")
C2 = load_workload("resnet18.C2")


def test_tvms_compiler_takes_more_than_its_runtime() -> None:
    """TVM_FACTS.md section 1: 290 of C2's 2304 compile."""
    assert np.count_nonzero(TuningProblem.of(C2, BOARD.accelerator, checks="tvm").compiles) == 290
    assert TuningProblem.of(C2, BOARD.accelerator, checks="off").compiles.all()


def test_predicted_cycles_are_numbers_exactly_where_it_compiles() -> None:
    problem = TuningProblem.of(C2, BOARD.accelerator)
    indices = problem.space.sample(100, np.random.default_rng(1))
    cycles = problem.predicted_cycles(indices, [BOARD.memory_model])
    assert cycles.shape == (100, 1)
    assert np.array_equal(np.isfinite(cycles[:, 0]), problem.compiles[indices])
