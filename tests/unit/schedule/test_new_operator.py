"""A new operator is one file (average_pool.py) and one line: it is tuned, stored and verified like a convolution."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hilt import tune
from hilt.engine.run_spec import RunSpec, make_run, resolve_run
from hilt.schedule import (
    Rejected,
    WorkloadError,
    convolution,
    load_workload,
    lower,
    make_tensors,
    operator,
    space_for,
    workload_of,
)
from hilt.schedule.workload_syntax import format_workload, name_of
from hilt.simulator.build import build
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program
from hilt.store import Store
from hilt.trial import Outcome
from hilt.tune import Feedback
from tests.unit.engine.table import description
from tests.unit.schedule.cases import PYNQ

TEXT = "average_pool:ci=64,h=16,w=20"


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(operator._PLACES, "average_pool", "tests.unit.schedule.average_pool:AVERAGE_POOL")
    operator.operator_named.cache_clear()
    yield
    operator.operator_named.cache_clear()


@pytest.mark.rtl
def test_every_program_computes_it_on_the_golden_model() -> None:
    workload = load_workload(TEXT)
    space = space_for(workload, PYNQ)
    tensors = make_tensors(workload, PYNQ, seed=3)
    for index in range(len(space)):
        program = lower(workload, space.knobs_at(index), PYNQ)
        run = run_program(build(PYNQ, "golden"), program, tensors.inputs)
        assert run.execution.status is DeviceStatus.DONE
        assert np.array_equal(run.output, tensors.expected.ravel())


def test_a_run_of_it_is_made_stored_and_searched(tmp_path: Path) -> None:
    board = description()
    run = make_run(RunSpec(workload=TEXT, board=board.name, tuner="random", trials=4), board)
    assert run.output_elements == 64 * 8 * 10
    with Store(tmp_path / "hilt.sqlite") as store:
        store.create_run(run)
        stored = store.run(run.uuid)
    task = resolve_run(stored, board)
    assert task.workload == workload_of(run.workload_spec) == load_workload(TEXT)
    tuner = tune.make_tuner("random", task.problem, seed=1)
    asked = tuner.ask(3)
    assert len(set(asked)) == 3
    for ordinal, (index, program) in enumerate(zip(asked, task.lower_many(asked), strict=True)):
        assert not isinstance(program, Rejected)
        assert task.request(ordinal, "run/0/0", program).index == index
    tuner.tell([Feedback(index, Outcome.OK, 1.0) for index in asked])


def test_checks_and_texts_are_its_own() -> None:
    workload = load_workload("average_pool:ci=16,h=4096,w=512")
    space = space_for(workload, PYNQ)
    with pytest.raises(Rejected, match="acc_overflow: needs 2621440 accumulator elements"):
        lower(workload, space.knobs_at(len(space) - 1), PYNQ)
    assert format_workload(load_workload(TEXT)) == name_of(load_workload(TEXT)) == TEXT
    with pytest.raises(WorkloadError, match="needs ci, h and w"):
        load_workload("average_pool:ci=16")
    with pytest.raises(WorkloadError, match="this needs a conv2d, not a average_pool"):
        convolution(workload)
    with pytest.raises(WorkloadError, match="operator 'max_pool' is not one of hilt's: conv2d.*, average_pool"):
        workload_of({"operator": "max_pool"})
