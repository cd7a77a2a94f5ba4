"""An inference that did not run: VTA by the twin's cycles, the processor by the stated model of its core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hilt.network.core_speed import (
    START_SECONDS,
    core_of,
    node_work,
    pack_work,
    step_seconds,
    unpack_work,
)
from hilt.network.graph import Graph
from hilt.network.processor_time import ProcessorTime
from hilt.network.profile import Profile, profile_of
from hilt.network.timeline import timeline


def predicted_profile(graph: Graph, manifest: Mapping[str, Any]) -> Profile:
    """Return the profile of an inference on the board that a bundle is for, without a board."""
    core = core_of(manifest["target"]["board"])
    nodes = {node.name: node for node in graph.nodes}
    steps: list[list[Any]] = []
    now = 0.0
    for step in manifest["steps"]:
        cycles = None
        if step["kind"] == "vta":
            cycles = manifest["programs"][step["program"]]["cycles"]
            seconds = cycles / manifest["target"]["clock_hz"]
        elif step["kind"] == "cpu":
            seconds = step_seconds(core, "native", node_work(graph, nodes[step["name"]]))
        else:
            shape = graph.tensors[step["tensor"]].shape
            size = manifest["buffers"][step["buffer"]]["bytes"]
            packs = step["kind"] == "pack"
            work = pack_work(shape, size, "fold" in step) if packs else unpack_work(shape, size)
            seconds = step_seconds(core, "native", work)
        steps.append([step["kind"], step["name"], now, now + seconds, seconds if cycles is not None else 0.0, cycles])
        now += seconds
    start = START_SECONDS["native"]
    words = f"predicted of a {core.name} with the native engine, VTA by the twin's cycles; nothing ran"
    time = ProcessorTime(1.0, start, words)
    return profile_of(manifest, [timeline(manifest, {"steps": steps}, time)], words)
