"""A dataset's record of each configuration, against the code that decides one configuration at a time."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from hilt.measure.dataset import Dataset, DatasetError, DatasetStore, check
from hilt.measure.dataset import build as building
from hilt.measure.dataset.build import build
from hilt.measure.dataset.check import Sampling
from hilt.schedule import Rejected, lower, make_tensors
from hilt.schedule.reasons import TVM_RUNTIME
from hilt.simulator.build import build as build_model
from hilt.simulator.build import quick_build
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program
from hilt.trial import Outcome
from tests.unit.measure.dataset.small import FAR, NO_INTERLOCK, NO_SAMPLE, Here, built, small_subject


@pytest.mark.rtl
def test_every_answer_is_the_golden_models(tmp_path: Path) -> None:
    """Exhaustive; cycles of a sample on the RTL."""
    subject = small_subject(FAR, checks="compiler")
    (dataset,) = built(tmp_path, [subject])
    tensors = make_tensors(subject.workload, subject.accelerator, 5)
    golden, rtl = build_model(subject.accelerator, "golden"), quick_build(subject.accelerator, "rtl")
    generator = np.random.default_rng(1)
    for index in range(len(dataset)):
        try:
            program = lower(subject.workload, subject.space.knobs_at(index), subject.accelerator)
        except Rejected as rejected:
            said = (dataset.outcome_of(index), dataset.reason_of(index))
            assert said == (Outcome.REJECTED, rejected.reason), index
            continue
        run = run_program(golden, program, tensors.inputs)
        assert run.execution.status is DeviceStatus.DONE and np.array_equal(run.output, tensors.expected.ravel())
        assert dataset.outcome_of(index) is Outcome.OK, index
        if generator.random() < 0.1:
            timed = run_program(rtl, program, tensors.inputs, memory=subject.memory)
            assert timed.execution.cycles == dataset.cycles[index]


@pytest.mark.rtl
def test_sums_that_hardware_without_interlock_loses_are_known(tmp_path: Path) -> None:
    """Exhaustive on the RTL: the golden model has no pipeline."""
    subject = small_subject(NO_INTERLOCK, checks="compiler")
    (dataset,) = built(tmp_path, [subject])
    tensors = make_tensors(subject.workload, subject.accelerator, 5)
    library = quick_build(subject.accelerator, "rtl")
    rejected = dataset.metadata["outcomes"].index("rejected")
    seen = set()
    for index in np.flatnonzero(dataset.outcome != rejected).tolist():
        program = lower(subject.workload, subject.space.knobs_at(index), subject.accelerator)
        run = run_program(library, program, tensors.inputs, memory=subject.memory)
        right = np.array_equal(run.output, tensors.expected.ravel())
        assert dataset.outcome_of(index) is (Outcome.OK if right else Outcome.WRONG_ANSWER), index
        assert dataset.cycles[index] == (run.execution.cycles if right else 0)
        seen.add(right)
    assert seen == {True, False}


def test_the_tvm_level_knows_compiler_and_runtime_limits(tmp_path: Path) -> None:
    subject = small_subject(checks="tvm", orders=4)
    (dataset,) = built(tmp_path, [subject])
    runtime = {reason.text for reason in TVM_RUNTIME}
    seen = set()
    for index in range(len(dataset)):
        outcome, reason = dataset.outcome_of(index), dataset.reason_of(index)
        seen.add(outcome)
        assert (outcome is Outcome.CRASH) == (reason in runtime)
        assert (outcome is Outcome.OK) == (reason == "") == bool(dataset.cycles[index])
    assert seen == {Outcome.OK, Outcome.REJECTED, Outcome.CRASH}


def test_without_checks_the_board_finds_out(tmp_path: Path) -> None:
    """Tiles that do not fit stop at an index past a buffer; the golden model agrees on a sample."""
    subject = small_subject(checks="off", kind="ml2")
    (dataset,) = built(tmp_path, [subject], Sampling(rtl=0, golden=25, seed=3))
    assert not np.any(dataset.outcome == dataset.metadata["outcomes"].index("rejected"))
    assert dataset.metadata["check"]["golden"] == {"run": 25, "outcome": 0, "disagreements": []}


def test_boards_that_run_the_same_programs_are_built_together(tmp_path: Path) -> None:
    subjects = [small_subject(board) for board in (FAR, NO_INTERLOCK)]
    together = built(tmp_path / "together", subjects)
    for one, subject in zip(together, subjects, strict=True):
        (alone,) = built(tmp_path / "alone", [subject])
        assert np.array_equal(one.cycles, alone.cycles) and np.array_equal(one.outcome, alone.outcome)
        assert one.identity == alone.identity
    with pytest.raises(DatasetError, match="same workload"):
        built(tmp_path, [small_subject(), small_subject(checks="strict")])


def test_a_killed_build_goes_on_and_gives_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "CHUNK", 10)
    monkeypatch.setattr(building, "_CHUNKS_AHEAD", 1)
    subject = small_subject()
    whole = Here()
    (undisturbed,) = build([subject], DatasetStore(tmp_path / "a"), whole, NO_SAMPLE)
    dataset_store = DatasetStore(tmp_path / "b")
    with pytest.raises(KeyboardInterrupt):
        build([subject], dataset_store, Here(limit=whole.calls - 2), NO_SAMPLE)
    assert dataset_store.paths() == [] and not dataset_store.has(subject)
    rest = Here()
    (resumed,) = build([subject], dataset_store, rest, NO_SAMPLE)
    assert 0 < rest.calls < whole.calls
    assert np.array_equal(resumed.cycles, undisturbed.cycles)
    assert [path.name for path in dataset_store.folder.iterdir()] == [dataset_store.path_of(subject).name]


@pytest.mark.slow
def test_other_processes_find_the_same(tmp_path: Path) -> None:
    (here,) = built(tmp_path / "here", [small_subject()])
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        (there,) = build([small_subject()], DatasetStore(tmp_path / "there"), pool, NO_SAMPLE)
    assert np.array_equal(here.cycles, there.cycles)


def test_a_dask_cluster_finds_the_same(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is an extra: pip install 'hilt[cluster]'")
    (here,) = built(tmp_path / "here", [small_subject()])
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        client.get_executor(pure=False) as executor,
    ):
        (there,) = build([small_subject()], DatasetStore(tmp_path / "there"), executor, NO_SAMPLE)
    assert np.array_equal(here.cycles, there.cycles)


@pytest.mark.rtl
def test_the_check_finds_wrong_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A twin that is out by one cycle, and rules that call every answer right on hardware that loses sums."""
    monkeypatch.setattr(building.outcomes, "HAZARD_DISTANCE", 0)
    true = building.predict

    def late(*arguments: object) -> dict[str, np.ndarray]:
        found = true(*arguments)  # type: ignore[arg-type]
        return found | {"cycles": found["cycles"] + 1}

    monkeypatch.setattr(building, "predict", late)
    monkeypatch.setattr(check, "build_model", quick_build)
    (dataset,) = built(tmp_path, [small_subject(NO_INTERLOCK)], Sampling(rtl=30, golden=5))
    found = dataset.metadata["check"]
    assert 0 < found["rtl"]["cycles_error"] < 0.01
    assert found["rtl"]["outcome"] == len(found["rtl"]["disagreements"]) > 0
    assert "golden" not in found
    assert isinstance(dataset, Dataset)
