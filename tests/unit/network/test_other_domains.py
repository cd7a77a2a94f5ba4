"""A node of another domain is not its namesake of ONNX: no rewrite changes it, and those around it stay right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network.calibration import Runner
from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_simplify import fixed_model

from .models import Array, model_of, run_float

OTHER = "of others"
IMAGE, LINE, ROW = (1, 8, 3, 3), (1, 4, 12), (2, 6)
LAST, FIRST = [0, 2, 3, 1], [0, 3, 1, 2]
Form = tuple[tuple[int, ...], list[tuple[str, str, dict[str, Any]]]]
FORMS: dict[str, Form] = {
    "a norm behind a layer": (
        IMAGE,
        [("Conv", "x k11 -> a", {}), ("BatchNormalization", "a v8 v8 v8 v8 -> b", {}), ("Relu", "b -> y", {})],
    ),
    "a norm that is a layer": (
        IMAGE,
        [
            ("MaxPool", "x -> a", {"kernel_shape": [2, 2]}),
            ("Mul", "a c8 -> b", {}),
            ("Add", "b c8 -> c", {}),
            ("Relu", "c -> d", {}),
            ("Conv", "d k11 -> y", {}),
        ],
    ),
    "constants around a product": (
        ROW,
        [("MatMul", "x k66 -> a", {}), ("Add", "a v6 -> b", {}), ("Mul", "b v6 -> c", {}), ("Sub", "c v6 -> y", {})],
    ),
    "a sum of squares": (IMAGE, [("Mul", "x x -> a", {}), ("ReduceSum", "a i1 -> b", {}), ("Relu", "b -> y", {})]),
    "a hard sigmoid": (IMAGE, [("Conv", "x k11 -> a", {}), ("HardSigmoid", "a -> y", {})]),
    "a hard sigmoid in parts": (
        IMAGE,
        [
            ("Conv", "x k11 -> a", {}),
            ("Add", "a three -> b", {}),
            ("Clip", "b zero six -> c", {}),
            ("Div", "c six -> y", {}),
        ],
    ),
    "layouts": (
        IMAGE,
        [
            ("Transpose", "x -> a", {"perm": LAST}),
            ("Relu", "a -> b", {}),
            ("Pad", "b pads -> c", {}),
            ("Transpose", "c -> d", {"perm": FIRST}),
            ("Conv", "d k11 -> y", {}),
        ],
    ),
    "a flattened image": (
        IMAGE,
        [
            ("Conv", "x k11 -> a", {}),
            ("Transpose", "a -> b", {"perm": LAST}),
            ("Reshape", "b flat -> c", {}),
            ("Gemm", "c k672 -> y", {"transB": 1}),
        ],
    ),
    "a mean that weights read": (
        IMAGE,
        [
            ("GlobalAveragePool", "x -> a", {}),
            ("Relu", "a -> b", {}),
            ("Flatten", "b -> c", {}),
            ("Gemm", "c k68 -> y", {"transB": 1}),
        ],
    ),
    "turns that meet": (
        IMAGE,
        [
            ("Transpose", "x -> a", {"perm": [0, 2, 1, 3]}),
            ("Mul", "a half -> b", {}),
            ("ReduceSum", "b i3 -> c", {"keepdims": 0}),
            ("Exp", "c -> d", {}),
            ("Transpose", "d -> e", {"perm": [0, 2, 1]}),
            ("Neg", "e -> y", {}),
        ],
    ),
    "a turned product": (
        (1, 6, 5),
        [
            ("Transpose", "x -> a", {"perm": [0, 2, 1]}),
            ("MatMul", "a k66 -> b", {}),
            ("Add", "b v6 -> c", {}),
            ("Transpose", "c -> y", {"perm": [0, 2, 1]}),
        ],
    ),
    "a line": (
        LINE,
        [
            ("Conv", "x k443 -> a", {}),
            ("Relu", "a -> b", {}),
            ("Pad", "b line -> c", {}),
            ("BatchNormalization", "c v4 v4 v4 v4 -> d", {}),
            ("Conv", "d k443 -> y", {}),
        ],
    ),
    "a transposed convolution": (
        IMAGE,
        [("ConvTranspose", "x k22 -> a", {"strides": [2, 2]}), ("Sigmoid", "a -> y", {})],
    ),
    "parts of a join": (
        IMAGE,
        [
            ("Conv", "x k11 -> a", {}),
            ("Conv", "x k22 -> b", {"pads": [0, 0, 1, 1]}),
            ("Concat", "a b -> c", {"axis": 1}),
            ("Slice", "c i0 i8 i1 -> d", {}),
            ("Slice", "c i8 i16 i1 -> e", {}),
            ("Sigmoid", "d -> f", {}),
            ("Add", "f e -> y", {}),
        ],
    ),
    "a function of a cut": (
        IMAGE,
        [
            ("Conv", "x k11 -> a", {}),
            ("Slice", "a i0 i4 i1 -> b", {}),
            ("Slice", "a i4 i8 i1 -> c", {}),
            ("Sigmoid", "b -> d", {}),
            ("Sigmoid", "c -> e", {}),
            ("Mul", "d e -> y", {}),
        ],
    ),
    "a function behind moves": (
        IMAGE,
        [
            ("Conv", "x k11 -> a", {}),
            ("Reshape", "a apart -> b", {}),
            ("Transpose", "b -> c", {"perm": [0, 2, 1]}),
            ("Concat", "c c -> d", {"axis": 1}),
            ("Sigmoid", "d -> e", {}),
            ("Softmax", "e -> y", {"axis": 2}),
        ],
    ),
}


def constants() -> dict[str, Array]:
    random = np.random.default_rng(7)
    shapes = {
        "k11": (8, 8, 1, 1), "k22": (8, 8, 2, 2), "k443": (4, 4, 3), "k66": (6, 6), "k68": (6, 8), "k672": (6, 72),
        "v4": (4,), "v6": (6,), "v8": (8,), "c8": (8, 1, 1),
    }  # fmt: skip
    arrays: dict[str, Array] = {
        name: random.uniform(0.1, 1, shape).astype(np.float32) for name, shape in shapes.items()
    }
    arrays |= {name: np.float32(value) for name, value in (("zero", 0), ("half", 0.5), ("three", 3), ("six", 6))}
    arrays |= {f"i{value}": np.array([value]) for value in (0, 1, 3, 4, 8, 16)}
    arrays |= {"flat": np.array([1, 72]), "apart": np.array([1, 8, 9])}
    return arrays | {"pads": np.array([0, 1, 0, 0, 0, 0, 1, 0]), "line": np.array([0, 0, 1, 0, 0, 1])}


@pytest.mark.parametrize(("form", "place"), [(form, place) for form in FORMS for place in range(len(FORMS[form][1]))])
def test_a_node_of_another_domain_stays(form: str, place: int) -> None:
    """It computes as its namesake here, so that the values show whether the others are right."""
    shape, parts = FORMS[form]
    nodes = []
    for number, (op, names, attributes) in enumerate(parts):
        given, result = names.split(" -> ")
        nodes.append(helper.make_node(op, given.split(), [result], name=f"n{number}", **attributes))
    read = {name for node in nodes for name in node.input}
    model = model_of(nodes, {"x": shape}, {name: value for name, value in constants().items() if name in read})
    feeds = {"x": np.random.default_rng(3).uniform(-1, 1, shape).astype(np.float32)}
    graph = fixed_model(model, "domains")
    found = graph.nodes[place]
    wanted = (found.op, dict(found.attributes), len(found.inputs))
    found.domain = OTHER
    canonicalise(graph)
    (kept,) = (node for node in graph.nodes if node.domain)
    assert (kept.op, dict(kept.attributes), len(kept.inputs)) == wanted
    kept.domain = ""
    (made,) = Runner(graph, ["y"]).run(feeds).values()
    np.testing.assert_allclose(made, run_float(model, feeds)[0], rtol=1e-4, atol=1e-5)
