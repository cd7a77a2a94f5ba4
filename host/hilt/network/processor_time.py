"""The processor's part of an inference, in the board's time.

A physical board's steps are measured there. A virtual board's steps run on this machine, whose times say nothing of the
board: each step takes the seconds that the stated model of the board's core gives it (hilt.network.core_speed). They
are assumed, and whoever shows them says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hilt.network.chain_time import chain_times, chains_of
from hilt.network.core_speed import (
    START_SECONDS,
    Core,
    Engine,
    core_of,
    node_work,
    pack_work,
    packed_work,
    step_seconds,
    unpack_work,
)
from hilt.network.graph import Graph
from hilt.virtual.names import PREFIX


@dataclass(frozen=True)
class ProcessorTime:
    """Turns seconds, as the agent's process counted them, into the board's.

    Attributes:
        steps: The seconds of each step of the processor by its place in the manifest; empty if they are measured.
        start_seconds: One start of VTA on the board; None if it is measured.
        assumed: What was assumed, in words; empty if everything is measured.
    """

    steps: Mapping[int, float] = field(default_factory=dict)
    start_seconds: float | None = None
    assumed: str = ""

    def step(self, place: int, seconds: float) -> float:
        """Return the board's seconds of a step of the processor."""
        return self.steps.get(place, 0.0) if self.assumed else max(seconds, 0.0)

    def between(self, seconds: float) -> float:
        """Return the board's seconds between two steps; the model has them in the steps."""
        return 0.0 if self.assumed else max(seconds, 0.0)

    def start(self, seconds: float) -> float:
        """Return the board's seconds of one start of VTA, without VTA's own time."""
        return max(seconds, 0.0) if self.start_seconds is None else self.start_seconds


MEASURED = ProcessorTime()


def processor_time(board: str, graph: Graph, manifest: Mapping[str, Any], engines: Mapping[str, str]) -> ProcessorTime:
    """Return how the times of inferences on a board are read.

    Args:
        board: The board that they ran on.
        graph: The network.
        manifest: Its bundle's.
        engines: What computed each step, by its name (hilt.network.board_run.Inferences).

    Raises UnknownBoardModelError or BoardNameError of a virtual board that there is none of.
    """
    return modelled_time(core_of(board), graph, manifest, engines) if board.startswith(PREFIX) else MEASURED


def modelled_time(core: Core, graph: Graph, manifest: Mapping[str, Any], engines: Mapping[str, str]) -> ProcessorTime:
    """Return the times of the stated model of a core."""
    nodes = {node.name: node for node in graph.nodes}
    steps = {}
    used = set[Engine]()
    for place, step in enumerate(manifest["steps"]):
        if step["kind"] == "vta":
            continue
        engine: Engine = "native" if engines.get(step["name"], "native").startswith("native") else "numpy"
        used.add(engine)
        if step["kind"] == "cpu":
            work = node_work(graph, nodes[step["name"]])
            if "packed" in step:
                sizes = {name: manifest["buffers"][buffer]["bytes"] for name, buffer in step["packed"].items()}
                work = packed_work(work, sizes[step["outputs"][0]], sum(sizes.values()))
                if "channels" in step["attributes"]:
                    work = replace(work, op="lanes")
        else:
            size = manifest["buffers"][step["buffer"]]["bytes"]
            shape = graph.tensors[step["tensor"]].shape
            if step["kind"] == "pack":
                work = pack_work(shape, size, "fold" in step, "channels_last" in step)
            else:
                work = unpack_work(shape, size)
        steps[place] = step_seconds(core, engine, work)
    for chain in chains_of(graph, manifest, engines):
        steps.update(zip(range(chain.first, chain.last), chain_times(core, graph, manifest, chain), strict=True))
    starts: Engine = "numpy" if used == {"numpy"} else "native"
    how = " and ".join(sorted(used)) or starts
    words = f"assumed of a {core.name}, {core.cores} cores, {how}, at most {core.error:g} times off"
    return ProcessorTime(steps, START_SECONDS[starts], words)
