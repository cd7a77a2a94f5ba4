"""The time of an inference: VTA by layer, the processor by operator, transfers, and starts.

VTA counts the cycles of each program. Of a program with several layers, each layer's share is the twin's, which counts
hilt's RTL exactly; if the two totals differ, as on a physical board, the shares are scaled to the measured total.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from hilt_runtime import StepRun


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
    """Microseconds of one inference, the median over those that were run.

    Attributes:
        layers: VTA, by layer.
        steps: The processor, by step.
        vta: VTA's own time.
        start: From the call that starts VTA to its end, without VTA's own time. On a simulated board, without the
            wall clock of the simulation.
        processor: All steps of the processor.
        total: The processor's steps, VTA's own time and the starts.
        macs: Multiply-accumulates of the layers on VTA.
        utilisation: Those in share of VTA's peak over VTA's own time.
        alone: VTA's time if its layers ran one by one, by the twin.
        residuals: The part of that which residuals take.
        starts: How often VTA is started.
        between: On the wall clock, from the end of each program of VTA to the call that starts the next one.
    """

    layers: tuple[LayerTime, ...]
    steps: tuple[StepTime, ...]
    vta: float
    start: float
    processor: float
    total: float
    macs: int
    utilisation: float
    alone: float
    residuals: float
    starts: int
    between: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def profile(manifest: Mapping[str, Any], runs: Sequence[Mapping[str, Any]], simulated: bool) -> Profile:
    """Return the profile of inferences of one network.

    Args:
        manifest: The bundle's.
        runs: Of each inference, its steps as hilt_runtime.StepRun.
        simulated: Whether the board is a virtual one, whose time on VTA is its cycles.
    """
    clock = manifest["target"]["clock_hz"]
    inferences = [[StepRun(*step) for step in run["steps"]] for run in runs]
    layers: list[LayerTime] = []
    steps: list[StepTime] = []
    places: list[int] = []
    vta = start = 0.0
    for number, step in enumerate(manifest["steps"]):
        those = [inference[number] for inference in inferences]
        wall = median((run.ended - run.began) * 1e6 for run in those)
        if step["kind"] != "vta":
            steps.append(StepTime(step["kind"], _named(step), wall))
            continue
        counted = [run.cycles for run in those if run.cycles is not None]
        own = median(counted) * 1e6 / clock if counted else median(run.device_seconds * 1e6 for run in those)
        vta += own
        outside = median((run.ended - run.began - run.device_seconds) * 1e6 for run in those)
        start += max(outside if simulated else wall - own, 0.0)
        layers += _layers(manifest, step["program"], own * clock / 1e6)
        places.append(number)
    processor = sum(step.microseconds for step in steps)
    macs = sum(layer.macs for layer in layers)
    peak = manifest["target"]["macs_per_cycle"] * clock / 1e6
    return Profile(
        tuple(layers),
        tuple(steps),
        vta,
        start,
        processor,
        vta + start + processor,
        macs,
        macs / (vta * peak) if vta else 0.0,
        alone=sum(layer["alone"] for layer in manifest["layers"]) * 1e6 / clock,
        residuals=sum(layer.get("residual_cycles", 0) for layer in manifest["layers"]) * 1e6 / clock,
        starts=len(places),
        between=median(_between(inference, places) for inference in inferences) * 1e6,
    )


def _between(inference: Sequence[StepRun], places: Sequence[int]) -> float:
    """Return the seconds from the end of each step at `places` to the begin of the next one of these."""
    return sum(inference[after].began - inference[before].ended for before, after in itertools.pairwise(places))


def _layers(manifest: Mapping[str, Any], program: int, cycles: float) -> list[LayerTime]:
    """Return a program's layers, whose cycles add up to `cycles`."""
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


def _named(step: Mapping[str, Any]) -> str:
    return f"{step['op']} {step['name']}" if step["kind"] == "cpu" else str(step["name"])


def perfetto(manifest: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the first inference as a trace for ui.perfetto.dev.

    A track of the processor, one of VTA with its layers. VTA's slices are its own time, put one behind another
    where each program started.
    """
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": {"name": name}}
        for tid, name in ((1, "processor"), (2, "VTA"))
    ]
    clock = manifest["target"]["clock_hz"]
    now = 0.0
    for step, values in zip(manifest["steps"], runs[0]["steps"], strict=True):
        run = StepRun(*values)
        if step["kind"] != "vta":
            length = (run.ended - run.began) * 1e6
            events.append(_slice(1, now, length, _named(step), {"kind": step["kind"]}))
            now += length
            continue
        cycles = float(run.cycles if run.cycles is not None else run.device_seconds * clock)
        for layer in _layers(manifest, step["program"], cycles):
            facts = {"cycles": round(layer.cycles), "MAC utilisation": round(layer.utilisation, 3)}
            events.append(_slice(2, now, layer.microseconds, layer.name, facts))
            now += layer.microseconds
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _slice(track: int, start: float, length: float, name: str, facts: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "X", "pid": 1, "tid": track, "ts": start, "dur": length, "name": name, "args": facts}
