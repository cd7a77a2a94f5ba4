"""Images of floats that are quantised while they are folded: the int8 image has no memory of its own."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Sequence, Set

from hilt_runtime.native.plan_integer import quantising_factors

Step = Mapping[str, Any]


def folds_of_floats(
    steps: Sequence[Step], buffers: Mapping[str, Any], native: Callable[[Step], bool], kept: Set[str]
) -> Dict[int, int]:
    """Return the places of the folds that quantise their image themselves, with those of the quantisations.

    Args:
        steps: The manifest's.
        buffers: The manifest's.
        native: Tells whether the engine computes a step.
        kept: Tensors that are read behind the last step.
    """
    found = {}
    for place, (before, step) in enumerate(zip(steps, steps[1:]), start=1):
        if _belong(before, step) and native(before) and native(step):
            alone = not _is_read(step["tensor"], steps, place, kept)
            if alone and _by_rows(step, before, buffers[step["buffer"]]["shape"]):
                found[place] = place - 1
    return found


def _belong(before: Step, step: Step) -> bool:
    """Tell whether a step folds the tensor that the one before quantises."""
    folds = step["kind"] == "pack" and "fold" in step and "rows" not in step["fold"]
    folds = folds and before["kind"] == "cpu" and before["op"] == "quantize"
    return folds and step["tensor"] == before["outputs"][0]


def _is_read(tensor: str, steps: Sequence[Step], fold: int, kept: Set[str]) -> bool:
    """Tell whether anything but a fold reads a tensor."""
    others = (step for place, step in enumerate(steps) if place != fold and step["kind"] in ("cpu", "pack"))
    return tensor in kept or any(
        tensor in (each["inputs"] if each["kind"] == "cpu" else (each["tensor"],)) for each in others
    )


def _by_rows(step: Step, quantisation: Step, shape: Sequence[int]) -> bool:
    """Tell whether floats are multiplied exactly, and blocks are copied from rows with channel beside channel."""
    rows = shape[4] == 1 and (shape[5] == 16 or "channels_last" in step)
    return rows and quantising_factors(quantisation["attributes"])[2]
