"""The profile of an inference: VTA by layer, the processor by operator, crossings, and starts.

VTA counts the cycles of each program. Of a program with several layers, each layer's share is the twin's, which counts
hilt's RTL exactly; if the two totals differ, as on a physical board, the shares are scaled to the measured total.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from hilt.network.latency import Latency
from hilt.network.processor_time import ProcessorTime
from hilt.network.timeline import CROSSINGS, START, VTA, TimeSlice, timeline, total


@dataclass(frozen=True)
class LayerTime:
    """One layer on VTA. `utilisation` is useful multiply-accumulates in share of the peak."""

    name: str
    op: str
    cycles: float
    microseconds: float
    macs: int
    utilisation: float
    bound_share: float
    schedule: str


@dataclass(frozen=True)
class StepTime:
    """One step of the processor: an operator, or a tensor packed or unpacked."""

    kind: str
    name: str
    microseconds: float


@dataclass(frozen=True)
class Profile:
    """One inference: of all that were run warm, the one with the median total. Times are in microseconds.

    Attributes:
        latency: The whole inference.
        layers: VTA, by layer.
        steps: The processor, by step.
        timeline: Processor and VTA, one slice behind another; they add up to the latency's total.
        macs: Multiply-accumulates of the layers on VTA.
        utilisation: Those in share of VTA's peak over VTA's own time.
        alone: VTA's time if its layers ran one by one, by the twin.
        residuals: The part of that which residuals take.
        between: From the end of each program of VTA to the call that starts the next one.
    """

    latency: Latency
    layers: tuple[LayerTime, ...]
    steps: tuple[StepTime, ...]
    timeline: tuple[TimeSlice, ...]
    macs: int
    utilisation: float
    alone: float
    residuals: float
    between: float

    @property
    def vta(self) -> float:
        """VTA's own time."""
        return self.latency.vta

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "latency": self.latency.to_dict(),
            "layers": [asdict(layer) for layer in self.layers],
            "steps": [asdict(step) for step in self.steps],
            "timeline": [each._asdict() for each in self.timeline],
            "macs": self.macs,
            "utilisation": self.utilisation,
            "alone": self.alone,
            "residuals": self.residuals,
            "between": self.between,
        }


def profile(
    manifest: Mapping[str, Any],
    runs: Sequence[Mapping[str, Any]],
    time: ProcessorTime,
    overlapped: tuple[int, float] = (0, 0.0),
) -> Profile:
    """Return the profile of inferences of one network.

    Args:
        manifest: The bundle's.
        runs: Of each inference, its seconds and its steps as hilt_runtime.StepRun. The first one is cold.
        time: How the board's times are read.
        overlapped: Images that overlapped, and the seconds of all of them; they count where times are measured.
    """
    slices, latency = typical([timeline(manifest, run, time) for run in runs], time.assumed)
    if overlapped[0] and overlapped[1] > 0 and not time.assumed:
        latency = replace(latency, images_per_second=overlapped[0] / overlapped[1])
    layers: list[LayerTime] = []
    for each in slices:
        if each.on_vta:
            layers += layers_of(manifest, manifest["steps"][each.step]["program"], each.microseconds)
    macs = sum(layer.macs for layer in layers)
    clock = manifest["target"]["clock_hz"]
    peak = manifest["target"]["macs_per_cycle"] * clock / 1e6
    return Profile(
        latency,
        tuple(layers),
        tuple(StepTime(each.kind, each.name, each.microseconds) for each in slices if each.kind not in (VTA, START)),
        tuple(slices),
        macs,
        macs / (latency.vta * peak) if latency.vta else 0.0,
        alone=sum(layer["alone"] for layer in manifest["layers"]) * 1e6 / clock,
        residuals=sum(layer.get("residual_cycles", 0) for layer in manifest["layers"]) * 1e6 / clock,
        between=_between(slices),
    )


def typical(lines: Sequence[list[TimeSlice]], assumed: str) -> tuple[list[TimeSlice], Latency]:
    """Return the inference with the median total, and its record.

    Args:
        lines: The slices of each inference; the first one is cold, and counts only if it is alone.
        assumed: The assumptions about the processor, in words.
    """
    warm = sorted(lines[1:] or lines, key=total)
    slices = warm[(len(warm) - 1) // 2]
    sums = dict.fromkeys(("vta", "start", "crossings", "processor"), 0.0)
    for each in slices:
        part = each.kind if each.kind in (VTA, START) else "crossings" if each.kind in CROSSINGS else "processor"
        sums[part] += each.microseconds
    latency = Latency(
        **sums,
        starts=sum(each.on_vta for each in slices),
        assumed=assumed,
        warm=len(lines) - 1,
        least=total(warm[0]),
        largest=total(warm[-1]),
        first=total(lines[0]) if len(lines) > 1 and not assumed else None,
    )
    return slices, latency


def _between(slices: Sequence[TimeSlice]) -> float:
    """Return the microseconds from the end of each program of VTA to the call that starts the next one."""
    programs = [place for place, each in enumerate(slices) if each.on_vta]
    return sum(
        each.microseconds
        for before, after in itertools.pairwise(programs)
        for each in slices[before + 1 : after]
        if each.kind != START
    )


def layers_of(manifest: Mapping[str, Any], program: int, microseconds: float) -> list[LayerTime]:
    """Return a program's layers, whose times add up to `microseconds`."""
    cycles = microseconds * manifest["target"]["clock_hz"] / 1e6
    clock, peak = manifest["target"]["clock_hz"], manifest["target"]["macs_per_cycle"]
    those = [layer for layer in manifest["layers"] if layer["program"] == program]
    scale = cycles / sum(layer["cycles"] for layer in those)
    return [
        LayerTime(
            layer["name"],
            layer["op"] + (" + residual" if layer["residual"] else ""),
            layer["cycles"] * scale,
            layer["cycles"] * scale * 1e6 / clock,
            layer["macs"],
            layer["macs"] / (layer["cycles"] * scale * peak),
            layer["bound"] / (layer["cycles"] * scale),
            layer["schedule"],
        )
        for layer in those
    ]


def perfetto(manifest: Mapping[str, Any], figures: Profile) -> dict[str, Any]:
    """Return the inference as a trace for ui.perfetto.dev: a track of the processor, one of VTA with its layers.

    The slices add up to the latency. Slices of the processor say where their time is assumed.
    """
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": {"name": name}}
        for tid, name in ((1, "processor"), (2, "VTA"))
    ]
    assumed = {"time": figures.latency.assumed} if figures.latency.assumed else {}
    for each in figures.timeline:
        if not each.on_vta:
            events.append(_event(1, each.began, each.microseconds, each.name, {"kind": each.kind, **assumed}))
            continue
        now = each.began
        for layer in layers_of(manifest, manifest["steps"][each.step]["program"], each.microseconds):
            facts = {"cycles": round(layer.cycles), "MAC utilisation": round(layer.utilisation, 3)}
            events.append(_event(2, now, layer.microseconds, layer.name, facts))
            now += layer.microseconds
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _event(track: int, start: float, length: float, name: str, facts: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "X", "pid": 1, "tid": track, "ts": start, "dur": length, "name": name, "args": facts}
