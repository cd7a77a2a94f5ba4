from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from hilt.tune.model_guided.analytic_model import AnalyticModel
from hilt.tune.model_guided.calibration import find_coordinates
from hilt.tune.model_guided.machines import TwinMachine
from hilt.tune.model_guided.memories import Floats, hypotheses, memory_at, prior_mean
from hilt.virtual.board_model import board_model

PYNQ = board_model("pynq").accelerator


class Sums:
    """Cycles as a sum of parts, which calibration has to separate.

    Each part is proportional to one of the memory's parameters.
    """

    def __init__(self, parts: Floats) -> None:
        self._parts = parts

    def log_cycles(self, rows: Sequence[int], coordinates: Floats) -> Floats:
        factors = np.concatenate((np.ones((len(coordinates), 1)), np.exp(coordinates)), axis=1)
        return np.asarray(np.log(self._parts[list(rows)] @ factors.T))


def test_hypotheses_begin_with_the_assumed_memory_and_surround_it() -> None:
    found = hypotheses(PYNQ, 64)
    assert found.shape == (64, 3)
    assert found[0] == pytest.approx(prior_mean(PYNQ))
    assert np.abs(np.median(found[:, :2], axis=0) - prior_mean(PYNQ)[:2]).max() < 0.15
    assert (found[:, 2] >= 0).all()
    memories = {memory_at(each, PYNQ) for each in found}
    assert len(memories) > 50
    assert all(0 < memory.bandwidth[0] / memory.bandwidth[1] <= 8 for memory in memories)


@pytest.mark.parametrize("true", [(80, 40, 2.0), (12, 6, 1.0), (32, 64, 1.3)])
@pytest.mark.parametrize("clock", [0.7, 1.0, 1.4])
def test_memory_and_clock_are_told_apart(true: tuple[float, float, float], clock: float) -> None:
    generator = np.random.default_rng(5)
    parts = generator.uniform([1e5, 500, 500, 2e4], [2e5, 5e3, 5e3, 3e5], (24, 4))
    coordinates = np.log(true)
    rows = np.arange(24)
    predictor = Sums(parts)
    observed = predictor.log_cycles(rows.tolist(), coordinates[None])[:, 0] - np.log(clock)
    observed += generator.normal(0, 0.002, 24)
    observed[3] += 0.5  # one measurement that something disturbed
    machine = TwinMachine(PYNQ, predictor, AnalyticModel.__new__(AnalyticModel))
    found = find_coordinates(
        machine,
        lambda points: predictor.log_cycles(rows.tolist(), points),
        lambda point: machine.derivatives(rows.tolist(), point),
        observed,
        machine.prior[None],
    )
    assert found == pytest.approx(coordinates, abs=0.25)
