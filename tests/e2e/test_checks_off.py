"""`--checks off`: a program that no buffer can hold goes to the board, and the board reports it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from hilt.measure import describe_board
from hilt.schedule import Reason, load_workload, lower, make_tensors, space_for
from hilt.schedule.validity_summary import summarize_validity
from hilt.simulator.build import build
from hilt.simulator.program_run import run_program
from hilt.store import Store, database_path
from hilt.trial import Outcome
from tests.e2e.test_first_light import hilt

WORKLOAD = "conv2d:n=1,ci=64,h=56,w=56,co=64,k=1x1"
TRIALS = 12


def test_the_board_finds_out(hilt_home: Path) -> None:
    """Each trial ends as its program does on the golden model."""
    options = ("--board", "virtual:pynq", "--tuner", "random", "--seed", "6", "--trials", str(TRIALS))
    said = json.loads(hilt("tune", WORKLOAD, *options, "--checks", "off", "--json").stdout)
    with Store(database_path(hilt_home)) as store:
        run, trials = store.run(said["run"]), store.trials(said["run"])
    assert (run.checks, run.space_kind, run.orders) == ("off", "autotvm", 4)

    workload, accelerator = load_workload(WORKLOAD), describe_board("virtual:pynq").accelerator
    space = space_for(workload, accelerator, orders=4)
    assert run.space_size == len(space)
    tensors, golden = make_tensors(workload, accelerator, seed=1), build(accelerator, "golden", "fast")
    for trial in trials:
        seen = run_program(golden, lower(workload, trial.knobs, accelerator, "off"), tensors.inputs)
        right = bool(np.array_equal(seen.output, tensors.expected.ravel()))
        words = f"configuration {trial.index}: {seen.execution.fault}; the board: {trial.reason}"
        if seen.execution.fault is not None:
            assert trial.outcome is Outcome.CRASH and trial.reason.endswith("is past its buffer"), words
        else:
            assert trial.verified is right, words

    verdicts = summarize_validity(workload, accelerator, space, "compiler").verdicts
    refused = [trial for trial in trials if verdicts[trial.index] != Reason.OK]
    failed = [trial for trial in refused if trial.outcome is not Outcome.OK]
    assert len(failed) >= 3 and len(refused) <= TRIALS - 3, "the seed should give some of both"
