"""The last check of a file before it is used: read back, computed by the reference, against ONNX Runtime.

Earlier checks compare node by node, on a graph that hilt has rewritten. This one compares the written file with the
model that the user gave: names, shapes, types and values of the outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.calibration import Runner
from hilt.network.graph import Graph
from hilt.network.graph_file import graph_of
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.random_inputs import random_inputs
from hilt.network.reference import evaluate
from hilt_runtime import read_bundle

Array = NDArray[Any]
Feeds = dict[str, Array]

LARGEST_MACS = 4e9
"""Multiply-accumulates of the reference that a check may take; a larger network is computed once."""
_SAMPLES = 2
_STEPS = 2.0
"""Difference, in steps of an output's int8, that ties of earlier layers may make."""
_SHARE = 0.98
"""Share of an output's values that must lie within it."""
_FLOAT_ERROR = 2e-3
"""Error of a rewritten float model, relative to the output's largest value."""


class WrongFileError(ValueError):
    """A file that computes something else than the model that it was made of."""


@dataclass(frozen=True)
class Checked:
    """The number of samples and of output values that were compared."""

    samples: int
    values: int


def check_rewritten(original: OnnxGraph, rewritten: OnnxGraph, samples: Sequence[Feeds]) -> None:
    """Compare a float model with the form that hilt has brought it to, in ONNX Runtime. Raises WrongFileError."""
    first_session, second_session = Runner(original, original.outputs), Runner(rewritten, rewritten.outputs)
    for feeds in samples[:_SAMPLES]:
        given = {name: feeds[name].astype(original.dtypes[name]) for name in original.inputs}
        wanted, made = first_session.run(given), second_session.run(feeds)
        for first, second in zip(original.outputs, rewritten.outputs, strict=True):
            _require_alike(first, wanted[first], made[second])
            _require_near(first, wanted[first], made[second])


def check_bundle(data: bytes, name: str, quantised: OnnxGraph) -> Checked:
    """Compare a bundle's own reference with ONNX Runtime on the quantised model, with seeded inputs: see check_file."""
    network = graph_of(read_bundle(data, name), data)
    return check_file(network, quantised, [random_inputs(network)])


def check_file(network: Graph, quantised: OnnxGraph, samples: Sequence[Feeds]) -> Checked:
    """Compare the graph of a file, read back, with ONNX Runtime on the quantised model.

    Args:
        network: The integer graph as the file has it.
        quantised: The QDQ model.
        samples: Inputs by name.

    Raises:
        WrongFileError: An output has another name, shape or type, or other values than ties explain.
    """
    macs = sum(network.macs(node) for node in network.nodes)
    if list(network.outputs) != list(quantised.outputs):
        raise WrongFileError(f"the file has the outputs {list(network.outputs)}, the model {list(quantised.outputs)}")
    chosen = samples[: max(min(_SAMPLES, int(LARGEST_MACS / max(macs, 1))), 1)]
    producers = quantised.producers()
    between = [name for name in network.tensors if name in producers]
    session, values = Runner(quantised, [*quantised.outputs, *between], optimised=False), 0
    for feeds in chosen:
        wanted = session.run(feeds)
        whole, node_by_node = evaluate(network, feeds), evaluate(network, feeds, wanted)
        for name in network.outputs:
            _require_alike(name, wanted[name], whole[name])
        for name in between:
            _require_ties(name, wanted[name], node_by_node[name])
            values += node_by_node[name].size
    return Checked(len(chosen), values)


def _require_alike(name: str, wanted: Array, made: Array) -> None:
    if made.shape != wanted.shape or made.dtype.kind != wanted.dtype.kind:
        raise WrongFileError(
            f"output {name} is {made.dtype} {made.shape}, and ONNX Runtime makes {wanted.dtype} {wanted.shape} of the "
            "model: report it with the model"
        )


def _require_near(name: str, wanted: Array, made: Array) -> None:
    if wanted.dtype.kind != "f":
        return
    near = np.isclose(made, wanted, _FLOAT_ERROR, 1e-6 + _FLOAT_ERROR * _largest(wanted), equal_nan=True)
    if near.size and near.mean() < _SHARE:
        raise WrongFileError(
            f"output {name} of the rewritten model differs from ONNX Runtime's of the model itself in "
            f"{int((~near).sum())} of {near.size} values: report it with the model"
        )


def _require_ties(name: str, wanted: Array, made: Array) -> None:
    """Allow some steps of a tensor's own scale, given ONNX Runtime's values in front of its node."""
    if wanted.dtype.kind not in "fi" or not wanted.size:
        return
    step = 1.0 if wanted.dtype.kind == "i" else _largest(wanted) / 127 + 1e-6
    near = made.shape == wanted.shape and np.isclose(made, wanted, 0, _STEPS * step, equal_nan=True).mean() >= _SHARE
    if not near:
        raise WrongFileError(
            f"tensor {name} of the file, read back, differs from ONNX Runtime's of the quantised model: report it with "
            "the model"
        )


def _largest(values: Array) -> float:
    return float(np.abs(values).max(initial=0, where=np.isfinite(values)))
