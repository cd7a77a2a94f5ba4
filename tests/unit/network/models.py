"""Small ONNX models for the tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from hilt.network.calibration import Calibration, Runner
from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.onnx_simplify import fixed_model
from hilt.network.quantize.quantizer import Quantisation, quantise

Array = np.ndarray[Any, Any]


def model_of(
    nodes: Sequence[Any],
    inputs: Mapping[str, Sequence[int | str | None]],
    constants: Mapping[str, Array] | None = None,
    outputs: Sequence[str] = ("y",),
    opset: int = 17,
    types: Mapping[str, int] | None = None,
) -> Any:
    """Return a ModelProto of the nodes."""
    declared = [
        helper.make_tensor_value_info(name, (types or {}).get(name, TensorProto.FLOAT), shape)
        for name, shape in inputs.items()
    ]
    results = [
        helper.make_tensor_value_info(name, (types or {}).get(name, TensorProto.FLOAT), None) for name in outputs
    ]
    initializers = [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "test", declared, results, initializers)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def saved(model: Any, path: Path) -> Path:
    onnx.save(model, str(path))
    return path


def session_of(model: Any) -> Any:
    """Return a model in ONNX Runtime, on one thread: others would wait for work in a loop.

    Its kernels of int8, whose sums saturate on processors without VNNI, are off.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def run_float(model: Any, feeds: Mapping[str, Array]) -> list[Array]:
    """Return a model's outputs in ONNX Runtime."""
    return list(session_of(model).run(None, dict(feeds)))


def canonical(model: Any) -> OnnxGraph:
    graph = fixed_model(model, "test")
    canonicalise(graph)
    return graph


def samples_for(graph: OnnxGraph, count: int = 4, seed: int = 0) -> Calibration:
    random = np.random.default_rng(seed)
    return Calibration(
        tuple(
            {name: random.normal(0, 1, graph.shape(name)).astype(graph.dtypes[name]) for name in graph.inputs}
            for _ in range(count)
        )
    )


def quantised(model: Any, *, channel_block: int = 0, search: bool = False) -> Quantisation:
    """Return a model quantised on seeded noise."""
    graph = canonical(model)
    return quantise(graph, samples_for(graph), channel_block=channel_block, search=search)


def canonical_operators(
    nodes: list[Any], shape: Sequence[int], constants: dict[str, Array], opset: int
) -> Counter[str]:
    """Return how often the canonical form of a model of x has each operator; assert that it computes as the model."""
    model = model_of(nodes, {"x": tuple(shape)}, constants, opset=opset)
    graph, feeds = canonical(model), {"x": np.random.default_rng(0).normal(0.5, 2, shape).astype(np.float32)}
    (given,) = Runner(graph, graph.outputs).run(feeds).values()
    np.testing.assert_allclose(given, run_float(model, feeds)[0], rtol=1e-4, atol=1e-5)
    return Counter(each.op for each in graph.nodes)


def operators_after(
    rewrite: Callable[[OnnxGraph], None],
    shape: Sequence[int],
    nodes: Sequence[tuple[str, str, dict[str, Any]]],
    constants: dict[str, Any] | None = None,
    others: dict[str, tuple[int, ...]] | None = None,
    outputs: str = "y",
) -> list[str]:
    """Return the operators, in order, that a rewrite leaves; assert that values, shapes and types are right.

    Args:
        rewrite: Of a fixed graph, in place.
        shape: Of the input x.
        nodes: Operator, the names of inputs and of the result (as in "t k -> r"), and attributes.
        constants: Values by name.
        others: Further inputs of floats, by name.
        outputs: Names with spaces between.
    """
    made = []
    for number, (op, names, attributes) in enumerate(nodes):
        given, _, result = names.partition(" -> ")
        read = ["" if name == "-" else name for name in given.split()]
        made.append(helper.make_node(op, read, result.split(), name=f"n{number}", **attributes))
    arrays = {name: np.asarray(value) for name, value in (constants or {}).items()}
    inputs = {"x": tuple(shape), **(others or {})}
    model = model_of(made, inputs, arrays, outputs.split(), opset=18)
    random = np.random.default_rng(3)
    feeds: dict[str, Array] = {name: random.normal(0, 1, size).astype(np.float32) for name, size in inputs.items()}
    graph = fixed_model(model, "rewritten")
    rewrite(graph)
    own = [name for node in graph.nodes if not node.domain for name in node.outputs]
    made_too = [name for name in own if graph.shapes[name] and None not in graph.shapes[name]]
    values = Runner(graph, [*outputs.split(), *made_too]).run(feeds)
    for wanted, name in zip(run_float(model, feeds), outputs.split(), strict=True):
        assert wanted.shape == values[name].shape
        np.testing.assert_allclose(values[name], wanted, rtol=1e-5, atol=1e-6)
    for name in made_too:
        assert (graph.shape(name), graph.dtypes[name]) == (values[name].shape, str(values[name].dtype))
    return [node.op for node in graph.nodes]


def assert_same(model: Any, feeds: dict[str, Array]) -> Counter[str]:
    """Assert that the canonical form computes as the model does; return how often it has each operator."""
    graph = canonical(model)
    given = list(Runner(graph, graph.outputs).run(feeds).values())
    for first, second in zip(run_float(model, feeds), given, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-4)
    return Counter(node.op for node in graph.nodes)


_RANDOM = np.random.default_rng(11)
_FIRST = _RANDOM.bit_generator.state


def normal(*shape: int) -> Array:
    """Return numbers of a standard normal distribution, others each time in a test."""
    return _RANDOM.normal(0, 1, shape).astype(np.float32)


def draw_again() -> None:
    """Let `normal` begin with its first numbers."""
    _RANDOM.bit_generator.state = _FIRST
