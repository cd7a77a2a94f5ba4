from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hilt.schedule import load_workload
from hilt.schedule.validity_summary import summarize_validity
from hilt.trial import Outcome
from hilt.tune import Feedback, TunerOptionError, TuningProblem, make_tuner, resolve_options
from hilt.tune.autotvm.transfer import GlobalModel, GlobalPlusLocal, global_weight
from hilt.tune.boosted_trees import BoostedTrees, Loss
from hilt.tune.history import History, HistoryError, WorkloadHistory
from hilt.virtual.board_model import board_model

PYNQ = board_model("pynq").accelerator
C7, C9, C10 = (TuningProblem.of(load_workload(f"resnet18.{name}"), PYNQ, checks="tvm") for name in ("C7", "C9", "C10"))


def microseconds(problem: TuningProblem) -> np.ndarray:
    """Return latencies in place of a board's, from the cycles of memory and compute by the hidden features.

    The value is NaN if the configuration is rejected.
    """
    hidden = problem.hidden_features(np.arange(len(problem.space)))
    cycles = hidden.column("cycles.compute") + hidden.column("cycles.memory") + 40 * hidden.column("instructions.all")
    valid = summarize_validity(problem.workload, problem.accelerator, problem.space, problem.checks).verdicts == 0
    return np.where(valid, cycles / 100, np.nan)


def results(problem: TuningProblem, indices: np.ndarray) -> list[Feedback]:
    latencies = microseconds(problem)[indices]
    return [
        Feedback(int(index), Outcome.REJECTED)
        if np.isnan(latency)
        else Feedback(int(index), Outcome.OK, float(latency))
        for index, latency in zip(indices, latencies, strict=True)
    ]


def history_of(problem: TuningProblem, count: int) -> History:
    indices = problem.space.sample(count, np.random.default_rng(5))
    part = WorkloadHistory.of(problem.workload, problem.accelerator, problem.space, results(problem, indices))
    return History((part,))


C7_AND_C9 = History((*history_of(C7, 400).parts, *history_of(C9, 400).parts))


def test_the_global_model_fades_and_is_dropped() -> None:
    """TVM_FACTS section 4: weighted by 2^(-n/64), dropped from n = 277."""
    assert [global_weight(samples) for samples in (0, 64, 128)] == [1.0, 0.5, 0.25]
    assert global_weight(276) == 2 ** (-276 / 64) >= 0.05
    assert global_weight(277) == 0.0


@pytest.mark.parametrize("loss", list(Loss))
def test_local_trees_learn_the_residual_of_the_weighted_global_model(loss: Loss) -> None:
    """Local trees learn the residual of the weighted global model.

    With n samples and the global column g, they are exactly the trees over base margin 2^(-n/64) g; from 277 on,
    without.
    """
    generator = np.random.default_rng(0)
    for count in (64, 300):
        features = generator.normal(size=(count, 4)).astype(np.float32)
        labels = np.clip(features[:, 0] + features[:, -1], 0, 1).astype(np.float32)
        plain, transferred = (BoostedTrees(loss, 16, 30, 10, seed=1) for _ in range(2))
        margin = features[:, -1] * np.float32(0.5) if count == 64 else None
        plain.fit(features[:, :-1], labels, margin)
        model = GlobalPlusLocal(transferred)
        model.fit(features, labels)
        assert (model.predict(features) == plain.predict(features[:, :-1], margin)).all()


def test_a_margin_is_added_to() -> None:
    features, labels = np.zeros((50, 1), dtype=np.float32), np.full(50, 0.25, dtype=np.float32)
    trees = BoostedTrees(Loss.REGRESSION, 8, 1, 1, seed=0)
    trees.fit(features, labels, np.full(50, 0.25, dtype=np.float32))  # nothing is left to learn
    assert trees.predict(features[:2], np.array([0.0, 3.0], dtype=np.float32)) == pytest.approx([0.0, 3.0], abs=1e-6)


@pytest.mark.slow
def test_the_global_model_ranks_a_workload_it_never_saw() -> None:
    """The global model ranks a workload it never saw.

    Among its 50 best of C10's 480, far more run than among any 50, and they are fast.
    """
    score = GlobalModel.of(C7_AND_C9, Loss.RANK, 128).over(C10)
    latencies = microseconds(C10)
    best = np.argsort(-score(np.arange(len(latencies))), kind="stable")[:50]
    assert np.isfinite(latencies[best]).mean() > 2 * np.isfinite(latencies).mean()
    assert np.nanmedian(latencies[best]) < np.nanmedian(latencies)


