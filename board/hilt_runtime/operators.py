"""The operators that the processor computes: hilt's integer operators and ONNX's, in numpy."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from hilt_runtime import (
    fixed_point,
    integer_norm,
    operators_elementwise,
    operators_integer,
    operators_norm,
    operators_recurrent,
    operators_reduce,
    operators_resize,
    operators_sample,
    operators_shape,
    operators_window,
)

Operator = Callable[[Sequence[Optional[np.ndarray]], Mapping[str, Any]], Any]

OPERATORS: Dict[str, Operator] = {
    **operators_integer.OPERATORS,
    **fixed_point.OPERATORS,
    **integer_norm.OPERATORS,
    **operators_elementwise.OPERATORS,
    **operators_reduce.OPERATORS,
    **operators_shape.OPERATORS,
    **operators_window.OPERATORS,
    **operators_resize.OPERATORS,
    **operators_recurrent.OPERATORS,
    **operators_norm.OPERATORS,
    **operators_sample.OPERATORS,
}
"""Operators by name: lower-case names are hilt's, the others ONNX's at opset 17."""


class UnknownOperatorError(ValueError):
    """An operator that the processor cannot compute."""


def run(op: str, inputs: Sequence[Optional[np.ndarray]], attributes: Mapping[str, Any]) -> List[np.ndarray]:
    """Compute one operator.

    Args:
        op: A key of OPERATORS.
        inputs: Arrays in the operator's order; None for an input that is left out.
        attributes: Plain values.

    Returns:
        Its outputs, in order.

    Raises:
        UnknownOperatorError: No such operator.
    """
    if op not in OPERATORS:
        known = ", ".join(sorted(OPERATORS))
        raise UnknownOperatorError("operator {} is not known; hilt computes {}".format(op, known))
    result: Any = OPERATORS[op](inputs, attributes)
    outputs: Tuple[Any, ...] = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    return [np.asarray(output) for output in outputs]
