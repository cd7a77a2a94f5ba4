"""An inference as slices of time on two tracks, the processor and VTA; they add up to the whole inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hilt.network.processor_time import ProcessorTime
from hilt_runtime import StepRun

VTA, START, BETWEEN = "vta", "start", "between"
"""Kinds of slices that no step has as its own: VTA at work, the call around it, and the runtime between two steps.
The others are kinds of steps: pack, unpack, cpu."""
CROSSINGS = ("pack", "unpack")


class TimeSlice(NamedTuple):
    """A part of an inference.

    Attributes:
        kind: VTA, START, BETWEEN, or the kind of a step of the processor.
        name: The step's, with its operator.
        began: Microseconds from the inference's begin.
        microseconds: Its length.
        step: The step's place in the manifest.
        image: Which of several images that overlap.
    """

    kind: str
    name: str
    began: float
    microseconds: float
    step: int
    image: int = 0

    @property
    def on_vta(self) -> bool:
        """Whether it is VTA's own time."""
        return self.kind == VTA


def timeline(manifest: Mapping[str, Any], run: Mapping[str, Any], time: ProcessorTime) -> list[TimeSlice]:
    """Return the slices of one inference, one behind another.

    Args:
        manifest: The bundle's.
        run: The inference's steps as hilt_runtime.StepRun, and its seconds.
        time: How the board's times are read.
    """
    found: list[TimeSlice] = []
    now = before = 0.0

    def add(kind: str, name: str, seconds: float, step: int) -> None:
        nonlocal now
        if seconds > 0 or kind == VTA:
            found.append(TimeSlice(kind, name, now * 1e6, seconds * 1e6, step))
            now += seconds

    steps = [StepRun(*values) for values in run["steps"]]
    for place, (step, ran) in enumerate(zip(manifest["steps"], steps, strict=True)):
        add(BETWEEN, "between steps", time.between(ran.began - before), place)
        wall = ran.ended - ran.began
        if step["kind"] == VTA:
            own = _own_seconds(manifest, ran)
            outside = wall - (own if time.start_seconds is None else ran.device_seconds)
            add(START, f"start {step['name']}", time.start(outside), place)
            add(VTA, str(step["name"]), own, place)
        else:
            add(step["kind"], step_name(step), time.step(place, wall), place)
        before = ran.ended
    add(BETWEEN, "after the last step", time.between(run.get("seconds", before) - before), max(len(steps) - 1, 0))
    return found


def _own_seconds(manifest: Mapping[str, Any], ran: StepRun) -> float:
    return ran.device_seconds if ran.cycles is None else ran.cycles / float(manifest["target"]["clock_hz"])


def step_name(step: Mapping[str, Any]) -> str:
    """Return a step's name for people, with the operator of one of the processor."""
    return f"{step['op']} {step['name']}" if step["kind"] == "cpu" else str(step["name"])


def total(slices: Sequence[TimeSlice]) -> float:
    """Return the microseconds from the begin of the first slice to the end of the last one."""
    return max((each.began + each.microseconds for each in slices), default=0.0)
