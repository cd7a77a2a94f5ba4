"""A network as plain values for pictures: nodes with their place and time, edges, and the timeline of one inference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hilt.network.graph import Graph, Node
from hilt.network.latency import runs_text
from hilt.network.profile import LayerTime, Profile, layers_of
from hilt.network.timeline import CROSSINGS, TimeSlice
from hilt.network.verify import inside_of


def network_view(
    graph: Graph, manifest: Mapping[str, Any], figures: Profile, engines: Mapping[str, str]
) -> dict[str, Any]:
    """Return a network and one inference of it as plain values.

    Args:
        graph: The integer graph of the bundle.
        manifest: The bundle's.
        figures: The inference.
        engines: The engine of each step of the processor, by its name (hilt.network.board_run.Inferences).
    """
    latency = figures.latency
    places = {node.name: place for place, node in enumerate(graph.nodes)}
    return {
        "name": manifest["name"],
        "board": manifest["target"]["board"],
        "parameters": manifest["target"]["parameters"],
        "clock_hz": manifest["target"]["clock_hz"],
        "latency": latency.to_dict(),
        "parts": [list(part) for part in latency.parts],
        "runs": runs_text(latency),
        "utilisation": figures.utilisation,
        "nodes": _nodes(graph, manifest, figures, engines),
        "edges": _edges(graph),
        "slices": _slices(manifest, figures, places),
    }


def _nodes(
    graph: Graph, manifest: Mapping[str, Any], figures: Profile, engines: Mapping[str, str]
) -> list[dict[str, Any]]:
    placements = _placements(graph, manifest)
    layers = {layer.name: layer for layer in figures.layers}
    knobs = {layer["name"]: layer["knobs"] for layer in manifest["layers"]}
    names = {place: step["name"] for place, step in enumerate(manifest["steps"]) if step["kind"] == "cpu"}
    steps: dict[str, float] = {}
    for each in figures.timeline:
        if each.kind == "cpu":
            steps[names[each.step]] = steps.get(names[each.step], 0.0) + each.microseconds
    found = []
    for node in graph.nodes:
        placement = placements[node.name]
        tensor = graph.tensors[node.outputs[0]]
        facts = {
            "name": node.name,
            "op": node.op,
            "where": _place(node, placement["where"], engines.get(node.name, "native")),
            "engine": "" if placement["where"] in ("vta", "view") else engines.get(node.name, "native"),
            "reason": placement["reason"],
            "shape": list(tensor.shape),
            "dtype": tensor.dtype,
            "scale": tensor.scale,
            "decibels": graph.decibels_of(node),
            "microseconds": steps.get(node.name, 0.0),
        }
        layer = layers.get(node.name)
        found.append(facts if layer is None else facts | _layer(layer, knobs.get(node.name, {})))
    return found


def _placements(graph: Graph, manifest: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the placement of each node by name; a node whose output is never made runs nowhere."""
    inside = inside_of(manifest)
    gone = {"where": "view", "reason": "nothing makes its output: the layers that read it compute without"}
    other = {"where": "processor", "reason": ""}
    known = {each["node"]: each for each in manifest["placements"]}
    return {node.name: known.get(node.name, gone if inside.issuperset(node.outputs) else other) for node in graph.nodes}


def _place(node: Node, where: str, engine: str) -> str:
    """Return where a node runs: vta, the processor in float, else by native or numpy; or nowhere, as a view."""
    if where in ("vta", "view"):
        return where
    is_float = node.op[:1].isupper() or node.op in ("quantize", "dequantize")
    return "float" if is_float else "native" if engine.startswith("native") else "numpy"


def _layer(layer: LayerTime, knobs: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "microseconds": layer.microseconds,
        "cycles": layer.cycles,
        "macs": layer.macs,
        "utilisation": layer.utilisation,
        "bound_share": layer.bound_share,
        "schedule": layer.schedule,
        "knobs": dict(knobs),
        "op": layer.op,
    }


def _edges(graph: Graph) -> list[list[Any]]:
    """Return (producer, consumer, tensor) by nodes' places; -1 produces the network's inputs."""
    made = {name: place for place, node in enumerate(graph.nodes) for name in node.outputs}
    made |= dict.fromkeys(graph.inputs, -1)
    edges = [
        [made[name], place, name] for place, node in enumerate(graph.nodes) for name in node.inputs if name in made
    ]
    return edges + [[made[name], len(graph.nodes), name] for name in graph.outputs if name in made]


def _slices(manifest: Mapping[str, Any], figures: Profile, places: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the timeline with VTA's programs split into their layers, each with its node's place or None."""
    found = []
    for each in figures.timeline:
        step = manifest["steps"][each.step]
        if not each.on_vta:
            found.append(_slice(each, _track(each), places.get(step["name"]) if each.kind == "cpu" else None))
            continue
        began = each.began
        for layer in layers_of(manifest, step["program"], each.microseconds):
            part = TimeSlice("vta", layer.name, began, layer.microseconds, each.step, each.image)
            found.append(_slice(part, "VTA", places.get(layer.name)))
            began += layer.microseconds
    return found


def _track(each: TimeSlice) -> str:
    return "crossing" if each.kind in CROSSINGS else each.kind


def _slice(each: TimeSlice, kind: str, node: int | None) -> dict[str, Any]:
    return {
        "kind": kind.lower(),
        "name": each.name,
        "began": each.began,
        "microseconds": each.microseconds,
        "image": each.image,
        "node": node,
    }
