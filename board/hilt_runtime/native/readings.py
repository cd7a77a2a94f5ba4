"""Readings of the clock: small steps share one with the step behind them, for a reading takes longer than they do."""

from __future__ import annotations

import math
from typing import Any, Callable, Collection, FrozenSet, List, Mapping, Sequence, Tuple

from hilt_runtime.native.strips import VIEWS, KnownTensors

SMALL = 2048
"""Elements of the largest tensor or constant of a small step."""

Step = Mapping[str, Any]
Times = Tuple[float, float, Any]
"""A step's begin and end, and the result of its call."""


def quiet_steps(steps: Sequence[Step], tensors: KnownTensors, native: Callable[[Step], bool]) -> FrozenSet[int]:
    """Return the places of the small native steps behind which another native step follows: the clock is read there.

    Steps of a chain are among them too; the chain has a reading of its own.
    """
    found = set()
    follows = False
    for place in range(len(steps) - 1, -1, -1):
        step = steps[place]
        if step["kind"] == "cpu" and step["op"] in VIEWS:
            continue
        here = step["kind"] != "vta" and native(step)
        if here and follows and _is_small(step, tensors):
            found.add(place)
        follows = here
    return frozenset(found)


def _is_small(step: Step, tensors: KnownTensors) -> bool:
    names = (*step["inputs"], *step["outputs"]) if step["kind"] == "cpu" else (step["tensor"],)
    shapes = [tensors.shape(name) for name in names if name]
    return "packed" not in step and all(shape is not None and math.prod(shape) <= SMALL for shape in shapes)


def shared_out(times: Sequence[Times], quiet: Collection[int], work: Sequence[float]) -> List[Times]:
    """Return the times of steps, with the time of each reading shared out by the work of the steps before it.

    Args:
        times: Of each step; a quiet one begins and ends where the step behind it begins.
        quiet: The places of the steps without a reading.
        work: Of each step, in any unit.
    """
    found = list(times)
    group: List[int] = []
    for place, (began, ended, _) in enumerate(times):
        group.append(place)
        if place in quiet or (began == ended and len(group) > 1):  # or a view among them
            continue
        whole, at = sum(work[each] for each in group), began
        for each in group[:-1]:
            end = at + (ended - began) * work[each] / max(whole, 1e-9)
            found[each] = (at, end, times[each][2])
            at = end
        found[place] = (at, ended, times[place][2])
        group = []
    return found
