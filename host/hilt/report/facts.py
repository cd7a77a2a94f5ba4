"""What a report is about, read from the store: a run's or a whole campaign's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hilt.engine.campaign_results import CampaignResult, LayerResult
from hilt.engine.chronicle import read_chronicle
from hilt.engine.events import Event
from hilt.engine.files import RunFiles
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
    def improvements(self) -> list[tuple[int, float]]:
        """(number, microseconds) of each verified trial faster than all before."""
        found: list[tuple[int, float]] = []
        for trial in self.trials:
            latency = trial.microseconds if trial.verified else None
            if latency is not None and (not found or latency < found[-1][1]):
                found.append((trial.number, latency))
        return found


@dataclass(frozen=True)
class Facts:
    """`result` is a campaign's; None of a run by itself. `events`: what happened beside trials, oldest first."""

    runs: tuple[RunFacts, ...]
    events: Sequence[Event]
    result: CampaignResult | None = None
    slices: Sequence[Slice] = ()

    @property
    def trials(self) -> int:
        return sum(len(each.trials) for each in self.runs)

    @cached_property
    def total_curve(self) -> list[tuple[int, float]]:
        """(trials of all layers in the order in which they were recorded, microseconds of the network), from when every
        layer has a verified schedule."""
        weights = {each.run.uuid: each.layer.count for each in self.runs}
        every = [(trial.recorded_at, trial.number, each.run.uuid, trial) for each in self.runs for trial in each.trials]
        best: dict[str, float] = {}
        curve: list[tuple[int, float]] = []
        for place, (_, _, uuid, trial) in enumerate(sorted(every, key=lambda item: item[:3]), start=1):
            if trial.verified and trial.microseconds is not None:
                best[uuid] = min(best.get(uuid, trial.microseconds), trial.microseconds)
            if len(best) == len(weights):
                curve.append((place, sum(weights[each] * latency for each, latency in best.items())))
        return curve


def facts_of_run(store: Store, run: Run) -> Facts:
    """Raises StoreError."""
    result = LayerResult(Layer(run.workload, nodes=[run.workload], macs=run.macs), run)
    return Facts((_run_facts(store, run, result),), _events(store, run.uuid))


def facts_of_campaign(store: Store, result: CampaignResult) -> Facts:
    """Raises StoreError."""
    uuid = result.campaign.uuid
    runs = tuple(_run_facts(store, each.run, each) for each in result.layers if each.run is not None)
    events = _events(store, uuid) if result.campaign.budget is not None else []
    return Facts(runs, events, result, slices(store, uuid))


def _run_facts(store: Store, run: Run, result: LayerResult) -> RunFacts:
    trials = store.trials(run.uuid)
    outcomes = {trial.outcome for trial in trials} - {Outcome.OK}
    reasons = {outcome: store.reasons(run.uuid, outcome) for outcome in sorted(outcomes)}
    drift = largest_drift(store.remeasurements(run.uuid))
    return RunFacts(run, trials, store.best(run.uuid), reasons, drift, result)


def _events(store: Store, uuid: str) -> list[Event]:
    home: Path = store.path.parent
    return read_chronicle(RunFiles(home, uuid).chronicle_path)
