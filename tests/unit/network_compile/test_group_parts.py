"""Grouped convolutions in two parts: exact on the golden model, with fewer products, and without moving anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hilt.network.compile import compile_network
from hilt.network.graph import Graph, check
from hilt.network.group_parts import with_groups_in_parts
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt.network.target import CompileTarget, aimed
from hilt.network.tuned_forms import tuned_network
from hilt.network.verify import compare
from hilt.run_choices import Aim
from hilt.vta.parameters import VTAParameters
from hilt_runtime import Network, read_bundle

from .graphs import PYNQ, SMALL, Builder, banded, target

TWO = "2x16_i8w8a32_15_15_18_17"

SHIFTS = [6 + channel // 16 for channel in range(72)]
FORMS: dict[str, tuple[int, int, int, dict[str, Any], list[int]]] = {
    "three of 24": (72, 72, 3, {}, [2, 1]),
    "nine of 12": (108, 108, 9, {}, [8, 1]),
    "a shift for each block": (72, 72, 3, {"shift": SHIFTS}, [2, 1]),
    "two outputs a channel": (40, 80, 40, {}, [32, 8]),
    "more inputs than outputs": (144, 72, 9, {}, [8, 1]),
}
WHOLE = {
    "whole blocks": (96, 96, 4),
    "within a block": (40, 40, 5),
    "depthwise": (20, 20, 20),
    "fewer than fill blocks": (36, 36, 3),
    "plain": (24, 24, 1),
}


def grouped(
    inputs: int, outputs: int, groups: int, attributes: dict[str, Any] | None = None, images: int = 1
) -> tuple[Builder, Graph]:
    builder = Builder((images, inputs, 6, 5))
    data = builder.conv("x", inputs, 1)
    made = builder.conv(data, outputs, groups=groups, residual=data if inputs == outputs else "", **(attributes or {}))
    return builder, builder.graph(builder.conv(made, 16, 1))


def parts_of(graph: Graph, parameters: str = PYNQ) -> list[int]:
    made = with_groups_in_parts(graph, VTAParameters.from_name(parameters))
    check(made)
    return [node.attributes["groups"] for node in made.nodes if node.op == "conv2d"][1:-1]


@pytest.mark.parametrize("form", FORMS)
def test_the_groups_that_fill_blocks_are_apart(form: str) -> None:
    inputs, outputs, groups, attributes, parts = FORMS[form]
    _, graph = grouped(inputs, outputs, groups, attributes)
    assert parts_of(graph) == parts


@pytest.mark.parametrize("form", WHOLE)
def test_other_convolutions_stay_one(form: str) -> None:
    _, graph = grouped(*WHOLE[form])
    assert with_groups_in_parts(graph, VTAParameters.from_name(PYNQ)) is graph


def test_names_that_the_graph_has_are_left_to_it() -> None:
    _, graph = grouped(72, 72, 3)
    graph = replace(graph, nodes=(*graph.nodes[:-1], replace(graph.nodes[-1], name="conv1.0")))
    parts = with_groups_in_parts(graph, VTAParameters.from_name(PYNQ))
    check(parts)
    names = [node.name for node in parts.nodes]
    assert len(set(names)) == len(names) and {"conv1.0", "conv1.0_", "conv1.2"} <= set(names)


def test_parts_of_several_images_would_lie_apart() -> None:
    _, graph = grouped(72, 72, 3, images=2)
    assert parts_of(graph) == [3]
    assert parts_of(graph, TWO) == [2, 1]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_parts_are_exact_and_nothing_moves(form: str) -> None:
    inputs, outputs, groups, attributes, _ = FORMS[form]
    builder, graph = grouped(inputs, outputs, groups, attributes)
    assert steps_of_the_processor(builder, graph, target()) == ["pack", "unpack"]


@pytest.mark.slow
@pytest.mark.parametrize(("parameters", "images"), [(SMALL, 1), (TWO, 2)])
def test_parts_are_exact_on_other_blocks(parameters: str, images: int) -> None:
    builder, graph = grouped(108, 108, 9, images=images)
    assert parts_of(graph, parameters) == [8, 1]
    assert steps_of_the_processor(builder, graph, target(parameters)) == ["pack", "unpack"]


@pytest.mark.slow
def test_parts_in_bands_are_exact() -> None:
    builder, graph = grouped(72, 72, 3)
    aim = aimed(banded(target(TWO)), graph, Aim.LATENCY)
    assert aim.bands and steps_of_the_processor(builder, graph, aim) == ["pack", "unpack"]


def steps_of_the_processor(builder: Builder, graph: Graph, aim: CompileTarget) -> list[str]:
    """Return the kinds of a network's steps besides VTA's, after a run with all tensors compared."""
    bundle = read_bundle(compile_network(graph, aim).data, "model.hilt")
    data = {"x": builder.input()}
    with SimulatedVta(aim) as device:
        inference = Network(bundle, device, keep=True).run(data)
    assert compare(inference.tensors, evaluate(graph, data), graph).tensors >= len(graph.tensors) - 1
    return [step["kind"] for step in bundle.manifest["steps"] if step["kind"] != "vta"]


def test_each_part_is_tuned() -> None:
    _, graph = grouped(72, 72, 3)
    layers = tuned_network(graph, "net", target().accelerator).layers
    assert [layer.nodes for layer in layers] == [["conv0"], ["conv1.0"], ["conv1.2"], ["conv2"]]
    assert sum(layer.macs for layer in layers) == sum(graph.macs(node) for node in graph.nodes)
