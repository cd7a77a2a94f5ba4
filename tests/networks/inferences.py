"""Measures the whole inference of one network: `python -m tests.networks.inferences NAME WHEELS BOARD`.

VTA's time is the twin's, whose cycles are the RTL's. The board's processor is the stated model of its core. "Here" is
the processor's part on this machine: the runtime with a device that does nothing.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from hilt.network import zoo
from hilt.network.board_run import target_of
from hilt.network.calibration import Calibration, make_calibration, shapes_from
from hilt.network.compile import compile_network
from hilt.network.core_speed import core_of
from hilt.network.graph import Graph
from hilt.network.latency import Latency
from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_graph import OnnxGraph, load_graph
from hilt.network.onnx_simplify import fix_float, fixed_model
from hilt.network.processor_time import modelled_time
from hilt.network.profile import profile
from hilt.network.quantize.quantizer import quantise
from hilt.network.random_inputs import random_arrays
from hilt.network.target import aimed
from hilt.network.tflite.convert import load_tflite
from hilt_runtime import Network, read_bundle
from hilt_runtime.device import VtaDevice
from hilt_runtime.native.library import Engine, engine
from hilt_runtime.register_protocol import DeviceRun
from tests.zoo.networks import SUBJECTS

OWN = {"ResNet-18, random weights": "resnet18", "DS-CNN, random weights": "ds_cnn"}
"""Networks that hilt makes: their weights say nothing of answers, and change no time."""
_CALIBRATED = 16
_TIMED = 9


def measure(name: str, folder: Path, board: str) -> dict[str, Any]:
    """Return the figures of a network of the zoo, or of OWN, on a virtual board, in microseconds."""
    graph = _quantised(*_own(OWN[name]) if name in OWN else _of_the_zoo(name, folder))
    data = compile_network(graph, aimed(target_of(board), graph, None)).data
    manifest = read_bundle(data, name).manifest
    found: dict[str, Any] = {
        "name": name,
        "packed": sum(step["kind"] in ("pack", "unpack") for step in manifest["steps"]),
        "operators": sum(step["kind"] == "cpu" for step in manifest["steps"]),
    }
    for kind, chosen in (("native", engine()), ("numpy", Engine(None, "numpy: asked for"))):
        here, engines = _here(data, chosen)
        latency = _on_board(graph, manifest, engines, board)
        found[kind] = latency.to_dict() | {"rate": latency.rate, "here": here}
    return found


def _own(name: str) -> tuple[OnnxGraph, dict[str, Any]]:
    graph = fixed_model(zoo.make(name), name)
    return graph, {"input": zoo.calibration_data(name, 2)}


def _of_the_zoo(name: str, folder: Path) -> tuple[OnnxGraph, dict[str, Any]]:
    (subject,) = (each for each in SUBJECTS if each.name == name)
    path = subject.file(folder)
    if path is None:
        raise SystemExit("its file is not there")
    arrays = subject.data(path)
    graph = load_tflite(path) if path.suffix == ".tflite" else load_graph(path)
    fix_float(graph, shapes_from(arrays, graph, ""), subject.values)
    return graph, arrays


def _quantised(graph: OnnxGraph, arrays: dict[str, Any]) -> Graph:
    canonicalise(graph)
    samples = make_calibration(arrays, graph).samples[:_CALIBRATED]
    return quantise(graph, Calibration(samples), search=False).graph


def _on_board(graph: Graph, manifest: dict[str, Any], engines: dict[str, str], board: str) -> Latency:
    """Return the whole inference on the board: as predicted_profile, with what each engine really computes."""
    steps = [
        [
            *(step["kind"], step["name"], 0.0, 0.0, 0.0),
            manifest["programs"][step["program"]]["cycles"] if step["kind"] == "vta" else None,
        ]
        for step in manifest["steps"]
    ]
    return profile(manifest, [{"steps": steps}], modelled_time(core_of(board), graph, manifest, engines)).latency


class _Idle(VtaDevice):
    """A device whose programs end at once: the processor's steps take what they take."""

    table = window = bands = True

    def allocate(self, size: int) -> Any:
        memory = np.zeros(size + 64, np.uint8).view(_Memory)
        return memory[-memory.ctypes.data % 64 :][:size]

    def run(self, instructions: Any, count: int, limit_seconds: float, expected_seconds: float = 0.0) -> DeviceRun:
        return DeviceRun("ok", "", 0, 0.0)


class _Memory(np.ndarray[Any, np.dtype[np.uint8]]):
    physical_address = 0

    def flush(self) -> None:
        pass

    def invalidate(self) -> None:
        pass


def _here(data: bytes, chosen: Engine) -> tuple[float, dict[str, str]]:
    """Return microseconds of the processor's steps on this machine, and the engine of each step."""
    with Network(read_bundle(data, "network"), _Idle(), engine=chosen) as network:
        inputs = random_arrays(network.bundle.inputs)
        times = []
        for _ in range(_TIMED):
            started = time.perf_counter()
            network.run(inputs)
            times.append(time.perf_counter() - started)
        return 1e6 * median(times[1:]), network.engines()


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]), sys.argv[3])), flush=True)
