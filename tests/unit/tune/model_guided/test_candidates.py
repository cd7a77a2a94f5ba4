"""The candidates of a run: all that compile, or the best of a large space; the columns that describe them."""

from __future__ import annotations

import numpy as np
import pytest

from hilt.schedule import load_convolution
from hilt.tune.model_guided import candidates as module
from hilt.tune.model_guided.analytic_model import AnalyticModel
from hilt.tune.model_guided.candidates import Candidates, candidates_of
from hilt.tune.model_guided.memories import prior_mean
from hilt.tune.problem import TuningProblem
from tests.unit.schedule.cases import PYNQ

WORKLOAD = load_convolution("conv2d:n=1,ci=32,h=8,w=8,co=32,k=3x3,s=1x1,p=1x1")


@pytest.fixture(scope="module")
def problem() -> TuningProblem:
    return TuningProblem.of(WORKLOAD, PYNQ, orders=4)


@pytest.fixture(scope="module")
def every(problem: TuningProblem) -> Candidates:
    return candidates_of(problem)


def test_all_that_compile_are_candidates_in_the_spaces_order(problem: TuningProblem, every: Candidates) -> None:
    wanted = np.flatnonzero(problem.compiles)
    assert 0 < len(wanted) < len(problem.space), "the case has both"
    np.testing.assert_array_equal(every.indices, wanted)
    assert len(every) == len(wanted) and every.row_of[int(wanted[3])] == 3 and len(every.row_of) == len(wanted)
    np.testing.assert_array_equal(every.hidden.values, problem.hidden_features(wanted).values)


@pytest.mark.parametrize("at_once", [7, 50, 1 << 15])
def test_of_a_large_space_the_best_by_the_analytic_model_are(
    problem: TuningProblem, every: Candidates, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    most = len(every) // 3
    monkeypatch.setattr(module, "MOST", most)
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    chosen = candidates_of(problem)
    assert len(chosen) == most and np.all(np.diff(chosen.indices) > 0)
    cycles = AnalyticModel(PYNQ, problem.hidden_features(every.indices)).cycles(prior_mean(PYNQ))
    inside = np.isin(every.indices, chosen.indices)
    assert inside.sum() == most and cycles[inside].max() <= cycles[~inside].min()
    monkeypatch.setattr(module, "MOST", len(every))
    assert len(candidates_of(problem)) == len(every), "a space that fits stays whole"


def test_columns_are_logarithms_of_mean_zero_and_deviation_one(problem: TuningProblem, every: Candidates) -> None:
    assert np.abs(every.smooth.mean(axis=0)).max() < 1e-9
    np.testing.assert_allclose(every.smooth.std(axis=0), 1.0)
    features = every.hidden.values.astype(np.float64)
    varying = [column for column in features.T if np.ptp(np.log2(1 + np.maximum(column, 0))) > 1e-6]
    orders = np.unique(problem.columns(every.indices)["loop_order"])
    assert len(orders) > 1 and every.smooth.shape[1] == len(varying) + len(orders)
    logarithm = np.log2(1 + np.maximum(varying[0], 0))
    np.testing.assert_allclose(every.smooth[:, 0], (logarithm - logarithm.mean()) / logarithm.std())
    last = (problem.columns(every.indices)["loop_order"] == orders[-1]).astype(float)
    np.testing.assert_allclose(every.smooth[:, -1], (last - last.mean()) / last.std())


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_long_programs_are_not_lowered_unless_all_are_long(
    problem: TuningProblem, every: Candidates, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    lengths = every.hidden.column("instructions.all")
    limit = int(np.quantile(lengths, share)) if share else int(lengths.min()) - 1
    monkeypatch.setattr(module, "_LONGEST", limit)
    short = candidates_of(problem).short
    if share:
        np.testing.assert_array_equal(short, lengths <= limit)
        assert short.any() and short.all() == (share == 1.0)
    else:
        assert short.all()
