"""The replayed sequence of calls equals the engine's, and the kept records equal the runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from hilt.measure.dataset import Dataset, DatasetKey, DatasetStore
from hilt.measure.dataset.dataset_store import MissingDatasetError
from hilt.trial import Outcome
from hilt.tune import Feedback, TuningProblem
from hilt.tune.metrics import trials_to_within
from hilt_experiments import runs
from hilt_experiments.contenders import Contender, known
from hilt_experiments.problem import SharedTuningProblem
from hilt_experiments.replay import Protocol, replay
from hilt_experiments.runs import Cell, perform, run_cell
from tests.unit.measure.dataset.small import PYNQ, built, small_subject


class Scripted:
    """A tuner that asks for the given indices and writes down its calls."""

    def __init__(self, indices: Sequence[int]) -> None:
        self._indices = list(indices)
        self.calls: list[str] = []
        self.heard: list[Feedback] = []

    def ask(self, count: int) -> list[int]:
        batch, self._indices = self._indices[:count], self._indices[count:]
        self.calls.append(f"ask {batch}")
        return batch

    def tell(self, feedback: Sequence[Feedback]) -> None:
        self.calls.append(f"tell {[each.index for each in feedback]}")
        self.heard += feedback


def made_up() -> Dataset:
    metadata = {"name": "x", "identity": {"clock_hz": 1_000_000}, "outcomes": ["ok", "crash"], "reasons": [""]}
    outcome = np.array([0, 1, 0, 0, 1, 0], dtype=np.uint8)
    return Dataset(metadata, outcome, np.zeros(6, np.uint8), np.array([9, 0, 7, 8, 0, 5], dtype=np.uint32))


def test_pipelined_is_the_engines_order() -> None:
    tuner = Scripted([5, 1, 2, 0, 3])
    run = replay(tuner, made_up(), Protocol(trials=5, batch=2, pipelined=True))
    assert tuner.calls == ["ask [5, 1]", "ask [2, 0]", "tell [5, 1]", "ask [3]", "tell [2, 0]", "tell [3]"]
    assert run.indices.tolist() == [5, 1, 2, 0, 3]
    assert [(each.outcome, each.microseconds) for each in tuner.heard[:2]] == [(Outcome.OK, 5), (Outcome.CRASH, None)]


def test_plain_tells_before_it_asks() -> None:
    tuner = Scripted([5, 1, 2])
    replay(tuner, made_up(), Protocol(trials=4, batch=2, pipelined=False))
    assert tuner.calls == ["ask [5, 1]", "tell [5, 1]", "ask [2]", "tell [2]", "ask []"]


class Waiting(Scripted):
    """Asks for nothing while a batch is untold."""

    def ask(self, count: int) -> list[int]:
        untold = sum(call.startswith("ask [") and call != "ask []" for call in self.calls) - sum(
            call.startswith("tell") for call in self.calls
        )
        return super().ask(0 if untold else count)


def test_an_empty_answer_is_not_final_while_a_batch_is_untold() -> None:
    tuner = Waiting([5, 1, 2])
    run = replay(tuner, made_up(), Protocol(trials=6, batch=2, pipelined=True))
    assert run.indices.tolist() == [5, 1, 2]
    assert tuner.calls == ["ask [5, 1]", "ask []", "tell [5, 1]", "ask [2]", "ask []", "tell [2]", "ask []"]


def test_ends_with_the_batch_that_has_the_optimum() -> None:
    tuner = Scripted([1, 0, 3, 5, 2, 4])
    run = replay(tuner, made_up(), Protocol(trials=6, batch=2, pipelined=False, until_optimum=True))
    assert run.indices.tolist() == [1, 0, 3, 5]  # 5 microseconds are the least valid latency
    assert tuner.calls == ["ask [1, 0]", "tell [1, 0]", "ask [3, 5]"]


def test_a_rejected_configuration_is_a_trial_like_any_other() -> None:
    """A rejection by a compiler is a trial like any other, although no board takes part.

    A tuner that asks a compiler first does not pay for it.
    """
    metadata = made_up().metadata | {"outcomes": ["ok", "rejected"]}
    refusing = Dataset(metadata, *(getattr(made_up(), name) for name in ("outcome", "reason", "cycles")))
    run = replay(tuner := Scripted([1, 4, 5]), refusing, Protocol(trials=3, batch=1, pipelined=False))
    assert [each.outcome for each in tuner.heard] == [Outcome.REJECTED, Outcome.REJECTED, Outcome.OK]
    assert run.indices.tolist() == [1, 4, 5]
    assert trials_to_within(refusing.microseconds[run.indices].tolist(), refusing.optimum, 0.0) == 3


def test_asking_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match="twice"):
        replay(Scripted([1, 2, 1]), made_up(), Protocol(trials=3, batch=3))


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DatasetKey:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    built(DatasetStore().folder, [small_subject()])
    return small_subject()


def test_runs_are_kept_and_more_seeds_only_add(recorded: DatasetKey) -> None:
    cell = Cell(recorded, Contender.of("random"), Protocol(trials=30))
    run_cell(cell, 2)
    first = perform([cell], 2, 1, print)[0]
    written = cell.path.stat().st_mtime_ns
    assert np.array_equal(perform([cell], 1, 1, print)[0].indices, first.indices[:1])
    assert cell.path.stat().st_mtime_ns == written
    run_cell(cell, 4)
    more = perform([cell], 4, 1, print)[0]
    assert np.array_equal(more.indices[:2], first.indices) and len(more.seeds) == 4
    latencies = more.dataset.microseconds[more.indices]
    assert np.array_equal(more.best_so_far, np.minimum.accumulate(latencies, axis=1))
    reached = more.trials_to(0.0)
    for row, trials in zip(latencies, reached, strict=True):
        hits = np.flatnonzero(row == more.dataset.optimum)
        assert trials == (hits[0] + 1 if len(hits) else None)
    assert more.invalid_share() == pytest.approx(np.isinf(latencies).mean(axis=1))


def test_trials_of_another_process_are_kept(recorded: DatasetKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two commands that hold the same experiment share the files of its runs."""
    cell = Cell(recorded, Contender.of("random"), Protocol(trials=30))
    run_cell(cell, 2)
    run_cell(cell, 2)  # it was still to be run when this process looked
    read, looked = runs.read, []

    def read_while_others_run(cell: Cell) -> runs.Runs:
        found = read(cell)
        if not looked:
            looked.append(True)
            run_cell(cell, 5)
        return found

    monkeypatch.setattr(runs, "read", read_while_others_run)
    run_cell(cell, 3)
    assert len(read(cell).seeds) == 5


