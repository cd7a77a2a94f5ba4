"""Networks for pages: a small one that was compiled, and a long one that was not."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

from hilt.network.compile import compile_network
from hilt.network.latency import Latency
from hilt.network.network_view import network_view
from hilt.network.predicted import predicted_profile
from tests.unit.network_compile.graphs import SMALL, Builder, target


def small_view() -> dict[str, Any]:
    """Return a view of its own of two layers and a table on the processor, as it is predicted."""
    return deepcopy(_small_view())


@cache
def _small_view() -> dict[str, Any]:
    made = Builder((1, 16, 8, 8))
    first = made.conv("x", 16)
    graph = made.graph(made.conv(first, 16, residual="x"))
    graph = replace(graph, name="small<script>", decibels={graph.nodes[0].name: 31.5})
    aim = replace(target(SMALL), board="virtual:pynq")
    manifest = compile_network(graph, aim).manifest
    return network_view(graph, manifest, predicted_profile(graph, manifest), {})


def long_view(nodes: int = 195) -> dict[str, Any]:
    """Return a view by hand of so many nodes with skips, each 100 us; four in five on VTA."""
    names = [f"features.block_{place}.conv" for place in range(nodes)]
    by_processor = -(-nodes // 5)
    latency = Latency(100.0 * (nodes - by_processor), 0.0, 0.0, 100.0 * by_processor, 1, "assumed of a core")
    return {
        "name": "long",
        "board": "virtual:pynq",
        "parameters": "1x16_i8w8a32_15_15_18_17",
        "clock_hz": 100_000_000,
        "latency": latency.to_dict(),
        "parts": [list(part) for part in latency.parts],
        "runs": "2 inferences ran",
        "utilisation": 0.5,
        "nodes": [_node(place, name) for place, name in enumerate(names)],
        "edges": [[place - 1, place, f"t{place}"] for place in range(nodes + 1)]
        + [[place - 3, place, f"t{place}"] for place in range(4, nodes, 4)],
        "slices": [
            {"kind": "vta" if place % 5 else "cpu", "name": name, "began": 100.0 * place, "microseconds": 100.0,
             "image": 0, "node": place}
            for place, name in enumerate(names)
        ],
    }  # fmt: skip


def _node(place: int, name: str) -> dict[str, Any]:
    facts = {
        "name": name, "op": "conv2d", "where": "vta" if place % 5 else "native",
        "engine": "" if place % 5 else "native",
        "reason": "VTA takes 100 us (twin)", "shape": [1, 16, 32, 32], "dtype": "int8", "scale": 0.0625,
        "decibels": 30.0 - place % 7, "microseconds": 100.0,
    }  # fmt: skip
    if place % 5:
        facts |= {"cycles": 10_000.0, "macs": 500_000, "utilisation": 0.5, "bound_share": 0.8, "schedule": "tuned"}
        facts["knobs"] = {"tile_h": 8, "tile_w": 16}
    return facts
