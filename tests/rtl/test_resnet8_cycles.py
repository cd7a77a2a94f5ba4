"""ResNet-8's eight convolutions as one network on the RTL, beside a public AutoTVM result on the same core geometry."""

from __future__ import annotations

import numpy as np
import pytest

from hilt.network.compile import compile_network
from hilt.network.graph import Graph
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt.network.verify import compare
from hilt_runtime import Network, read_bundle
from tests.unit.network_compile.graphs import SMALL, Builder, target

PUBLIC = (51_299, None, 11_507, 26_955, 44_451, 7_097, 22_961, 41_752)
"""Cycles of a public project's AutoTVM schedules on Chisel hardware of this geometry, by layer (all: 275,137)."""
LAYERS = (
    "16>16 3x3, first",
    "16>16 3x3, second",
    "16>32 1x1 s2",
    "16>32 3x3 s2",
    "32>32 3x3",
    "32>64 1x1 s2",
    "32>64 3x3 s2",
    "64>64 3x3",
)
MOST = 215_000
BOUND = 188_416


def eight_convolutions(skips: bool) -> Builder:
    """The convolutions behind the first layer of MLPerf Tiny's image classification; with its sums, if `skips`."""
    builder = Builder((1, 16, 32, 32))

    def residual(name: str) -> dict[str, object]:
        return {"residual": name, "residual_shift": 7} if skips else {}

    relu = {"clip": [0, 127]}
    first = builder.conv(builder.conv("x", 16, **relu), 16, **relu, **residual("x"))  # type: ignore[arg-type]
    for channels in (32, 64):
        shortcut = builder.conv(first, channels, 1, stride=2)
        inner = builder.conv(first, channels, stride=2, **relu)
        first = builder.conv(inner, channels, **relu, **residual(shortcut))  # type: ignore[arg-type]
    return builder


def outputs(graph: Graph) -> tuple[str, ...]:
    return tuple(name for name, readers in graph.consumers().items() if not readers)


@pytest.mark.parametrize("skips", [False, True])
def test_eight_convolutions_in_one_program(skips: bool) -> None:
    builder = eight_convolutions(skips)
    graph = builder.graph(*outputs(builder.graph()))
    aim = target(SMALL)
    compiled = compile_network(graph, aim)
    data = builder.input()
    with SimulatedVta(aim, "rtl") as device:
        inference = Network(read_bundle(compiled.data, "resnet8"), device, keep=True).run({"x": data})
    compare(inference.tensors, evaluate(graph, {"x": data}), graph)
    (cycles,) = (step.cycles for step in inference.steps if step.kind == "vta")
    assert cycles is not None and cycles == compiled.manifest["programs"][0]["cycles"]
    layers = compiled.manifest["layers"]
    assert sum(layer["bound"] for layer in layers) == BOUND and sum(layer["macs"] for layer in layers) == 12_058_624
    print(f"\n{'layer':18} {'MACs':>10} {'cycles':>8} {'public':>8} {'bound':>8}")
    for name, layer, public in zip(LAYERS, layers, PUBLIC, strict=True):
        beside = "" if public is None else f"{public:,}"
        print(f"{name:18} {layer['macs']:10,} {layer['cycles']:8,} {beside:>8} {layer['bound']:8,}")
    print(f"{'all, with skips' if skips else 'all':18} {12_058_624:10,} {cycles:8,} {275_137:8,} {BOUND:8,}")
    assert cycles <= MOST
    assert np.array_equal(inference.outputs[graph.outputs[-1]], evaluate(graph, {"x": data})[graph.outputs[-1]])
