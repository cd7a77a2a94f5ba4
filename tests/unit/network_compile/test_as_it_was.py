"""Small networks compile to the accepted result: where each node runs, its program, its place in memory, its cycles.

Other tests hold that a bundle computes right. A change that makes it slower, larger or otherwise placed shows here. If
it is meant: `build/host-env/bin/pytest tests/unit/network_compile/test_as_it_was.py --snapshot-update`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from hilt.network import core_speed
from hilt.network.compile import compile_network
from hilt.network.core_speed import (
    CORES,
    StepWork,
    chain_seconds,
    fold_of_floats_work,
    node_work,
    pack_work,
    packed_work,
    pieces_of,
    step_seconds,
    unpack_work,
)
from hilt.network.graph import Graph
from hilt.network.network_view import network_view
from hilt.network.predicted import predicted_profile
from hilt.network.target import CompileTarget
from hilt_runtime import read_bundle

from .graphs import BATCHED, SMALL, Builder, banded, target, without_table


def gated() -> Graph:
    """A product, a table, a concat, a mean that gates, an upsampling: nodes that the processor may take."""
    builder = Builder((1, 16, 6, 6), 3)
    same = {"divisor": 1, "shift": 7, "clip": [-128, 127]}
    left, right = builder.conv("x", 16), builder.conv("x", 16, 1)
    product = builder.add_node("product", "multiply", [left, right], (1, 16, 6, 6), same)
    builder.constants["table"] = builder.random.integers(-128, 128, 256).astype(np.int8)
    looked_up = builder.add_node("table", "table", [product, "table"], (1, 16, 6, 6), {})
    both = builder.add_node("both", "concat", [looked_up, left], (1, 32, 6, 6), {"axis": 1})
    below = builder.conv(both, 16)
    pooled = {"divisor": 1, "shift": 5, "clip": [-128, 127]}
    mean = builder.add_node("mean", "global_average_pool", [below], (1, 16, 1, 1), pooled)
    all_of_it = builder.add_node("gated", "multiply", [below, mean], (1, 16, 6, 6), same)
    larger = builder.add_node("larger", "upsample", [all_of_it], (1, 16, 12, 12), {"factors": [2, 2]})
    return builder.graph(builder.conv(larger, 8))


def mobile() -> Graph:
    """Channel by channel, with strides and dilation, between products over channels."""
    builder = Builder((1, 24, 6, 5), 5)
    wide = builder.conv("x", 40, 1)
    deep = builder.conv(wide, 40, groups=40, stride=2)
    narrow = builder.conv(deep, 24, 1)
    far = builder.conv(builder.conv(narrow, 40, 1), 40, 3, groups=40, dilation=2)
    pool = {"kernel": [2, 2], "strides": [1, 1], "pads": [0, 0, 1, 1]}
    peak = builder.add_node("peak", "max_pool", [builder.conv(far, 24, 1, residual=narrow)], (1, 24, 3, 3), pool)
    flat = builder.add_node("flat", "reshape", [peak], (1, 216), {"shape": [1, 216]})
    return builder.graph(builder.dense(builder.dense(flat, 40), 12))


def first_layer() -> Graph:
    """A few channels of a larger image, whose columns fold into the channels."""
    builder = Builder((1, 3, 20, 24), 7)
    return builder.graph(builder.conv(builder.conv("x", 16, 5, stride=2), 32, 3, groups=2))


CASES: dict[str, tuple[Callable[[], Graph], CompileTarget]] = {
    "gated": (gated, target()),
    "gated, small buffers, without table": (gated, without_table(target(SMALL))),
    "mobile, in bands": (mobile, banded(target(BATCHED))),
    "first layer": (first_layer, target()),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_it_is_as_it_was(name: str, snapshot: SnapshotAssertion) -> None:
    make, aim = CASES[name]
    graph = make()
    manifest = read_bundle(compile_network(graph, aim).data, "m").manifest
    view = network_view(graph, manifest, predicted_profile(graph, manifest), {})
    assert "\n".join([*_lines(manifest), *map(_node, view["nodes"])]) == snapshot


def test_times_of_steps(snapshot: SnapshotAssertion) -> None:
    """The model of each core, which decides where a node runs, over every operator that it tells apart.

    Times are in microseconds: alone on one core, in pieces whose helpers sleep or watch, from memory, and in numpy.
    """
    lines = [f"{name}: {core}" for name, core in CORES.items()]
    operators = sorted({*core_speed._PER_ELEMENT, *core_speed._PER_MAC, "Reshape", "Pad", "Erf", "Transpose", "Other"})
    works = [StepWork(op, 4096, 9000, 0, 0, 1) for op in operators]
    works += [StepWork(op, 4096, 9000, 1 << 16, 0, 1) for op in (*core_speed._PER_MAC, "Conv")]
    works += [StepWork("add", 1 << 20, 3 << 20), StepWork("conv2d", 4096, 9000, 1 << 20), pack_work((1, 3, 9, 9), 1296)]
    works += [pack_work((1, 3, 9, 9), 1296, fold=True, last=True, copied=400), unpack_work((1, 3, 9, 9), 1296)]
    works += [pack_work((1, 3, 9, 9), 1296, last=True), fold_of_floats_work((1, 3, 9, 9), 1296)]
    works += [packed_work(StepWork(op, 512, 900), 1024, 2048) for op in ("add", "max_pool", "multiply")]
    for work in works:
        times = [
            step_seconds(core, engine, work, awake, quiet)
            for core in CORES.values()
            for engine, awake, quiet in (("native", False, False), ("native", True, True), ("numpy", False, False))
        ]
        lines.append(f"{work.op} {work.elements} {work.macs} {work.parts}: {_microseconds(times)}")
    chain = [StepWork("quantize", 1 << 16, 5 << 16), StepWork("Reshape", 1, 0), StepWork("Gather", 1 << 16, 1 << 17)]
    for core in CORES.values():
        lines.append(f"chain on {core.name}: {_microseconds(chain_seconds(core, chain, 12, 6 << 16))}")
        lines.append(f"awake: {_microseconds(chain_seconds(core, chain, 12, 6 << 16, awake=True))}")
        lines.append(f"pieces {[pieces_of(core, [work]) for work in works]}, of the chain {pieces_of(core, chain)}")
    assert "\n".join(lines) == snapshot


def _microseconds(times: Iterable[float]) -> str:
    return " ".join(f"{1e6 * each:.5g}" for each in times)


@pytest.mark.parametrize("name", CASES)
def test_work_of_nodes(name: str, snapshot: SnapshotAssertion) -> None:
    graph = CASES[name][0]()
    assert "\n".join(f"{node.name}: {node_work(graph, node)}" for node in graph.nodes) == snapshot


def _lines(manifest: dict[str, Any]) -> Iterator[str]:
    yield f"memory {manifest['memory']}"
    for kind in ("constants", "buffers"):
        for name, facts in sorted(manifest[kind].items()):
            yield f"{kind} {name}: {facts}"
    for program in manifest["programs"]:
        part = manifest["parts"][program["instructions"]]["sha256"][:12]
        yield f"program of {program['count']} instructions, {program['cycles']} cycles, {part}"
        yield f"  relocations of {', '.join(sorted(each['buffer'] for each in program['relocations']))}"
    for layer in manifest["layers"]:
        yield f"layer {layer}"
    for step in manifest["steps"]:
        yield f"step {step}"
    words = "".join(facts["sha256"] for _, facts in sorted(manifest["parts"].items()))
    yield f"all parts {hashlib.sha256(words.encode()).hexdigest()[:12]}"


def _node(node: dict[str, Any]) -> str:
    return f"node {node['name']} {node['where']}: {node['reason']}"
