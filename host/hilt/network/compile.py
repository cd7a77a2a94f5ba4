"""The compiler from an integer graph to a bundle: placement, schedules, programs, memory, steps."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from hilt.network.aliases import Aliases
from hilt.network.graph import PAD_VALUE, Graph
from hilt.network.graph_file import MEMBER, graph_bytes
from hilt.network.images_at_once import require_single_image
from hilt.network.packed_layout import packable
from hilt.network.partition import ByNode, Placement, Tuned, parts, place
from hilt.network.plan import Planner
from hilt.network.search import Searcher
from hilt.network.skip_blocks import lacks_blocks
from hilt.network.target import CompileTarget
from hilt.network.together import chosen_together
from hilt.network.vta_form import in_vta_form
from hilt.vta.parameters import VTAParameters
from hilt_runtime.archive import array_bytes, entry
from hilt_runtime.bundle import FORMAT, MANIFEST, VERSION


class UnplaceableError(ValueError):
    """A node that neither VTA nor the processor can run."""


@dataclass(frozen=True, eq=False)
class Compiled:
    """A bundle's bytes, its manifest, where each node runs, and the graph that these nodes are of."""

    data: bytes
    manifest: dict[str, Any]
    placements: list[Placement]
    form: Graph


def compile_network(
    graph: Graph,
    target: CompileTarget,
    tuned: Tuned | None = None,
    tell: Callable[[str], None] = lambda line: None,
    by_node: ByNode | None = None,
    on_processor: bool = False,
    on_node: Callable[[int, int], None] = lambda done, total: None,
) -> Compiled:
    """Return the bundle of a network for a target.

    Args:
        graph: The integer graph.
        target: The accelerator, its bitstream and its memory.
        tuned: Knobs of layers that have a tuned schedule; the others get the twin's best.
        tell: Called with a line before each step that takes time.
        by_node: Knobs of nodes that were measured in the form that the network has; they go before `tuned`.
        on_processor: Whether every node runs on the processor, to measure it.
        on_node: Is called with the nodes that have a place, and all of them.

    Raises:
        UnplaceableError: A node can run nowhere.
        GraphError: The target's lanes hold bands, and the network has several images.
        ProgramError: A layer is longer than an instruction buffer.
    """
    _require_operators(graph)
    if target.bands:
        require_single_image(packable(graph))
    searcher = Searcher(target.accelerator, target.memory, target.machine)
    tell(f"placing {len(graph.nodes)} nodes")
    if on_processor:
        placements = [Placement(node, None, None, "the processor is measured") for node in graph.nodes]
        placed, aliases = graph, Aliases(graph, target.layout)
    else:

        def place_in(form: Graph) -> tuple[Aliases, list[Placement]]:
            within = Aliases(form, target.layout)
            return within, place(form, searcher, tuned or {}, by_node, target.processor, on_node, within)

        placed, aliases, placements = _placed(graph, target.layout.parameters, place_in)
    grouped = parts(placed, placements)
    tell(f"joining layers to {sum(part.on_vta for part in grouped)} programs")
    grouped = [chosen_together(part, searcher, aliases) if part.on_vta else part for part in grouped]
    schedules = {placement.node.name: placement.schedule for part in grouped for placement in part.placements}
    placements = [replace(placement, schedule=schedules[placement.node.name]) for placement in placements]
    merged = [name for name in graph.tensors if name not in placed.tensors]
    planner = Planner(placed, target, searcher, grouped, aliases, inside=merged)
    manifest, arrays = planner.plan()
    manifest["placements"] = [_placement_facts(placement) for placement in placements]
    return Compiled(bundle_bytes(manifest, arrays, graph), manifest, placements, placed)


def _placed(
    graph: Graph, parameters: VTAParameters, place_in: Callable[[Graph], tuple[Aliases, list[Placement]]]
) -> tuple[Graph, Aliases, list[Placement]]:
    """Return a graph in the form that VTA runs, and where its nodes run.

    A convolution whose border or residual VTA alone knows gets its Pad back where it has no place there, and all is
    placed again.
    """
    apart = set[str]()
    while True:
        form = in_vta_form(graph, parameters, apart)
        aliases, placements = place_in(form)
        beside = [each.node for each in placements if not each.on_vta]
        lacking = {node.name for node in beside if PAD_VALUE in node.attributes or lacks_blocks(form, node)}
        if not lacking:
            return form, aliases, placements
        if lacking <= apart:
            raise UnplaceableError(f"node {min(lacking)} has no place on VTA, and no other processor runs it")
        apart |= lacking


def _require_operators(graph: Graph) -> None:
    from hilt_runtime.operators import OPERATORS

    for node in graph.nodes:
        if node.op not in OPERATORS:
            raise UnplaceableError(
                f"node {node.name} is {node.op}, which neither VTA nor hilt's runtime computes; "
                "take it out of the model, or run it before or behind the network"
            )


def _placement_facts(placement: Placement) -> dict[str, Any]:
    where = "view" if placement.view else "vta" if placement.on_vta else "processor"
    facts: dict[str, Any] = {"node": placement.node.name, "op": placement.node.op, "where": where}
    facts["reason"] = placement.reason
    if placement.schedule is not None:
        facts["knobs"], facts["origin"] = dict(placement.schedule.knobs), placement.schedule.origin
    return facts


def bundle_bytes(manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], graph: Graph) -> bytes:
    """Return a bundle's contents: a zip file of a manifest (JSON) and arrays (.npy, no pickles), none compressed.

    The manifest names each array's SHA-256 and bytes. The same network, target and schedules make the same bytes.
    `hilt_runtime.bundle` reads the file. `arrays` are by the names that the manifest uses, `graph` is for the host.
    """
    reference = graph_bytes(graph)
    parts = {}
    contents = {}
    for name, array in arrays.items():
        data = array_bytes(array)
        contents[name] = data
        parts[name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    whole = {"format": FORMAT, "version": VERSION, **manifest, "parts": parts}
    whole["reference"] = hashlib.sha256(reference).hexdigest()
    text = json.dumps(whole, indent=1, sort_keys=True).encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(entry(MANIFEST), text)
        archive.writestr(entry(MANIFEST + ".sha256"), hashlib.sha256(text).hexdigest())
        for name, data in contents.items():
            archive.writestr(entry(name), data)
        archive.writestr(entry(MEMBER), reference)
    return file.getvalue()
