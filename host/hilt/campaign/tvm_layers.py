"""The schedules that TVM v0.9 takes from an AutoTVM log, layer by layer.

TVM takes the fastest record of a layer. For a layer without one it takes the fallback: every knob at its first value.
A record of the fallback itself is no tuned schedule either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from hilt.engine.campaign_results import CampaignResult, fallback_of
from hilt.schedule import WorkloadError
from hilt.store import Run, Store, Trial
from hilt.store.autotvm_exchange import export_run
from hilt.vta.parameters import VTAParameters

_ANY_TARGET = "pynq"
"""The schedule that TVM takes does not depend on the target's name."""


class Gets(StrEnum):
    """The kind of schedule that TVM takes for a layer."""

    TUNED = "tuned"
    FALLBACK = "fallback"
    NOTHING = "nothing"
    """TVM's templates do not have the layer: its processor runs it."""


@dataclass(frozen=True)
class TvmLayer:
    """One layer with a log: TVM's microseconds (None: not known) and those of hilt's best schedule."""

    name: str
    """The workload, or the layer's first node in the model."""
    count: int
    gets: Gets
    tvm_microseconds: float | None
    microseconds: float | None

    @property
    def slower(self) -> float | None:
        """Return how many times as long TVM takes."""
        if self.tvm_microseconds is None or not self.microseconds:
            return None
        return self.tvm_microseconds / self.microseconds


def tvm_layers(store: Store, result: CampaignResult) -> list[TvmLayer]:
    """Return the layers of a campaign as TVM would run them with its log."""
    return [
        replace(
            tvm_layer(layer.run, store.reported(layer.run.uuid), layer.best, layer.layer.count), name=layer.layer.name
        )
        for layer in result.layers
        if layer.run is not None
    ]


def tvm_layer(run: Run, trials: Sequence[Trial], best: Trial | None, count: int = 1) -> TvmLayer:
    """Return a layer as TVM would run it with the log of its run."""
    ours = best.microseconds if best is not None else None
    try:
        exported = export_run(run, trials, VTAParameters.from_name(run.parameters), _ANY_TARGET)
    except WorkloadError:
        return TvmLayer(run.workload, count, Gets.NOTHING, None, ours)
    usable = [record for record in exported.records if record.error == 0]
    if not usable:
        fallback = fallback_of(trials)
        return TvmLayer(run.workload, count, Gets.FALLBACK, fallback.microseconds if fallback else None, ours)
    fastest = min(usable, key=lambda record: sum(record.costs) / len(record.costs))
    gets = Gets.FALLBACK if fastest.index == 0 else Gets.TUNED
    return TvmLayer(run.workload, count, gets, 1e6 * sum(fastest.costs) / len(fastest.costs), ours)


def summary(layers: Sequence[TvmLayer]) -> str:
    """Return in one line how much of a network TVM runs with tuned schedules."""
    counts = Counter(layer.gets for layer in layers)
    words = f"with this log TVM v0.9 has a tuned schedule for {counts[Gets.TUNED]} of {len(layers)} layers"
    if counts[Gets.FALLBACK]:
        words += f", the untuned fallback for {counts[Gets.FALLBACK]}"
    if counts[Gets.NOTHING]:
        words += f", no template for {counts[Gets.NOTHING]}"
    both = [layer for layer in layers if layer.tvm_microseconds is not None and layer.microseconds is not None]
    ours = sum(layer.count * (layer.microseconds or 0.0) for layer in both)
    of_tvm = sum(layer.count * (layer.tvm_microseconds or 0.0) for layer in both)
    if ours:
        words += f"; these take {of_tvm / 1e3:,.2f} ms there, {ours / 1e3:,.2f} ms with hilt: "
        words += f"{of_tvm / ours:.2f} times as long"
    return words
