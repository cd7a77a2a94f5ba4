"""The steps of a bundle that the native engine runs strip by strip (hilt_runtime.native.strips), and their time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hilt.network.core_speed import Core, StepWork, chain_seconds, item_bytes, node_work
from hilt.network.graph import Graph
from hilt_runtime.native.folds import folds_of_floats
from hilt_runtime.native.joins import joined_in_place
from hilt_runtime.native.readings import quiet_steps
from hilt_runtime.native.strips import KnownTensors, StripChain, chains


def chains_of(graph: Graph, manifest: Mapping[str, Any], engines: Mapping[str, str]) -> list[StripChain]:
    """Return the chains that the native engine makes of a bundle's steps; `engines` has the engine of each."""
    outputs = {output["name"] for output in manifest["outputs"]}
    return chains(manifest["steps"], _tensors(graph), _native(engines), outputs)


def quiet_of(graph: Graph, manifest: Mapping[str, Any], engines: Mapping[str, str]) -> frozenset[int]:
    """Return the places of the steps behind which the native engine does not read the clock."""
    return quiet_steps(manifest["steps"], _tensors(graph), _native(engines))


def joined_of(graph: Graph, manifest: Mapping[str, Any], engines: Mapping[str, str]) -> frozenset[int]:
    """Return the places of the Concats that copy nothing."""
    return joined_in_place(manifest["steps"], _tensors(graph), _native(engines))


def folds_of(manifest: Mapping[str, Any], engines: Mapping[str, str], chains: Iterable[StripChain]) -> dict[int, int]:
    """Return the places of the folds that quantise their image themselves, with those of the quantisations."""
    chained = {place for chain in chains for place in range(chain.first, chain.last)}
    outputs = {output["name"] for output in manifest["outputs"]}
    found = folds_of_floats(manifest["steps"], manifest["buffers"], _native(engines), outputs)
    return {place: before for place, before in found.items() if before not in chained}


def _native(engines: Mapping[str, str]) -> Callable[[Mapping[str, Any]], bool]:
    return lambda step: engines.get(step["name"], "native").startswith("native")


def chain_works(graph: Graph, manifest: Mapping[str, Any], chain: StripChain) -> list[StepWork]:
    """Return the work of each step of a chain."""
    nodes = {node.name: node for node in graph.nodes}
    own = [nodes[step["name"]] for step in manifest["steps"][chain.first : chain.last]]
    return [node_work(graph, node) for node in own]


def chain_times(core: Core, graph: Graph, chain: StripChain, works: Sequence[StepWork], awake: bool) -> list[float]:
    """Return the seconds of each step of a chain on a core; `awake`: the helpers need not be woken."""
    tensors = _tensors(graph)
    moved = sum(tensors.item(name) * math.prod(tensors.shape(name) or ()) for name in chain.moved)
    return chain_seconds(core, works, -(-chain.rows // chain.height), moved, awake)


def _tensors(graph: Graph) -> KnownTensors:
    def shape(name: str) -> tuple[int, ...] | None:
        known = graph.tensors.get(name)
        if known is not None:
            return tuple(known.shape)
        return tuple(graph.constants[name].shape) if name in graph.constants else None

    def item(name: str) -> int:
        known = graph.tensors.get(name)
        return item_bytes(str(graph.constants[name].dtype) if known is None else known.dtype)

    return KnownTensors(shape, item, graph.constants.get)
