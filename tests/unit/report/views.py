"""Networks for pages: a small one that was compiled, and a long one that was not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hilt.network.compile import compile_network
from hilt.network.network_view import network_view
from hilt.network.predicted import predicted_profile
from tests.unit.network_compile.graphs import SMALL, Builder, target


def small_view() -> dict[str, Any]:
    """Return the view of two layers and a table on the processor, as it is predicted."""
    made = Builder((1, 16, 8, 8))
    first = made.conv("x", 16)
    graph = made.graph(made.conv(first, 16, residual="x"))
    graph = replace(graph, name="small<script>", decibels={graph.nodes[0].name: 31.5})
    aim = replace(target(SMALL), board="virtual:pynq")
    manifest = compile_network(graph, aim).manifest
    return network_view(graph, manifest, predicted_profile(graph, manifest), {})


def long_view(nodes: int = 195) -> dict[str, Any]:
    """Return a view of so many nodes with skips, each 100 us; four in five on VTA."""
    view = small_view()
    first = view["nodes"][0]
    view["nodes"] = [
        {**first, "name": f"features.block_{place}.conv", "microseconds": 100.0}
        | {"where": "vta" if place % 5 else "numpy"}
        for place in range(nodes)
    ]
    view["edges"] = [[place - 1, place, f"t{place}"] for place in range(nodes + 1)]
    view["edges"] += [[place - 3, place, f"t{place}"] for place in range(4, nodes, 4)]
    view["slices"] = [
        {"kind": "vta" if place % 5 else "cpu", "name": f"features.block_{place}.conv", "began": 100.0 * place,
         "microseconds": 100.0, "image": 0, "node": place}
        for place in range(nodes)
    ]  # fmt: skip
    total = 100.0 * nodes
    view["latency"] |= {"total": total, "vta": 0.8 * total, "processor": 0.2 * total, "start": 0.0, "crossings": 0.0}
    return view
