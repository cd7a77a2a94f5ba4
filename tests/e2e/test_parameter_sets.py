"""Boards of other parameter sets, end to end: lowered, sent over SSH, run on their RTL, all of the output compared."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hilt import paths
from hilt.measure import Request, open_measurer
from hilt.schedule import bound_cycles, load_workload, lower, make_tensors
from hilt.simulator.build import LIBRARY, model_key, quick_build
from hilt.simulator.twin import Twin, TwinStatus
from hilt.trial import Outcome, Result
from hilt.virtual.board_model import board_model
from hilt.vta.accelerator import IsaRevision
from tests.bench.prepared import KNOBS

BATCH_OF_FOUR = "conv2d:n=4,ci=32,h=14,w=14,co=32,k=3x3,s=1x1,p=1x1"


def quick_models(board: str, cache: Path) -> Path:
    """Fill a cache in which the board's model is the quick one, which compiles in half of the time; return it."""
    accelerator = board_model(board).accelerator
    library = quick_build(accelerator, "rtl")
    model = cache / "models" / model_key(accelerator, "rtl")
    model.mkdir(parents=True)
    shutil.copyfile(library, model / LIBRARY)
    if (paths.cache() / "board-env").is_dir():
        (cache / "board-env").symlink_to(paths.cache() / "board-env")
    return cache


@pytest.mark.parametrize(
    ("board", "isa", "macs_per_cycle", "workload", "knobs", "near"),
    [
        pytest.param("zcu102", IsaRevision.WIDE, 256, "resnet18.C2", (1, 7, 56, 1, 2, 1, 2), 1.13, id="zcu102"),
        pytest.param("pynq_batched", IsaRevision.A, 256, BATCH_OF_FOUR, (1, 7, 7, 1, 2, 2, 1), 1.20, id="pynq_batched"),
    ],
)
def test_a_good_schedule_is_right_near_the_bound_and_as_the_twin_says(
    shared_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, board: str, isa: IsaRevision,
    macs_per_cycle: int, workload: str, knobs: tuple[int, ...], near: float,
) -> None:  # fmt: skip
    monkeypatch.setenv("HILT_CACHE", str(quick_models(board, tmp_path / "cache")))
    problem = load_workload(workload)
    measurer = open_measurer(f"virtual:{board}")
    try:
        accelerator = measurer.description.accelerator
        assert (accelerator.isa, accelerator.macs_per_cycle) == (isa, macs_per_cycle)
        program = lower(problem, dict(zip(KNOBS, knobs, strict=True)), accelerator)
        tensors = make_tensors(problem, accelerator, seed=1)
        results: dict[int, Result] = {}
        measurer.measure([Request(0, "sets/0/0", program, tensors, limit_seconds=0.02)], results.__setitem__)
    finally:
        measurer.close()

    result = results[0]
    assert result.outcome is Outcome.OK, result.reason
    assert result.verification is not None
    outputs = problem.batch * problem.out_channels * problem.out_height * problem.out_width
    assert (result.verification.compared, result.verification.mismatched) == (outputs, 0)
    assert result.cycles is not None
    assert 1.0 < result.cycles / bound_cycles(problem, accelerator) < near
    assert result.microseconds == pytest.approx(result.cycles * 1e6 / accelerator.clock_hz)
    prediction = Twin(accelerator).predict([program], board_model(board).memory_model)[0]
    assert prediction["status"] == TwinStatus.DONE
    # A board is not at power-on when a trial begins, so not the very cycle.
    assert int(prediction["cycles"]) == pytest.approx(result.cycles, rel=1e-4)
