"""One layer of a running campaign: its predicted latency, its tuning loop, and its status."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from hilt import tune
from hilt.campaign.allocation import LayerStatus
from hilt.campaign.campaign_control import CampaignControl
from hilt.campaign.fallback import FallbackFirst, fallback_candidates
from hilt.engine.events import Event, TrialRecorded, TunerUpdated
from hilt.engine.job import Publish
from hilt.engine.loop import TrialBatch, TuningLoop
from hilt.engine.run_spec import RunTask
from hilt.engine.tuner_calls import TunerCalls
from hilt.measure import Measurer
from hilt.schedule.onnx_model import Layer
from hilt.simulator.compilation import BuildError
from hilt.simulator.device import SimulatorError
from hilt.simulator.toolchain import MissingToolError
from hilt.store import Run, RunState, Store
from hilt.store.campaigns import set_prediction
from hilt.tune import TuningProblem
from hilt.tune.model_guided.memories import memory_at, prior_mean


def predicted_microseconds(problem: TuningProblem, candidates: Sequence[int], clock_hz: int) -> float | None:
    """Return the latency of the first candidate that ends, by the twin with an assumed memory.

    Args:
        problem: The layer on its accelerator.
        candidates: Indices of the fallback's candidates, in their order.
        clock_hz: The board's clock.

    Returns:
        Microseconds of one instance, or None where the twin cannot be built or no candidate ends.
    """
    memory = memory_at(prior_mean(problem.accelerator), problem.accelerator)
    with suppress(BuildError, MissingToolError, SimulatorError):
        for index in candidates:
            cycles = float(problem.predicted_cycles(np.array([index]), [memory])[0, 0])
            if np.isfinite(cycles):
                return cycles / clock_hz * 1e6
    return None


class LayerSearch:
    """The search of one layer, which gets batches of trials from the campaign. `publish` gets the events of its run."""

    def __init__(
        self,
        layer: Layer,
        run: Run,
        task: RunTask,
        measurer: Measurer,
        store: Store,
        control: CampaignControl,
        publish: Publish,
        *,
        fallback_first: bool = True,
    ) -> None:
        self.layer = layer
        self.run = run
        self.exhausted = False
        """Its tuner has nothing left that it takes to be worth a trial."""
        self._publish = publish
        self._store = store
        self._control = control
        self._confidence = 0.0
        recorded = store.trials(run.uuid)
        self._recorded = len(recorded)
        """Trials of earlier sessions."""
        self._latencies = {trial.ordinal: trial.microseconds for trial in recorded if trial.verified}
        self._bests: list[float | None] = []
        self._ended = run.state is RunState.FINISHED
        tuner = TunerCalls(control).run(lambda: tune.make_tuner(run.tuner, task.problem, run.seed, **run.tuner_options))
        candidates = fallback_candidates(task.problem)
        self._predict(task.problem, candidates)
        self._tuner = FallbackFirst(tuner, candidates if fallback_first else [])
        self._loop = TuningLoop(run, self._tuner, task, measurer, store, control, self._hear)
        self._publish(self._loop.progress)  # trials of earlier sessions count from the start

    def _predict(self, problem: tune.TuningProblem, candidates: Sequence[int]) -> None:
        if self.run.predicted_microseconds is not None or self._latencies:
            return
        predicted = predicted_microseconds(problem, candidates, self.run.clock_hz)
        if predicted is not None:
            set_prediction(self._store, self.run.uuid, predicted)

    @property
    def workload(self) -> str:
        return self.layer.workload

    @property
    def asked(self) -> int:
        """Trials so far, those on the board included."""
        return self._loop.asked

    @property
    def searches_fallback(self) -> bool:
        """True while the fallback is searched.

        A skipped layer searches as far as its record goes: the slices before the skip are asked for again and must
        find its tuner in the same state.
        """
        return self._tuner.searching and (not self.skipped or self.asked < self._recorded)

    @property
    def skipped(self) -> bool:
        """It was, in this session or another."""
        return self._ended or self.workload in self._control.skipped

    @property
    def standing(self) -> LayerStatus | None:
        """The layer's state for the allocation; None where it gets no more trials."""
        if self.exhausted or self.skipped:
            return None
        return LayerStatus(self.layer.count, self.asked, self._bests, self.run.bound_microseconds, self._confidence)

    def ask(self, count: int) -> TrialBatch:
        """Ask the tuner, see hilt.engine.loop.TuningLoop."""
        batch = self._loop.ask(count)
        self.exhausted = not batch.indices
        return batch

    def measure(self, batch: TrialBatch) -> None:
        """Measure a batch, see hilt.engine.loop.TuningLoop."""
        self._loop.measure(batch)

    def tell(self, batch: TrialBatch) -> None:
        """Tell the tuner, see hilt.engine.loop.TuningLoop."""
        for ordinal, _ in batch.trials():
            found = [
                latency
                for latency in (self._bests[-1] if self._bests else None, self._latencies.get(ordinal))
                if latency
            ]
            self._bests.append(min(found, default=None))
        self._loop.tell(batch)
        self.exhausted = False  # an empty answer given while this batch was untold is not final

    def confirm(self) -> bool:
        """Confirm the best, see hilt.engine.loop.TuningLoop."""
        return self._loop.confirm()

    def _hear(self, event: Event) -> None:
        if isinstance(event, TrialRecorded) and event.trial.verified:
            self._latencies[event.trial.ordinal] = event.trial.microseconds
        elif isinstance(event, TunerUpdated) and event.confidence is not None:
            self._confidence = event.confidence
        self._publish(event)
