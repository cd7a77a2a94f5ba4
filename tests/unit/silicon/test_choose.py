"""The choice of a schedule by a machine model."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from hilt.cli.silicon import application
from hilt.run_choices import SpaceName
from hilt.schedule import load_workload, lower_many, space_for, verdicts
from hilt.silicon import choose as choosing
from hilt.silicon.choose import choose
from hilt.silicon.measured import event_machine, public_accelerator
from hilt.silicon.packed_task import TaskError
from hilt.simulator.builds import NEWER, OLDER, shipped_builds
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
