from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from hilt.trial import Outcome
from hilt.tune import Feedback
from hilt.tune.ml2tuner.features import Hidden, advanced_features, visible_features
from hilt.tune.ml2tuner.hyperparameters import PERFORMANCE, VALIDITY
from hilt.tune.ml2tuner.models import Trees
from hilt.tune.ml2tuner.tuner import ML2Tuner, ML2TunerOptions, ml2tuner

from .. import conformance
from ..grids import Ints
from .problems import PROBLEM, latencies, measure

QUICK = {"annealing_iterations": 60}


class Spied(ML2Tuner):
    """A tuner that notes the compiled indices."""

    def __init__(self, seed: int, **options: object) -> None:
        self.compiled: list[list[int]] = []
        chosen = ML2TunerOptions(**(QUICK | options))  # type: ignore[arg-type]
        self.N = chosen.N
        super().__init__(
            PROBLEM.space,
            seed,
            chosen,
            lambda indices: visible_features(PROBLEM, indices).values,
            self.compile,
        )

    def compile(self, indices: Ints) -> np.ndarray:
        self.compiled.append(indices.tolist())
        return advanced_features(PROBLEM, indices, Hidden.TABLE_5).values


def test_a_compiles_twice_as_many_as_are_measured_and_measures_the_fastest_of_them() -> None:
    tuner = Spied(1)
    first = tuner.ask(10)
    tuner.tell([measure(index) for index in first])
    second = tuner.ask(10)
    known, candidates = tuner.compiled
    assert sorted(known) == sorted(index for index in first if np.isfinite(latencies()[index]))
    assert len(set(candidates)) == 20 and set(second) < set(candidates) and not set(first) & set(candidates)
    rows = np.array(known)
    model = Trees(PERFORMANCE, tuner._a._seed)
    model.fit(advanced_features(PROBLEM, rows, Hidden.TABLE_5).values, latencies()[rows] / latencies()[rows].min())
    predicted = dict(zip(candidates, model.predict(tuner.compile(np.array(candidates))).tolist(), strict=True))
    assert max(predicted[index] for index in second) <= min(
        predicted[index] for index in candidates if index not in second
    )


def test_p_and_a_learn_of_valid_records_and_v_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[tuple[object, int, int, float]] = []
    fit = Trees.fit

    def spy(model: Trees, rows: np.ndarray, labels: np.ndarray) -> None:
        fitted.append((model, *rows.shape, float(labels.min())))
        fit(model, rows, labels)

    monkeypatch.setattr(Trees, "fit", spy)
    tuner = Spied(1)
    results = [measure(index) for index in tuner.ask(20)]
    tuner.tell(results)
    tuner.ask(1)
    valid = sum(item.outcome is Outcome.OK for item in results)
    knobs, table_5 = len(PROBLEM.space.knobs), 19 + 1  # tile_ci is not in Table 5
    assert 0 < valid < 20
    assert fitted == [(tuner._v, 20, knobs, 0.0), (tuner._p, valid, knobs, 1.0), (tuner._a, valid, table_5, 1.0)]


def fits(monkeypatch: pytest.MonkeyPatch) -> list[Trees]:
    """Return a list that collects the models fitted from now on."""
    fitted: list[Trees] = []
    fit = Trees.fit

    def spy(model: Trees, rows: np.ndarray, labels: np.ndarray) -> None:
        fitted.append(model)
        fit(model, rows, labels)

    monkeypatch.setattr(Trees, "fit", spy)
    return fitted


