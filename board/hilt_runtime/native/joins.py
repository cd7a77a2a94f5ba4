"""Concats whose parts are made where the joined tensor lies: nothing is copied.

Parts along the first axis of more than one element lie behind one another in the joined tensor.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Callable, FrozenSet, Mapping, Sequence, Set

from hilt_runtime.native.strips import KnownTensors, names_read

_MAKERS = frozenset(
    (
        *("Abs", "Neg", "Relu", "Sqrt", "Reciprocal", "Exp", "Log", "Sigmoid", "Tanh", "LeakyRelu", "Softplus", "Gelu"),
        *("Add", "Sub", "Mul", "Div", "Softmax", "MatMul", "Gemm", "Concat", "ReduceSum", "ReduceMean"),
        *("add", "multiply", "table", "quantize", "dequantize", "softmax", "fixed_matmul", "concat"),
    )
)
"""Operators whose results have memory of their own."""

Step = Mapping[str, Any]


def joined_in_place(steps: Sequence[Step], tensors: KnownTensors, native: Callable[[Step], bool]) -> FrozenSet[int]:
    """Return the places of the Concats that copy nothing.

    Args:
        steps: The manifest's.
        tensors: Their tensors.
        native: Tells whether the engine computes a step.
    """
    own = _with_own_memory(steps, native)
    reads = Counter(name for step in steps for name in names_read(step))
    found = (place for place, step in enumerate(steps) if native(step) and _joins_whole_parts(step, tensors))
    return frozenset(
        place for place in found if all(reads[name] == 1 and name in own for name in steps[place]["inputs"])
    )


def _with_own_memory(steps: Sequence[Step], native: Callable[[Step], bool]) -> Set[str]:
    """Return the tensors that native steps make, in memory of their own."""
    makers = (step for step in steps if step["kind"] == "cpu" and step["op"] in _MAKERS and "packed" not in step)
    return {name for step in makers if native(step) for name in step["outputs"]}


def _joins_whole_parts(step: Step, tensors: KnownTensors) -> bool:
    """Tell whether a step is a Concat whose parts lie behind one another."""
    if step["kind"] != "cpu" or step["op"] not in ("Concat", "concat"):
        return False
    if "packed" in step or "channels" in step["attributes"] or not all(step["inputs"]):
        return False
    shape = tensors.shape(step["outputs"][0])
    return shape is not None and math.prod(shape[: step["attributes"]["axis"] % len(shape)]) == 1
