"""Measurements of one bitstream, from runs, campaigns and AutoTVM's logs, for `hilt silicon fit`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hilt import measure
from hilt.engine.errors import MixedBitstreamsError
from hilt.engine.run_spec import RunTask
from hilt.schedule.checks import Rejected
from hilt.schedule.workload_syntax import format_workload
from hilt.silicon.calibrate import Measurement
from hilt.store import Run, Store, UnknownRunError
from hilt.store.autotvm_exchange import import_records, read_tvm_log
from hilt.trial import Outcome, Trial
from hilt.vta.accelerator import Accelerator

if TYPE_CHECKING:
    from hilt.engine.process import Boards


@dataclass
class MachineRecords:
    """Measurements of one bitstream.

    Attributes:
        board: A board that has the bitstream.
        bitstream: Its hash, or its name where the hash is not known.
        accelerator: Its geometry, instruction set and stated clock.
        measurements: Programs with their seconds.
        left_out: Why measurements do not count, and how many.
    """

    board: str
    bitstream: str
    accelerator: Accelerator
    measurements: list[Measurement] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of_board(cls, board: str, boards: Boards = measure) -> MachineRecords:
        """Return no measurements yet, of a board's bitstream.

        Raises:
            MixedBitstreamsError: The board has hilt's own RTL.
            Exception: The errors of hilt.measure.describe_board.
        """
        described = boards.describe_board(board)
        if described.accelerator.hazards != "none":
            raise MixedBitstreamsError(
                f"{board} runs hilt's own RTL, which the timing model predicts to the cycle: nothing to fit. "
                "Runs calibrate its memory by themselves"
            )
        return cls(board, described.bitstream, described.accelerator)

    def add_run(self, store: Store, run: Run, boards: Boards = measure) -> None:
        """Add the verified trials of a run. Raises MixedBitstreamsError for a run on another bitstream."""
        if run.bitstream != self.bitstream:
            raise MixedBitstreamsError(
                f"run {run.uuid[:8]} is of bitstream {run.bitstream[:16]}, the others of {self.bitstream[:16]}; "
                "fit each bitstream by itself"
            )
        task = RunTask(run, boards.describe_board(self.board))
        trials = [trial for trial in store.trials(run.uuid) if trial.outcome is Outcome.OK and trial.verified]
        self._add(format_workload(task.workload), task, trials)

    def add_log(self, path: Path) -> None:
        """Add the measurements of an AutoTVM log. Raises LogFormatError, OSError, and as add_run."""
        log = read_tvm_log(path)
        for why, count in log.left_out.items():
            self._leave_out(why, count)
        for imported in import_records(log.records, path, time.time()):
            run = imported.run
            if run.parameters != self.accelerator.parameters.name:
                self._leave_out(f"they are of {run.parameters}", len(imported.trials))
                continue
            trials = [trial for trial in imported.trials if trial.outcome is Outcome.OK]
            self._add(run.workload, RunTask(run, measure.describe_board(self.board)), trials)

    def _add(self, workload: str, task: RunTask, trials: Sequence[Trial]) -> None:
        lowered = task.lower_many([trial.index for trial in trials])
        for trial, program in zip(trials, lowered, strict=True):
            if isinstance(program, Rejected) or trial.microseconds is None:
                self._leave_out("hilt compiles them otherwise now", 1)
                continue
            self.measurements.append(Measurement(workload, program, trial.microseconds * 1e-6))

    def _leave_out(self, why: str, count: int) -> None:
        self.left_out[why] = self.left_out.get(why, 0) + count


def runs_of(store: Store, identifier: str) -> list[Run]:
    """Return the run of this identifier, or the runs of the campaign's layers. Raises UnknownRunError."""
    campaign = store.campaign(identifier)
    if campaign is not None:
        return store.runs_of(campaign.uuid)
    try:
        return [store.run(identifier)]
    except UnknownRunError as error:
        raise UnknownRunError(f"{error}; no file is called {identifier!r} either") from None