def test_p_and_a_are_not_fitted_again_to_the_same_records(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = fits(monkeypatch)
    tuner = Spied(1)
    tuner.tell([measure(index) for index in tuner.ask(20)])
    taken = tuner.ask(10)
    fitted.clear()
    tuner.tell([Feedback(index, Outcome.CRASH) for index in taken])
    tuner.ask(10)
    assert fitted == [tuner._v]


@pytest.mark.parametrize(("growth", "rounds"), [(0.0, [20, 30, 40, 50, 60]), (0.5, [20, 40])])
def test_models_are_fitted_anew_when_the_records_have_grown(
    monkeypatch: pytest.MonkeyPatch, growth: float, rounds: list[int]
) -> None:
    fitted = fits(monkeypatch)
    tuner = Spied(1, refit_growth=growth)
    told, fitted_at = 0, []
    for count in (20, 10, 10, 10, 10, 1):
        before = len(fitted)
        asked = tuner.ask(count)
        fitted_at += [told] * (len(fitted) > before)
        tuner.tell([measure(index) for index in asked])
        told += len(asked)
    assert fitted_at == rounds


@pytest.mark.parametrize(
    ("options", "compiled"), [({"alpha": 0.5}, 15), ({"alpha": 0.0}, 0), ({"model_a": False}, 0), ({"N": 6}, 12)]
)
def test_the_number_compiled_follows_n_and_alpha(options: dict[str, object], compiled: int) -> None:
    tuner = Spied(1, **options)
    tuner.tell([measure(index) for index in tuner.ask(2 * tuner.N)])
    tuner.ask(1)
    ranked = tuner.compiled[1:]  # the first are those of the records that A learns of
    assert [len(indices) for indices in ranked] == ([compiled] if compiled else [])


def test_it_is_random_until_something_is_valid() -> None:
    tuner = Spied(1)
    invalid = np.flatnonzero(np.isnan(latencies()))[:50].tolist()
    tuner.tell([measure(index) for index in invalid])
    asked = [index for _ in range(20) for index in tuner.ask(10)]
    assert not tuner.compiled
    assert np.isnan(latencies()[asked]).mean() == pytest.approx(np.isnan(latencies()).mean(), abs=0.12)


@pytest.mark.slow
def test_v_spares_invalid_trials() -> None:
    def invalid(model_v: bool) -> float:
        told = [
            conformance.run(Spied(seed, model_v=model_v, model_a=False), 60, 10, measure, lag=False)
            for seed in range(3)
        ]
        return float(np.mean([item.outcome is not Outcome.OK for items in told for item in items[10:]]))

    with_v, without = invalid(True), invalid(False)
    assert with_v < 0.8 * without, (with_v, without)


def test_a_round_is_told_in_any_portions() -> None:
    """Models are fitted for a round, not for a result."""
    whole, parts = Spied(2), Spied(2)
    for _ in range(2):
        asked = whole.ask(10)
        assert [index for _ in range(5) for index in parts.ask(2)] == asked
        results = [measure(index) for index in asked]
        whole.tell(results)
        for result in results:
            parts.tell([result])


def test_a_lost_board_teaches_nothing() -> None:
    quiet, disturbed = Spied(2), Spied(2)
    asked = quiet.ask(10)
    assert disturbed.ask(10) == asked
    results = [measure(index) for index in asked]
    quiet.tell(results)
    disturbed.tell([*(Feedback(index, Outcome.BOARD_LOST) for index in asked), *results])
    assert quiet.ask(10) == disturbed.ask(10)


def test_overheads_are_named_by_part() -> None:
    tuner = ml2tuner(PROBLEM, 0, ML2TunerOptions(annealing_iterations=60))
    conformance.run(tuner, 30, 10, measure, lag=False)
    assert set(tuner.overheads()) == {"features", "training", "compilation", "search"}


def test_features_are_named_once() -> None:
    indices = np.arange(7)
    for hidden, count in ((Hidden.TABLE_5, 20), (Hidden.ALL, 55)):
        features = advanced_features(PROBLEM, indices, hidden)
        assert len(set(features.names)) == len(features.names) >= count
        assert features.values.shape == (7, len(features.names))
        assert features.names[:5] == PROBLEM.space.names


def test_defaults_are_the_papers() -> None:
    options = ML2TunerOptions()
    assert (options.N, options.alpha, options.hidden, options.model_v, options.model_a) == (
        10,
        1.0,
        "table5",
        True,
        True,
    )
    expected = {"max_depth": 14, "min_child_weight": 3, "learning_rate": 0.01, "reg_alpha": 1e-5, "boost_rounds": 300}
    assert expected.items() <= dataclasses.asdict(PERFORMANCE).items()
    expected = {"subsample": 0.6, "colsample_bytree": 0.6, "learning_rate": 0.1, "reg_alpha": 1e-2}
    assert expected.items() <= dataclasses.asdict(VALIDITY).items()