@pytest.mark.slow
def test_the_first_plan_is_the_global_models(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    C7_AND_C9.save(path)
    asked = make_tuner("autotvm", C10, 1, history=str(path)).ask(32)
    assert asked == make_tuner("autotvm", C10, 1, history=str(path)).ask(32)
    valid = np.isfinite(microseconds(C10))
    assert valid[asked].mean() > 2 * valid.mean()


def test_a_run_records_which_history_it_learnt_from(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    history_of(C9, 10).save(path)
    recorded = resolve_options("autotvm", history=str(path))
    assert len(str(recorded["history_sha256"])) == 64
    assert resolve_options("autotvm", **recorded) == recorded
    history_of(C9, 11).save(path)
    with pytest.raises(TunerOptionError, match=r"has changed: its sha256 is .*; bring back the old file"):
        resolve_options("autotvm", **recorded)


def test_a_history_comes_back_as_it_was(tmp_path: Path) -> None:
    history = history_of(C9, 20)
    for name in ("first", "second"):
        history.save(tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    (part,), (found,) = history.parts, History.load(tmp_path / "first").parts
    assert (found.workload, found.accelerator) == (part.workload, part.accelerator)
    assert {name: column.tolist() for name, column in found.columns.items()} == {
        name: column.tolist() for name, column in part.columns.items()
    }
    assert found.throughput.tolist() == part.throughput.tolist()


def test_throughput_is_work_over_time() -> None:
    part = WorkloadHistory.of(C9.workload, PYNQ, C9.space, [Feedback(3, Outcome.OK, 2.0), Feedback(4, Outcome.TIMEOUT)])
    assert part.throughput.tolist() == [C9.workload.macs / 2.0, 0.0]
    assert {name: column.tolist() for name, column in part.columns.items()} == {
        name: [C9.space.knobs_at(3)[name], C9.space.knobs_at(4)[name]] for name in C9.space.names
    }


def test_too_little_history_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    history_of(C9, 100).save(path)
    with pytest.raises(TunerOptionError, match="the history holds 100 results; transfer needs 500"):
        make_tuner("autotvm", C10, 0, history=str(path))


def test_a_history_whose_tiles_are_not_of_its_layer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    C7_AND_C9.save(path)
    document = json.loads(path.read_text())
    part = document["parts"][1]
    part["columns"]["tile_h"] = [5] * len(part["throughput"])  # of 7 rows
    path.write_text(json.dumps(document))
    with pytest.raises(TunerOptionError, match="the history's configurations of resnet18.C9: .*does not divide 7"):
        make_tuner("autotvm", C10, 0, history=str(path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda document: document | {"schema": "other"}, "has the schema 'other'"),
        (lambda document: {"parts": []}, "is not a history: 'schema'"),
        (lambda document: document["parts"][0].update(throughput=[1.0]), "lists of one length"),
        (lambda document: document["parts"][0].update(throughput=[-1.0] * 5), "not a number from 0 on"),
        (lambda document: document["parts"][0]["columns"].update(tile_h=[0, 1, 1, 1, 1]), "whole number from 1 on"),
        (lambda document: document["parts"][0]["columns"].update(tile_h=["1"] * 5), "whole number from 1 on"),
        (lambda document: document["parts"][0]["columns"].update(tile_h=[10**30] * 5), "is not a history|whole number"),
        (
            lambda document: document["parts"][0]["accelerator"].update(bus_bits=7),
            "is not a history: a memory bus of 7",
        ),
        (lambda document: document["parts"][0].update(columns=[1]), "is not a history"),
    ],
)
def test_a_file_that_is_no_history_is_refused(tmp_path: Path, change: object, message: str) -> None:
    path = tmp_path / "history.json"
    history_of(C9, 5).save(path)
    document = json.loads(path.read_text())
    path.write_text(json.dumps(change(document) or document))  # type: ignore[operator]
    with pytest.raises(HistoryError, match=message):
        History.load(path)
    path.write_text("no JSON")
    with pytest.raises(HistoryError, match="is not a history"):
        History.load(path)
