"""GroupNormalization is written as InstanceNormalization of groups: ONNX Runtime computes the same of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from hilt.network.onnx_functions import inline_functions
from hilt.network.onnx_group_norms import write_group_norms
from tests.unit.network.models import model_of, run_float


def model(shape: tuple[int, ...], groups: int, opset: int, **attributes: float) -> Any:
    factors = shape[1] if opset >= 21 else groups
    node = helper.make_node("GroupNormalization", ["x", "g", "b"], ["y"], num_groups=groups, **attributes)
    constants = {"g": np.linspace(0.5, 2, factors), "b": np.linspace(-1, 1, factors), "y.groups": np.array([7])}
    made = model_of([node], {"x": shape}, {name: each.astype(np.float32) for name, each in constants.items()})
    made.opset_import[0].version = opset
    return made


@pytest.mark.parametrize("opset", [18, 21])
@pytest.mark.parametrize(("shape", "groups"), [((2, 6, 5, 4), 3), ((1, 8, 30), 1), ((2, 4, 3, 3, 2), 4), ((3, 6), 2)])
def test_the_same_is_computed(shape: tuple[int, ...], groups: int, opset: int) -> None:
    given = {"x": np.random.default_rng(3).normal(1, 4, shape).astype(np.float32)}
    asked = model(shape, groups, opset, epsilon=0.01)
    written = write_group_norms(onnx.ModelProto.FromString(asked.SerializeToString()), opset)
    operators = {node.op_type for node in written.graph.node}
    assert "InstanceNormalization" in operators and "GroupNormalization" not in operators
    (wanted,), (found,) = run_float(asked, given), run_float(written, given)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_data_of_no_known_rank_leave_it_to_its_definition() -> None:
    asked = model((2, 6, 5, 4), 3, 21)
    asked.graph.input[0].type.tensor_type.ClearField("shape")
    operators = [node.op_type for node in inline_functions(asked).graph.node]
    assert not {"InstanceNormalization", "GroupNormalization"} & set(operators)
