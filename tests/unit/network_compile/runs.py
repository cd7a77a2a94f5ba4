"""Runs a model from ONNX to tensors on the golden model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hilt.network.calibration import Calibration
from hilt.network.compile import compile_network
from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_graph import graph_of, to_model
from hilt.network.onnx_import import import_proto
from hilt.network.onnx_simplify import fix
from hilt.network.onnx_unquantise import is_quantised, unquantise
from hilt.network.quantize.quantizer import quantise
from hilt.network.random_inputs import random_inputs
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt.network.verify import compare, inside_of
from hilt_runtime import Network, read_bundle
from tests.unit.network.models import run_float

from .graphs import target


def runs_as_its_reference(model: Any, shapes: Mapping[str, Sequence[int]] | None = None) -> set[str]:
    """Quantise and compile a model, compare every tensor, and its output with ONNX Runtime's of the model itself.

    Returns the operators of the integer graph.
    """
    graph = graph_of(model, "odd")
    fix(graph, shapes or {}, {})
    if is_quantised(graph):
        unquantise(graph)
        fix(graph, {}, {})
    canonicalise(graph)
    random = np.random.default_rng(1)
    samples = [
        {
            name: (random.integers(0, 20, graph.shape(name)) if graph.dtypes[name] == "int64" else
                   random.normal(0, 1, graph.shape(name))).astype(graph.dtypes[name])
            for name in graph.inputs
        }
        for _ in range(4)
    ]  # fmt: skip
    result = quantise(graph, Calibration(tuple(samples)), search=False)
    assert result.agreement.unexplained == 0
    assert result.costs.decibels > 20
    network = import_proto(to_model(result.model), "odd")
    inputs = random_inputs(network)
    aim = target()
    with SimulatedVta(aim) as device:
        bundle = read_bundle(compile_network(network, aim).data, "odd")
        inference = Network(bundle, device, keep=True).run(inputs)
    expected = evaluate(network, inputs)
    inside = inside_of(bundle.manifest)
    assert compare(inference.tensors, expected, network, inside).tensors == len(network.tensors) - len(inside)
    (wanted, *_), given = run_float(model, inputs), expected[network.outputs[0]]
    noise = float(np.mean((wanted - given) ** 2) / np.mean(wanted**2))
    assert noise < 0.02  # the original model's answer, not only that of the canonical form
    return {each.op for each in network.nodes}
