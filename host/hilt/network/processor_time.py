"""The processor's part of an inference, in the board's time.

A physical board's steps are measured there. A virtual board's steps run on this machine, whose times say nothing of the
board: each step takes the seconds that the stated model of the board's core gives it (hilt.network.core_speed). They
are assumed, and whoever shows them says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hilt.network.chain_time import chain_times, chain_works, chains_of, folds_of, joined_of, quiet_of
from hilt.network.core_speed import (
    START_SECONDS,
    Core,
    Engine,
    StepWork,
    core_of,
    fold_of_floats_work,
    node_work,
    pack_work,
    packed_work,
    pieces_of,
    step_seconds,
    unpack_work,
)
from hilt.network.graph import Graph
from hilt.network.vta_form import in_vta_form
from hilt.virtual.names import PREFIX
from hilt.vta.parameters import VTAParameters
from hilt_runtime.native.in_place import read_in_place
from hilt_runtime.native.split import AWAKE_MICROSECONDS


@dataclass(frozen=True)
class ProcessorTime:
    """Turns seconds, as the agent's process counted them, into the board's.

    Attributes:
        steps: The seconds of each step of the processor by its place in the manifest; empty if they are measured.
        start_seconds: One start of VTA on the board; None if it is measured.
        assumed: The assumptions, in words; empty if everything is measured.
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
        engines: The engine of each step, by its name (hilt.network.board_run.Inferences).

    Raises UnknownBoardModelError or BoardNameError of a virtual board that there is none of.
    """
    return modelled_time(core_of(board), graph, manifest, engines) if board.startswith(PREFIX) else MEASURED


def modelled_time(core: Core, graph: Graph, manifest: Mapping[str, Any], engines: Mapping[str, str]) -> ProcessorTime:
    """Return the times of the stated model of a core."""
    graph = _with_made(graph, VTAParameters.from_name(manifest["target"]["parameters"]))
    all_steps = manifest["steps"]
    chains = {chain.first: chain for chain in chains_of(graph, manifest, engines)}
    free, folds = set(read_in_place(manifest)), folds_of(manifest, engines, chains.values())
    free |= {*folds.values(), *joined_of(graph, manifest, engines)}
    quiet = quiet_of(graph, manifest, engines)
    helpers = _Helpers(math.inf)
    steps: dict[int, float] = {}
    used = set[Engine]()
    place = 0
    while place < len(all_steps):
        chain = chains.get(place)
        if all_steps[place]["kind"] == "vta":
            helpers = _Helpers(0.0)  # who waits for VTA rouses them
            place += 1
        elif chain is not None:
            works = chain_works(graph, manifest, chain)
            times = chain_times(core, graph, chain, works, helpers.awake)
            steps.update(zip(range(chain.first, chain.last), times, strict=True))
            helpers.after(pieces_of(core, works) > 1, sum(times))
            used.add("native")
            place = chain.last
        else:
            engine: Engine = _engine_of(all_steps[place], engines)
            work = (_fold_work if place in folds else _work_of)(graph, manifest, all_steps[place])
            steps[place] = 0.0
            if engine != "native" or place not in free:
                steps[place] = step_seconds(core, engine, work, helpers.awake, place in quiet)
            helpers.after(engine == "native" and pieces_of(core, [work]) > 1, steps[place])
            used.add(engine)
            place += 1
    starts: Engine = "numpy" if used == {"numpy"} else "native"
    how = " and ".join(sorted(used)) or starts
    words = f"assumed of a {core.name}, {core.cores} cores, {how}, at most {core.error:g} times off"
    return ProcessorTime(steps, START_SECONDS[starts], words)


def _with_made(graph: Graph, parameters: VTAParameters) -> Graph:
    """Return a graph and the nodes and tensors of its form for VTA, joins of channels say, which steps may name."""
    form = in_vta_form(graph, parameters)
    made = {node.name for node in form.nodes}
    return replace(
        form,
        nodes=(*form.nodes, *(node for node in graph.nodes if node.name not in made)),
        tensors={**graph.tensors, **form.tensors},
        constants={**graph.constants, **form.constants},
    )


@dataclass
class _Helpers:
    """The threads on the other cores: they watch for pieces for a while after they were asked to."""

    quiet: float
    """Seconds since then; infinite while they sleep."""

    @property
    def awake(self) -> bool:
        return self.quiet * 1e6 <= AWAKE_MICROSECONDS

    def after(self, shared: bool, seconds: float) -> None:
        """Go on behind a step of so many seconds, which was theirs too or not."""
        self.quiet = 0.0 if shared else self.quiet + seconds


def _engine_of(step: Mapping[str, Any], engines: Mapping[str, str]) -> Engine:
    return "native" if engines.get(step["name"], "native").startswith("native") else "numpy"


def _line(shape: Sequence[int], last: bool) -> int:
    """Return the elements of a row of each image's tensor, all channels."""
    images, channels, height, width = (*shape, 1, 1)[:4]
    return images * (channels * width if not last else height * width)


def _fold_work(graph: Graph, manifest: Mapping[str, Any], step: Mapping[str, Any]) -> StepWork:
    """Return the work of a fold that quantises its image itself."""
    size = manifest["buffers"][step["buffer"]]["bytes"]
    return fold_of_floats_work(graph.tensors[step["tensor"]].shape, size, "channels_last" in step)


def _work_of(graph: Graph, manifest: Mapping[str, Any], step: Mapping[str, Any]) -> StepWork:
    """Return the work of a step of the processor that is in no chain."""
    if step["kind"] == "cpu":
        (node,) = (node for node in graph.nodes if node.name == step["name"])
        work = node_work(graph, node)
        if "packed" not in step:
            return work
        sizes = {name: manifest["buffers"][buffer]["bytes"] for name, buffer in step["packed"].items()}
        work = packed_work(work, sizes[step["outputs"][0]], sum(sizes.values()))
        return replace(work, op=f"{node.op} of lanes") if "channels" in step["attributes"] else work
    size = manifest["buffers"][step["buffer"]]["bytes"]
    if step["kind"] == "pack":
        shape = graph.tensors[step["tensor"]].shape
        rows = step.get("fold", {}).get("rows", {"kernel": 0, "count": 0})
        copied = rows["kernel"] * rows["count"] * _line(shape, "channels_last" in step)
        return pack_work(shape, size, "fold" in step, "channels_last" in step, copied)
    return unpack_work(step["shape"], size)
