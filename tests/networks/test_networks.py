"""Whole networks on two virtual boards: every tensor is the reference's, and ONNX Runtime's but for rounding ties.

MLPerf Tiny's four and ResNet-18 are made here; three networks come in wheels of PyPI. `make network-tests` runs them
(a quarter of an hour).
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilt.network import zoo
from hilt.network.board_run import BoardRunner, target_of
from hilt.network.calibration import make_calibration
from hilt.network.compile import compile_network
from hilt.network.graph import Graph
from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_graph import OnnxGraph, load_graph, to_model
from hilt.network.onnx_import import import_proto
from hilt.network.onnx_simplify import fix, fixed_model
from hilt.network.processor_time import processor_time
from hilt.network.profile import profile
from hilt.network.quantize.quantizer import quantise
from hilt.network.random_inputs import random_inputs
from hilt.network.reference import evaluate
from hilt.network.verify import compare, inside_of
from hilt_runtime import read_bundle
from hilt_runtime.arrays import encode_arrays
from tests.e2e.conftest import shared_home as shared_home

RUN = "HILT_NETWORKS"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(7200),  # minutes, but for a machine that does much else
    pytest.mark.skipif(not os.environ.get(RUN), reason="minutes for each network: `make network-tests` runs them"),
]
BOARDS = ("virtual:pynq", "virtual:zcu104")


@dataclass(frozen=True)
class Wheel:
    """A network in an installed package: where it is, and the shapes of its open inputs."""

    package: str
    path: str
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)


OWN = ("resnet8", "ds_cnn", "mobilenet_v1", "autoencoder", "resnet18")
WHEELS = {
    "text direction": Wheel(
        "rapidocr_onnxruntime", "models/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 192)}
    ),
    "text detection": Wheel("rapidocr_onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx", {"x": (1, 3, 160, 160)}),
    "nudenet": Wheel("nudenet", "320n.onnx", {"images": (1, 3, 320, 320)}),
}


@dataclass(frozen=True, eq=False)
class Quantised:
    """A network's integer graph, and the share of int8 values in which ONNX Runtime rounds a tie the other way."""

    graph: Graph
    ties: float
    unexplained: int


@cache
def quantised(name: str) -> Quantised:
    graph = _from_wheel(WHEELS[name]) if name in WHEELS else fixed_model(zoo.make(name), name)
    canonicalise(graph)
    generator = np.random.default_rng(0)
    data = {each: generator.standard_normal((2, *graph.shape(each)[1:])).astype(np.float32) for each in graph.inputs}
    if name in OWN:
        data = {"input": zoo.calibration_data(name, 2)}
    result = quantise(graph, make_calibration(data, graph), search=False)
    ties = result.agreement.ties / result.agreement.values
    return Quantised(import_proto(to_model(result.model), name), ties, result.agreement.unexplained)


def _from_wheel(wheel: Wheel) -> OnnxGraph:
    found = importlib.util.find_spec(wheel.package)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"the package {wheel.package} is not installed; `make network-tests` installs it")
    graph = load_graph(Path(found.submodule_search_locations[0]) / wheel.path)
    fix(graph, wheel.shapes, {})
    return graph


@pytest.fixture(scope="module", params=BOARDS)
def runner(request: pytest.FixtureRequest, shared_home: Path) -> Iterator[BoardRunner]:
    with BoardRunner(request.param) as opened:
        yield opened


@pytest.mark.parametrize("name", [*OWN, *WHEELS])
def test_every_tensor_is_the_references(name: str, runner: BoardRunner, capsys: pytest.CaptureFixture[str]) -> None:
    network = quantised(name)
    board = runner.connection.name
    compiled = compile_network(network.graph, target_of(board))
    inputs: dict[str, Any] = random_inputs(network.graph)
    bundle = read_bundle(compiled.data, name)
    answer = runner.run(bundle, compiled.data, encode_arrays(inputs, {}), keep=True)
    verified = compare(answer.arrays, evaluate(network.graph, inputs), network.graph, inside_of(bundle.manifest))
    time = processor_time(board, network.graph, bundle.manifest, answer.engines)
    figures = profile(bundle.manifest, answer.runs, time)
    with capsys.disabled():
        print(
            f"\n{name} on {board}: VTA {figures.vta / 1e3:,.2f} ms, {100 * figures.utilisation:.1f} % of its peak; "
            f"{verified.tensors} tensors, {verified.elements:,} elements equal to the reference; of ONNX Runtime's "
            f"int8 values {100 * network.ties:.4f} % are ties rounded otherwise, {network.unexplained} differ otherwise"
        )
    assert network.unexplained == 0
