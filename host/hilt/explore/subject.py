"""The network of an exploration: a graph that the compiler takes, or the layers of a table."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hilt.network import zoo
from hilt.network.calibration import Calibration, CalibrationError
from hilt.network.graph import Graph, GraphError
from hilt.network.graph_file import graph_bytes
from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_graph import OnnxError, OnnxGraph, load_graph
from hilt.network.onnx_import import import_model
from hilt.network.onnx_simplify import fix_float, fixed_model
from hilt.network.quantize.quantizer import quantise
from hilt.schedule.networks import load_network
from hilt.schedule.onnx_model import SUFFIX
from hilt.schedule.workload import WorkloadError

_SAMPLES = 2


@dataclass(frozen=True, eq=False)
class Subject:
    """A network: its graph, or without one its layers on VTA (workload, count) and why it has no graph."""

    name: str
    graph: Graph | None
    layers: tuple[tuple[str, int], ...] = ()
    note: str = ""

    @property
    def key(self) -> str:
        """Return a digest of the graph or the layers."""
        if self.graph is not None:
            return hashlib.sha256(graph_bytes(self.graph)).hexdigest()
        return hashlib.sha256(repr((self.name, self.layers)).encode()).hexdigest()


def load_subject(text: str) -> Subject:
    """Return a network of the catalogue, or of a file.

    A model in float, and hilt's own networks, are quantised with random samples: the values of weights and tensors
    change no time. Of other networks of the catalogue the layers are known alone.

    Raises WorkloadError, OnnxError.
    """
    if text in zoo.NETWORKS:
        data = zoo.calibration_data(text, _SAMPLES)
        graph = fixed_model(zoo.make(text), text)
        return Subject(
            text, _quantised(graph, [{graph.inputs[0]: data[place : place + 1]} for place in range(len(data))])
        )
    if not text.endswith(SUFFIX):
        try:
            return _of_layers(text, "")
        except WorkloadError as error:
            raise WorkloadError(f"{error}; `hilt explore` has {', '.join(zoo.NETWORKS)} too") from None
    name = Path(text).stem
    try:
        with suppress(OnnxError, GraphError):  # in float, or quantised by others
            return Subject(name, import_model(Path(text)))
        model = load_graph(Path(text))
        fix_float(model, {}, {})
        return Subject(name, _quantised(model, _random_samples(model)))
    except (OnnxError, GraphError, CalibrationError) as error:
        return _of_layers(text, str(error))


def _of_layers(text: str, note: str) -> Subject:
    network = load_network(text)
    if not network.supported:
        raise OnnxError(note or f"network {network.name} has no layer that VTA can run")
    return Subject(network.name, None, tuple((layer.workload, layer.count) for layer in network.supported), note)


def _quantised(graph: OnnxGraph, samples: list[dict[str, Any]]) -> Graph:
    canonicalise(graph)
    return quantise(graph, Calibration(tuple(samples)), search=False).graph


def _random_samples(graph: OnnxGraph) -> list[dict[str, Any]]:
    random = np.random.default_rng(0)
    return [
        {
            name: random.normal(0, 1, graph.shape(name)).astype(graph.dtypes.get(name, "float32"))
            for name in graph.inputs
        }
        for _ in range(_SAMPLES)
    ]
