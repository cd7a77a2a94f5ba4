"""The choice of a schedule by a machine model."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from hilt.cli.silicon import application
from hilt.run_choices import SpaceName
from hilt.schedule import load_workload, lower_many, space_for, verdicts
from hilt.silicon import choose as choosing
from hilt.silicon.choose import Choice, choose, workload_of
from hilt.silicon.measured import event_machine, public_accelerator
from hilt.silicon.packed_task import CONV2D, TaskError, packed_task
from hilt.simulator.builds import NEWER, OLDER, shipped_builds
from hilt.simulator.machine import MachineStatus
from hilt.vta.parameters import load_parameters
from hilt.vta.program import Program

PYNQ = public_accelerator(load_parameters("pynq"))
SMALL = "conv2d:n=1,ci=32,h=8,w=8,co=32,k=3x3,s=1x1,p=1x1"


@pytest.mark.slow
def test_the_choice_is_faster_than_tvms_published_one() -> None:
    """C10: TVM's best took 1,080.9 us on a board, with some 100 us of runtime."""
    choice = choose(load_workload("resnet18.C10"), PYNQ, shipped_builds().machines[NEWER])
    assert 251e2 < choice.cycles < 500e2


@pytest.mark.slow
@pytest.mark.parametrize("build", [NEWER, OLDER])
def test_the_choice_is_the_best_of_all_row_programs(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ends before most of them; the model is asked about all of them here."""
    layer, machine = load_workload(SMALL), shipped_builds().machines[build]
    monkeypatch.setattr(choosing, "_careful_cycles", lambda: 0.0)
    monkeypatch.setattr(choosing, "_space_candidates", lambda workload, accelerator: iter(()))
    monkeypatch.setattr(choosing, "_TOGETHER", 4)
    space = space_for(layer, PYNQ, kind=SpaceName.ROWS)
    every = space.columns(range(len(space)))
    good = verdicts(layer, PYNQ, every).nonzero()[0]
    programs = [each for each in lower_many(layer, every, PYNQ) if isinstance(each, Program)]
    assert len(programs) == len(space) - len(good) > 100
    best = event_machine(PYNQ.parameters).predict(programs, machine)["cycles"].min()
    assert choose(layer, PYNQ, machine).cycles == best


def test_choose_refuses_a_machine_that_is_not() -> None:
    printed = CliRunner().invoke(application, ["choose", "--machine", "abacus", "--json"])
    assert isinstance(printed.exception, TaskError) and "abacus" in str(printed.exception)
    assert "layers" not in json.dumps(printed.stdout)


class Timed:
    """A model by which a program, a pair of its cycles and status, takes these; it keeps its requests."""

    def __init__(self) -> None:
        self.asked: list[list[Any]] = []

    def predict(self, programs: list[Any], machine: Any) -> dict[str, NDArray[Any]]:
        self.asked.append(programs)
        cycles, status = zip(*programs, strict=True)
        return {"cycles": np.array(cycles), "status": np.array(status)}


DONE, NEVER = MachineStatus.DONE, MachineStatus.NEVER


def fastest(candidates: list[tuple[float, float, MachineStatus]], best: Choice | None = None) -> tuple[Any, list[int]]:
    """Return the choice among (least cycles, cycles, status), and how many programs each question was of."""
    model = Timed()
    made: list[Any] = [
        choosing._Candidate(floor, str(place), (cycles, status))  # type: ignore[arg-type]
        for place, (floor, cycles, status) in enumerate(candidates)
    ]
    found = choosing._fastest(iter(made), model, None, best)  # type: ignore[arg-type]
    return found, [len(programs) for programs in model.asked]


@pytest.mark.parametrize(
    ("candidates", "chosen", "asked"),
    [
        ([], None, []),
        ([(0, 9, NEVER)], None, [1]),
        ([(0, 9, DONE), (1, 5, DONE), (2, 5, DONE)], "1", [2, 1]),
        ([(0, 9, DONE), (1, 3, NEVER), (2, 8, DONE)], "2", [2, 1]),
        ([(0, 9, DONE), (1, 8, DONE), (8, 1, DONE), (9, 1, DONE)], "1", [2]),  # none behind it can be faster
        ([(0, 9, DONE), (1, 8, DONE), (7, 9, DONE), (7, 7.5, DONE), (7.5, 1, DONE)], "3", [2, 2]),
        ([(0, 9, DONE), (1, 8, DONE), (7, 8, DONE)], "1", [2, 1]),
    ],
)
def test_the_search_asks_in_batches_and_ends_where_none_can_be_faster(
    candidates: list[tuple[float, float, MachineStatus]],
    chosen: str | None,
    asked: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choosing, "_TOGETHER", 2)
    found, questions = fastest(candidates)
    assert (None if found is None else found.schedule) == chosen
    assert questions == asked
    if found is not None:
        assert (found.cycles, DONE) == found.program == candidates[int(found.schedule)][1:]


def test_an_earlier_choice_stays_unless_one_is_faster() -> None:
    best = Choice("before", (5.0, DONE), 5.0)  # type: ignore[arg-type]
    assert fastest([(0, 5, DONE)], best) == (best, [1])
    assert fastest([(5, 1, DONE)], best) == (best, [])
    assert fastest([(0, 4.5, DONE)], best)[0].schedule == "0"


def test_an_instruction_costs_half_of_the_runtimes_seconds_more() -> None:
    runtime = shipped_builds().runtime
    assert choosing._careful_cycles() == pytest.approx(runtime.instruction_seconds * 50e6)


def test_the_cycles_of_a_choice_are_the_models_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search counts instructions as dearer; the stated cycles do not."""
    machine = shipped_builds().machines[NEWER]
    asked = []

    def predict(self: Any, programs: Any, of: Any) -> dict[str, NDArray[Any]]:
        asked.append(of.instruction)
        return {"cycles": np.full(len(programs), of.instruction), "status": np.zeros(len(programs))}

    monkeypatch.setattr(choosing, "event_machine", lambda parameters: type("Model", (), {"predict": predict})())
    candidate = choosing._Candidate(0.0, "rows", None)  # type: ignore[arg-type]
    monkeypatch.setattr(choosing, "_row_candidates", lambda *_: iter([candidate]))
    monkeypatch.setattr(choosing, "_space_candidates", lambda *_: iter(()))
    choice = choose(load_workload(SMALL), PYNQ, machine)
    assert choice.cycles == machine.instruction
    assert asked == [machine.instruction + choosing._careful_cycles(), machine.instruction]
    monkeypatch.setattr(choosing, "_row_candidates", lambda *_: iter(()))
    with pytest.raises(TaskError, match="workload conv2d:.* no schedule of hilt's fits 1x16"):
        choose(load_workload(SMALL), PYNQ, machine)


def test_a_packed_convolution_is_the_layer_of_its_blocks() -> None:
    task = packed_task(CONV2D, (2, 4, 14, 12, 1, 16), (8, 4, 3, 5, 16, 16), (1, 2), (1, 2))
    layer = workload_of(task)
    assert (layer.batch, layer.in_channels, layer.out_channels) == (2, 64, 128)
    assert (layer.height, layer.width, layer.kernel, layer.stride, layer.padding) == (14, 12, (3, 5), (1, 2), (1, 2))
