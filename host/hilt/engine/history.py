"""Makes a tuner's history (hilt.tune.history) from the recorded runs of other workloads."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hilt.schedule.operator import workload_of
from hilt.store import Run, Store, Trial
from hilt.tune.history import History, WorkloadHistory
from hilt.vta.accelerator import Accelerator, IsaRevision, VTAParameters


def history_of(store: Store, runs: Iterable[Run]) -> History:
    """Return every trial of these runs, in their order; a run without any is left out."""
    parts = (_part(run, store.trials(run.uuid)) for run in runs)
    return History(tuple(part for part in parts if len(part)))


def _part(run: Run, trials: list[Trial]) -> WorkloadHistory:
    names = trials[0].knobs if trials else ()
    rates = [run.macs / trial.microseconds if trial.microseconds else 0.0 for trial in trials]
    parameters = VTAParameters.from_name(run.parameters)
    accelerator = Accelerator.for_parameters(parameters, IsaRevision(run.isa), clock_hz=run.clock_hz)
    columns = {name: np.array([trial.knobs[name] for trial in trials], dtype=np.int64) for name in names}
    return WorkloadHistory(workload_of(run.workload_spec), accelerator, columns, np.array(rates))
