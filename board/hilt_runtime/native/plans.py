"""The operators that the native engine has, and one operator run by it alone: for tests, and beside numpy's."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Sequence

import numpy as np

from hilt_runtime.native import plan_float, plan_integer, plan_recurrent, plan_shape
from hilt_runtime.native.steps import Builder, NotNativeError

PLANS: Dict[str, Callable[[Builder, Sequence[Any], Mapping[str, Any]], List[Any]]] = {
    **plan_integer.PLANS,
    **plan_shape.PLANS,
    **plan_float.PLANS,
    **plan_recurrent.PLANS,
}


def plan_operator(builder: Builder, op: str, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> List[Any]:
    """Add the steps of an operator and return the arrays that they will write.

    Raises:
        NotNativeError: The engine does not compute it in this form; the builder is as before.
    """
    if op not in PLANS:
        raise NotNativeError("there is no native {}".format(op))
    before = len(builder.records)
    try:
        return PLANS[op](builder, inputs, attributes)
    except NotNativeError:
        del builder.records[before:]
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        del builder.records[before:]
        raise NotNativeError("its form is not known: {}".format(error)) from None


def execute(library: Any, steps: np.ndarray, buffers: np.ndarray) -> int:
    """Check steps and run them. Returns 0, or 1 where values forbid one. Raises NotNativeError if one is refused."""
    refused = library.hilt_check(steps.ctypes.data, len(steps), buffers.ctypes.data, len(buffers))
    if refused >= 0:
        raise NotNativeError("step {} reaches outside of its tensors".format(refused))
    times = np.zeros(2 * len(steps) + 2)
    done = library.hilt_run(steps.ctypes.data, 0, len(steps), buffers.ctypes.data, times.ctypes.data)
    return 0 if done == len(steps) else 1


def run_operator(library: Any, op: str, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> List[np.ndarray]:
    """Compute one operator natively; its inputs but the first are taken to be constants.

    Raises:
        NotNativeError: The engine does not compute it in this form.
        IndexError: A value forbids it.
    """
    builder = Builder()
    arrays = [None if value is None else np.array(value, order="C") for value in inputs]
    for value in arrays[1:]:
        if value is not None:
            builder.constant(value)
    outputs = plan_operator(builder, op, arrays, attributes)
    steps, buffers = builder.encoded()
    if execute(library, steps, buffers):
        raise IndexError("{}: a value forbids it".format(op))
    return outputs
