"""`hilt silicon fit RUN`: a bitstream's machine from hilt's own records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hilt.cli.silicon import application
from hilt.cli.work import CommandWork
from hilt.engine.errors import MixedBitstreamsError
from hilt.engine.machine_records import MachineRecords
from hilt.engine.run_spec import RunSpec, RunTask, make_run
from hilt.measure import describe_board
from hilt.silicon.calibrate import TooFewMeasurementsError
from hilt.silicon.kept_machines import kept_fit
from hilt.simulator.builds import OLDER, shipped_builds
from hilt.simulator.device import MemoryModel
from hilt.simulator.machine import MachineTwin
from hilt.store import Run, Store, database_path
from hilt.trial import Outcome, Trial, Verification

BOARD = "virtual:pynq_public"
WORKLOAD = "conv2d:n=1,ci=32,h=14,w=14,co=32,k=3x3,s=1x1,p=1x1"


def recorded(home: Path, count: int) -> Run:
    """Store a run whose latencies are those of the older build, and return it."""
    board = describe_board(BOARD)
    run = make_run(RunSpec(workload=WORKLOAD, board=BOARD, tuner="random", trials=count, orders=1), board)
    task = RunTask(run, board)
    twin = MachineTwin(board.accelerator, shipped_builds().machines[OLDER])
    compiling = task.problem.compiles.nonzero()[0][:: max(1, int(task.problem.compiles.sum()) // count)][:count]
    cycles = twin.predict([task.lower(int(index)) for index in compiling], MemoryModel())["cycles"]
    trials = [
        Trial(
            ordinal=ordinal,
            index=int(index),
            knobs=dict(task.knobs(int(index))),
            outcome=Outcome.OK,
            microseconds=float(at) / 100,
            repeats=(float(at) / 100,),
            verification=Verification(run.output_elements, 0),
            output_elements=run.output_elements,
            board=BOARD,
            recorded_at=0.0,
        )
        for ordinal, (index, at) in enumerate(zip(compiling, cycles, strict=True))
    ]
    with Store(database_path(home)) as store:
        store.create_recorded([(run, trials)])
    return run


@pytest.mark.slow
def test_a_run_gives_its_bitstream_a_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    run = recorded(tmp_path, 8)
    begun: list[str] = []
    monkeypatch.setattr(CommandWork, "begin", lambda work, phase: begun.append(phase))
    answer = CliRunner().invoke(application, ["fit", run.uuid, "--json"])
    assert answer.exit_code == 0, answer.output
    assert begun and set(begun) == {f"fitting 8 measurements of bitstream {run.bitstream[:16]}"}
    values = json.loads(answer.stdout)
    assert values["measurements"] == 8 and values["fitted_error"] < 0.01
    fitted = kept_fit(run.bitstream)
    assert fitted is not None and fitted.start == OLDER


def test_too_few_records_and_hilts_own_rtl_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    run = recorded(tmp_path, 3)
    answer = CliRunner().invoke(application, ["fit", run.uuid])
    assert isinstance(answer.exception, TooFewMeasurementsError) and "needs 5" in str(answer.exception)
    assert kept_fit(run.bitstream) is None
    with pytest.raises(MixedBitstreamsError, match="to the cycle"):
        MachineRecords.of_board("virtual:pynq")