def test_other_options_trials_or_datasets_are_other_files(recorded: DatasetKey) -> None:
    def path(contender: Contender, trials: int = 30, of: DatasetKey = recorded) -> Path:
        return Cell(of, contender, Protocol(trials=trials)).path

    autotvm = Contender.of("autotvm")
    paths = [
        path(autotvm),
        path(Contender.of("autotvm", loss="regression")),
        path(autotvm, trials=31),
        path(autotvm, of=small_subject(checks="strict")),
        path(Contender.of("random")),
    ]
    assert len(set(paths)) == len(paths)
    assert path(Contender.of("autotvm", "another label", loss="rank")) == paths[0]  # the default, spelled out


def test_a_missing_dataset_says_how_it_is_built(recorded: DatasetKey) -> None:
    cell = Cell(small_subject(checks="tvm"), Contender.of("random"), Protocol())
    with pytest.raises(MissingDatasetError, match=r"`hilt dataset build conv2d:.* --checks tvm --orders 1` builds"):
        perform([cell], 1, 1, print)


def test_contenders_that_are_not_here_are_named() -> None:
    there, lines = known([Contender.of("random"), Contender.of("of-tomorrow")])
    assert [each.label for each in there] == ["random"]
    assert len(lines) == 1 and "of-tomorrow" in lines[0]


def test_a_shared_problem_answers_as_a_problem(recorded: DatasetKey) -> None:
    shared = SharedTuningProblem.of_subject(recorded)
    alone = TuningProblem(recorded.workload, recorded.accelerator, recorded.space, recorded.checks)
    memories = [PYNQ.memory_model, small_subject().memory]
    indices = np.array([3, 40, 0, 41, 3])
    for asked in (indices[:2], indices, indices[::-1]):
        assert np.array_equal(
            shared.predicted_cycles(asked, memories), alone.predicted_cycles(asked, memories), equal_nan=True
        )
    assert np.array_equal(shared.compiles, alone.compiles)


@pytest.mark.slow
@pytest.mark.parametrize("contender", [Contender.of("hilt"), Contender.of("hilt", published_faults=False)])
def test_a_run_after_others_of_its_problem_is_the_run_alone(recorded: DatasetKey, contender: Contender) -> None:
    dataset, shared = DatasetStore().get(recorded), SharedTuningProblem.of_subject(recorded)
    for seed in range(4):
        alone = TuningProblem(recorded.workload, recorded.accelerator, recorded.space, recorded.checks)
        protocol = Protocol(trials=60, batch=4)
        first, later = (replay(contender.make(problem, seed), dataset, protocol) for problem in (alone, shared))
        assert later.indices.tolist() == first.indices.tolist()
