"""Measures a board's processor: a small network runs there, and its times against the model of the core give a factor.

The factor is kept in HILT_HOME, so that compiling needs no board and gives the same bundle each time. A virtual board's
processor is this machine's, whose times say nothing of the board: it stays assumed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median

import numpy as np

from hilt.network.board_run import BoardRunner, target_of
from hilt.network.compile import compile_network
from hilt.network.core_speed import Core, core_of, node_work, step_seconds
from hilt.network.graph import Graph, Node, Tensor
from hilt.network.kept_speed import keep_speed
from hilt.network.processor import ProcessorSpeed, assumed_speed
from hilt.network.random_inputs import random_inputs
from hilt.virtual.names import PREFIX
from hilt_runtime import StepRun, read_bundle
from hilt_runtime.arrays import encode_arrays

_SMALL, _LARGE = 8, 64
"""Pixels of a side of the two feature maps."""
_CHANNELS = 16
_REPEAT = 9
_SHORTEST = 1e-7


def measure_processor(runner: BoardRunner) -> ProcessorSpeed:
    """Measure the processor of a board, and keep the result for later compilations.

    Raises as BoardRunner.run.
    """
    name = runner.connection.name
    if name.startswith(PREFIX):
        return assumed_speed(core_of(name))
    graph = timed_network()
    compiled = compile_network(graph, target_of(name), on_processor=True)
    bundle = read_bundle(compiled.data, graph.name)
    answer = runner.run(bundle, compiled.data, encode_arrays(random_inputs(graph), {}), repeat=_REPEAT)
    inferences = [[StepRun(*step) for step in run["steps"]] for run in answer.runs]
    seconds = {
        step["name"]: median(run[place].ended - run[place].began for run in inferences)
        for place, step in enumerate(bundle.manifest["steps"])
    }
    speed = ProcessorSpeed(core_of(name), times_slower(graph, seconds, core_of(name)), f"measured on {name}")
    keep_speed(name, speed)
    return speed


def times_slower(graph: Graph, seconds: Mapping[str, float], core: Core) -> float:
    """Return the geometric mean of the measured seconds of each node over those of the model."""
    ratios = [
        max(seconds[node.name], _SHORTEST) / step_seconds(core, "native", node_work(graph, node))
        for node in graph.nodes
    ]
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def timed_network() -> Graph:
    """Return a convolution and an addition, each of a small and of a large feature map."""
    tensors: dict[str, Tensor] = {}
    nodes = []
    weights = np.random.default_rng(0).integers(-40, 41, (_CHANNELS, _CHANNELS, 3, 3)).astype(np.int8)
    for size, side in (("small", _SMALL), ("large", _LARGE)):
        shape = (1, _CHANNELS, side, side)
        for name in (f"x {size}", f"conv2d {size}.y", f"add {size}.y"):
            tensors[name] = Tensor(name, shape, "int8", 1.0)
        convolution = {
            "strides": [1, 1],
            "pads": [1, 1, 1, 1],
            "groups": 1,
            "dilations": [1, 1],
            "input_dilation": [1, 1],
            "shift": [9],
            "clip": [-128, 127],
        }
        addition = {"left_shifts": [0, 0], "shift": 1, "clip": [-128, 127]}
        nodes.append(Node(f"conv2d {size}", "conv2d", (f"x {size}", "weights"), (f"conv2d {size}.y",), convolution))
        nodes.append(Node(f"add {size}", "add", (f"x {size}", f"conv2d {size}.y"), (f"add {size}.y",), addition))
    inputs, outputs = ("x small", "x large"), ("add small.y", "add large.y")
    return Graph("processor", inputs, outputs, tuple(nodes), tensors, {"weights": weights})
