"""The facts of a report, read from the store: a run's or a whole campaign's."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hilt.engine.campaign_results import FALLBACK_ATTEMPTS, CampaignResult, LayerResult
from hilt.engine.event_log import read_event_log
from hilt.engine.events import Event
from hilt.engine.run_files import RunFiles
from hilt.measure import DATASET_PREFIX
from hilt.report.campaign_inference import CampaignInference, load_inference
from hilt.schedule.onnx_model import Layer
from hilt.store import Run, Slice, Store, Trial, largest_drift
from hilt.store.campaigns import slices
from hilt.trial import Outcome

FAULTS = (Outcome.TIMEOUT, Outcome.CRASH, Outcome.BUS_ERROR)


@dataclass(frozen=True)
class RunFacts:
    """A run with all that the store has of it; `layer` where it is a network's."""

    run: Run
    trials: Sequence[Trial]
    best: Trial | None
    reasons: dict[Outcome, dict[str, int]]
    drift: float
    result: LayerResult

    @property
    def name(self) -> str:
        return self.run.workload

    @property
    def title(self) -> str:
        """The layer's short name."""
        return self.layer.name

    @property
    def layer(self) -> Layer:
        return self.result.layer

    @property
    def fallback(self) -> Trial | None:
        return self.result.fallback

    @cached_property
    def counts(self) -> Counter[Outcome]:
        return Counter(trial.outcome for trial in self.trials)

    @property
    def valid(self) -> int:
        return sum(trial.verified for trial in self.trials)

    @cached_property
    def recorded(self) -> bool:
        """Whether a dataset answered, so that nothing is verified."""
        return self.run.board.startswith(DATASET_PREFIX)

    @cached_property
    def counting(self) -> list[Trial]:
        """The trials whose latency counts: verified ones, or a dataset's recorded answers."""
        return [
            trial
            for trial in self.trials
            if trial.microseconds and (trial.verified or (self.recorded and trial.outcome is Outcome.OK))
        ]

    @cached_property
    def best_so_far(self) -> list[Trial]:
        """Each counting trial that was faster than all before it."""
        best: list[Trial] = []
        for trial in self.counting:
            if not best or (trial.microseconds or 0.0) < (best[-1].microseconds or 0.0):
                best.append(trial)
        return best

    @cached_property
    def failed(self) -> list[Trial]:
        """The trials without a right answer."""
        return [trial for trial in self.trials if trial.outcome is not Outcome.OK]


@dataclass(frozen=True)
class Facts:
    """The runs of a report.

    `result` is a campaign's; None for a run by itself. `events`: everything beside trials, oldest first.
    """

    runs: tuple[RunFacts, ...]
    events: Sequence[Event]
    result: CampaignResult | None = None
    slices: Sequence[Slice] = ()
    inference: CampaignInference | None = None
    """The network's inference before and after tuning; None if there was none."""

    @property
    def trials(self) -> int:
        return sum(len(run.trials) for run in self.runs)

    @cached_property
    def total_curve(self) -> list[tuple[int, float]]:
        """Return the latency of the network over the trials of all layers.

        Each point is (trials in the order in which they were asked for, microseconds of the network), from the
        first moment when every layer has a verified schedule.
        """
        weights = {run.name: run.layer.count for run in self.runs}
        best: dict[str, float] = {}
        curve: list[tuple[int, float]] = []
        for place, (name, trial) in enumerate(self._in_order(), start=1):
            if trial.verified and trial.microseconds is not None:
                best[name] = min(best.get(name, trial.microseconds), trial.microseconds)
            if len(best) == len(weights):
                curve.append((place, sum(weights[name] * latency for name, latency in best.items())))
        return curve

    def _in_order(self) -> Iterator[tuple[str, Trial]]:
        """(layer, trial) of all: the fallbacks of every layer, then slice by slice.

        If there are no slices, layer after layer. By the wall clock they would not be in order once it was set back.
        """
        left = {run.name: deque(run.trials) for run in self.runs}
        given = {run.name: _searched(run.trials) if self.slices else len(run.trials) for run in self.runs}
        for name in given:
            yield from _first(left, name, given[name])
        for turn in self.slices:
            if turn.workload in given:
                given[turn.workload] += turn.trials
                yield from _first(left, turn.workload, given[turn.workload])
        for name in left:
            yield from _first(left, name, None)


def _first(left: dict[str, deque[Trial]], name: str, end: int | None) -> Iterator[tuple[str, Trial]]:
    """Yield the trials of this layer whose numbers are below `end`, or all."""
    while left[name] and (end is None or left[name][0].ordinal < end):
        yield name, left[name].popleft()


def _searched(trials: Sequence[Trial]) -> int:
    """Return the number of trials in which the fallback was searched."""
    right = (trial.ordinal + 1 for trial in trials if trial.outcome is Outcome.OK)
    return min(next(right, FALLBACK_ATTEMPTS), FALLBACK_ATTEMPTS)


def facts_of_run(store: Store, run: Run) -> Facts:
    """Return the facts of a run. Raises StoreError."""
    result = LayerResult(Layer(run.workload, nodes=[run.workload], macs=run.macs), run)
    return Facts((_run_facts(store, run, result),), _events(store, run.uuid))


def campaign_curve(store: Store, result: CampaignResult) -> list[tuple[int, float]]:
    """Return the latency of the network over the trials of all layers: Facts.total_curve. Raises StoreError."""
    runs = tuple(
        RunFacts(layer.run, store.trials(layer.run.uuid), None, {}, 0.0, layer)
        for layer in result.layers
        if layer.run is not None
    )
    return Facts(runs, (), result, slices(store, result.campaign.uuid)).total_curve if len(runs) else []


def facts_of_campaign(store: Store, result: CampaignResult) -> Facts:
    """Return the facts of a campaign. Raises StoreError."""
    uuid = result.campaign.uuid
    runs = tuple(_run_facts(store, layer.run, layer) for layer in result.layers if layer.run is not None)
    # Campaigns of schema 7 and older without a budget had an engine for each layer.
    engines = [uuid] if result.campaign.fallback_first else [uuid, *(run.run.uuid for run in runs)]
    events = [event for engine in engines for event in _events(store, engine)]
    return Facts(runs, events, result, slices(store, uuid), load_inference(store, uuid))


def _run_facts(store: Store, run: Run, result: LayerResult) -> RunFacts:
    trials = store.trials(run.uuid)
    outcomes = {trial.outcome for trial in trials} - {Outcome.OK}
    reasons = {outcome: store.reasons(run.uuid, outcome) for outcome in sorted(outcomes)}
    drift = largest_drift(store.remeasurements(run.uuid))
    return RunFacts(run, trials, store.best(run.uuid), reasons, drift, result)


def _events(store: Store, uuid: str) -> list[Event]:
    home: Path = store.path.parent
    return read_event_log(RunFiles(home, uuid).event_log_path)
