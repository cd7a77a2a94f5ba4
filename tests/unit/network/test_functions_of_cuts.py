"""One function of all parts of a layer's result is taken before the result is cut; others stay where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_graph import OnnxGraph, graph_of, infer_shapes, to_model

HALVES = ((0, 4), (4, 8))


def parted(
    functions: list[Any], parts: tuple[tuple[int, int], ...] = HALVES, more_outputs: tuple[str, ...] = ()
) -> OnnxGraph:
    """A convolution of 8 channels cut in parts s0, s1, ..., and functions of these: t0, t1, ..."""
    nodes, constants = [helper.make_node("Conv", ["x", "w"], ["c"])], {"w": np.ones((8, 3, 1, 1), np.float32)}
    constants |= {"three": np.float32(3), "four": np.float32(4), "axes": np.array([1])}
    for place, (first, last) in enumerate(parts):
        constants |= {f"from{place}": np.array([first]), f"to{place}": np.array([last])}
        nodes.append(helper.make_node("Slice", ["c", f"from{place}", f"to{place}", "axes"], [f"s{place}"]))
    outputs = [f"t{place}" for place in range(len(parts))] + list(more_outputs)
    graph = helper.make_graph(
        nodes + functions,
        "parted",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 4, 5))],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    made = graph_of(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), "parted")
    infer_shapes(made)
    return made


def each(op: str, *others: str) -> list[Any]:
    return [helper.make_node(op, [f"s{place}", *others], [f"t{place}"]) for place in (0, 1)]


def operators(graph: OnnxGraph) -> list[str]:
    return [node.op for node in graph.nodes]


def assert_same_outputs(before: Any, after: Any) -> None:
    import onnxruntime

    x = np.random.default_rng(1).normal(size=(1, 3, 4, 5)).astype(np.float32)
    results = [onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x}) for model in (before, after)]
    for one, two in zip(*results, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-6)


@pytest.mark.parametrize(
    "functions",
    [each("Sigmoid"), each("Pow", "three"), [helper.make_node("Mul", [f"s{k}"] * 2, [f"t{k}"]) for k in (0, 1)]],
)
def test_one_function_of_all_parts_is_taken_first(functions: list[Any]) -> None:
    graph = parted(functions)
    before = to_model(graph)
    canonicalise(graph)
    assert operators(graph) == ["Conv", functions[0].op_type, "Slice", "Slice"]
    assert_same_outputs(before, to_model(graph))


@pytest.mark.parametrize(
    ("functions", "parts", "more"),
    [
        ([helper.make_node("Sigmoid", ["s0"], ["t0"]), helper.make_node("Tanh", ["s1"], ["t1"])], HALVES, ()),
        ([helper.make_node("Pow", [f"s{k}", ("three", "four")[k]], [f"t{k}"]) for k in (0, 1)], HALVES, ()),
        (each("Sigmoid"), HALVES, ("c",)),
        (each("Sigmoid"), HALVES, ("s1",)),
        (each("Sigmoid"), ((0, 2), (4, 6)), ()),
        ([helper.make_node("Sigmoid", ["s0"], ["t0"])], ((0, 7),), ()),
    ],
    ids=["other functions", "other exponents", "the whole is read", "a part is read", "half is left", "one part"],
)
def test_others_stay(functions: list[Any], parts: tuple[tuple[int, int], ...], more: tuple[str, ...]) -> None:
    graph = parted(functions, parts, more)
    before = operators(graph)
    canonicalise(graph)
    assert operators(graph) == before
