"""The results of a campaign so far: each layer's best schedule and fallback, and the network's latency."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from hilt.schedule.onnx_model import Layer, Network
from hilt.store import Campaign, Confirmed, Run, Store, Trial, with_noise
from hilt.trial import Outcome

FALLBACK_ATTEMPTS = 8
"""Configurations that are tried, in the order of their indices, to find the fallback schedule."""


def fallback_of(trials: Iterable[Trial]) -> Trial | None:
    """Return the fallback schedule of a run that began with its search, None if there is none yet.

    It is among the first FALLBACK_ATTEMPTS trials: the first configurations by index that compile, until one is right.
    """
    for trial in trials:
        if trial.outcome is Outcome.OK or trial.ordinal + 1 >= FALLBACK_ATTEMPTS:
            return trial if trial.verified else None
    return None


class Source(StrEnum):
    """The origin of a layer's latency in an estimate."""

    MEASURED = "measured"
    """The best verified trial."""
    TWIN = "twin"
    """The cycle model's prediction of the fallback schedule."""
    BOUND = "bound"
    """The roofline bound: the layer takes at least that long."""


@dataclass(frozen=True)
class Estimate:
    """A network's latency with the schedules known now: measured where it can be, predicted elsewhere.

    A layer without a verified trial has the fallback schedule until then.

    Microseconds and layers by source; the layers are different ones, the microseconds are of all their instances.
    """

    microseconds_by: Mapping[Source, float]
    layers_by: Mapping[Source, int]

    @property
    def microseconds(self) -> float:
        """The sum over all layers."""
        return sum(self.microseconds_by.values())

    @property
    def predicted_microseconds(self) -> float:
        """The part that no trial has measured."""
        return self.microseconds - self.microseconds_by.get(Source.MEASURED, 0.0)

    @property
    def layers(self) -> int:
        """Layers in the sum."""
        return sum(self.layers_by.values())

    @property
    def complete(self) -> bool:
        """True where every layer is measured."""
        return self.layers_by.get(Source.MEASURED, 0) == self.layers


@dataclass(frozen=True)
class LayerResult:
    """A layer, its run (None: not begun) and its results; latencies are of one of its `layer.count` instances."""

    layer: Layer
    run: Run | None
    trials: int = 0
    valid: int = 0
    best: Trial | None = None
    fallback: Trial | None = None
    confirmed: Confirmed | None = None
    """The repeated measurements of the best."""
    confidence: float | None = None
    """Probability that the best is within 1 % of all; None from a tuner that states none."""

    @property
    def microseconds(self) -> float | None:
        """The latency of all instances together with the best schedule."""
        return _all(self.layer, self.best)

    @property
    def estimate(self) -> tuple[Source, float] | None:
        """The latency of all instances together: measured, else the twin's, else the bound; None without a run."""
        if self.microseconds is not None:
            return Source.MEASURED, self.microseconds
        if self.run is None:
            return None
        if self.run.predicted_microseconds is not None:
            return Source.TWIN, self.layer.count * self.run.predicted_microseconds
        return Source.BOUND, self.layer.count * self.run.bound_microseconds

    @property
    def fallback_microseconds(self) -> float | None:
        """The latency of all instances together with the fallback schedule."""
        return _all(self.layer, self.fallback)

    @property
    def gain(self) -> float | None:
        """The fallback's latency over the best one."""
        if not self.microseconds or not self.fallback_microseconds:
            return None
        return self.fallback_microseconds / self.microseconds


@dataclass(frozen=True)
class CampaignResult:
    """`layers` are those that VTA can run, in the order of the model."""

    campaign: Campaign
    network: Network
    layers: tuple[LayerResult, ...]

    @cached_property
    def compared(self) -> tuple[LayerResult, ...]:
        """Layers with a verified best and a verified fallback: only over these a gain is stated."""
        return tuple(layer for layer in self.layers if layer.gain is not None)

    @property
    def unsolved(self) -> tuple[LayerResult, ...]:
        """Layers for which nothing verified was found."""
        return tuple(layer for layer in self.layers if layer.microseconds is None)

    @property
    def estimate(self) -> Estimate:
        """The network's latency over all layers; a layer without a run is left out."""
        microseconds: dict[Source, float] = {}
        layers: Counter[Source] = Counter()
        for result in self.layers:
            if result.estimate is not None:
                source, value = result.estimate
                microseconds[source] = microseconds.get(source, 0.0) + value
                layers[source] += 1
        return Estimate(microseconds, dict(layers))

    @property
    def microseconds(self) -> float:
        """The measured part: all layers that have a verified best. The network's latency is `estimate`."""
        return sum(layer.microseconds or 0.0 for layer in self.layers)

    @property
    def fallback_microseconds(self) -> float:
        """The sum over the layers that are compared."""
        return sum(layer.fallback_microseconds or 0.0 for layer in self.compared)

    @property
    def gain(self) -> float | None:
        """The fallback's latency over the best one, over the layers that are compared."""
        tuned = sum(layer.microseconds or 0.0 for layer in self.compared)
        return self.fallback_microseconds / tuned if tuned else None

    @property
    def trials(self) -> int:
        return sum(layer.trials for layer in self.layers)


def network_of(campaign: Campaign) -> Network:
    """Return the network of a stored campaign."""
    return Network.from_dict(campaign.network)


class RunNames:
    """Short names of runs: that of a layer in its network, else the workload's."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._names: dict[str, dict[str, str]] = {}

    def __call__(self, run: Run) -> str:
        """Return a run's short name. Raises StoreError."""
        if run.campaign is None:
            return run.workload
        if run.campaign not in self._names:
            campaign = self._store.campaign(run.campaign)
            layers = campaign.network.get("layers", ()) if campaign is not None else ()
            self._names[run.campaign] = {layer["workload"]: Layer(**layer).name for layer in layers}
        return self._names[run.campaign].get(run.workload, run.workload)


def run_of_layer(store: Store, campaign: Campaign, layer: Layer) -> Run | None:
    """Return the layer's run, the newest where there are several."""
    return next((run for run in reversed(store.runs_of(campaign.uuid)) if run.workload == layer.workload), None)


def board_of(store: Store, campaign: Campaign) -> str:
    """Return the board that a campaign goes on with: it may have been moved since it was made."""
    runs = store.runs_of(campaign.uuid)
    return runs[0].board if runs else str(campaign.settings["board"])


def load_result(store: Store, campaign: Campaign) -> CampaignResult:
    """Return the recorded results. Raises StoreError."""
    network = network_of(campaign)
    layers = tuple(_layer(store, campaign, layer) for layer in network.supported)
    return CampaignResult(campaign, network, layers)


def _layer(store: Store, campaign: Campaign, layer: Layer) -> LayerResult:
    run = run_of_layer(store, campaign, layer)
    if run is None:
        return LayerResult(layer, None)
    summary = store.summary(run.uuid)
    first = store.trials(run.uuid, 0, FALLBACK_ATTEMPTS) if campaign.fallback_first else []
    confirmed = store.confirmations(run.uuid)
    return LayerResult(
        layer,
        run,
        summary.trials,
        summary.valid,
        summary.best,
        fallback_of(first),
        confirmed.get(summary.best.ordinal) if summary.best else None,
        with_noise(run.confidence, confirmed),
    )


def _all(layer: Layer, trial: Trial | None) -> float | None:
    return None if trial is None or trial.microseconds is None else layer.count * trial.microseconds
