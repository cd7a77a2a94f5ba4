"""A campaign tunes the forms of layers that the network runs: their cycles on the RTL, the use of their schedules."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hilt.network.compile import compile_network
from hilt.network.graph import Graph, Node, Tensor
from hilt.network.layers import VtaLayer, layer_of
from hilt.network.partition import form_of, single_layer, tuned_options
from hilt.network.random_inputs import random_inputs
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt.network.tuned_forms import tuned_form, tuned_network
from hilt.network.verify import compare
from hilt.schedule import Conv2d, load_convolution, lower, make_tensors
from hilt.simulator.build import quick_build
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program
from hilt_runtime import Network, read_bundle

from .graphs import PYNQ, SMALL, Builder, target
from .test_aliases import concat, padded

KNOBS = {"tile_b": 1, "tile_h": 4, "tile_w": 8, "tile_ci": 1, "tile_co": 1, "oc_nthread": 1, "h_nthread": 2}
OTHERS = {**KNOBS, "tile_h": 2, "h_nthread": 1}


def four_forms() -> Builder:
    """Four convolutions of one shape: a bias far below the clip, one above it, two skips of different scales."""
    builder = Builder((1, 16, 8, 8))
    first = builder.conv("x", 16, clip=[0, 127])
    builder.constants["conv0.b"][:] = -1 << 18
    second = builder.conv(first, 16, clip=[0, 127])
    builder.constants["conv1.b"][:] = 1 << 20
    third = builder.conv(second, 16, residual=first, residual_shift=5)
    builder.conv(third, 16, residual=second, residual_shift=9)
    return builder


def layer(graph: Graph, number: int, parameters: str = SMALL) -> VtaLayer:
    found = layer_of(graph, graph.nodes[number], target(parameters).accelerator)
    assert isinstance(found, VtaLayer)
    return found


def form(graph: Graph, number: int) -> Conv2d:
    return tuned_form(layer(graph, number), target(SMALL).accelerator)


@pytest.mark.slow
@pytest.mark.rtl
@pytest.mark.parametrize("number", range(4), ids=["low_bias", "bias", "product_skip", "product_shifted_skip"])
def test_a_trials_cycles_are_those_of_the_layer_in_the_compiled_network(
    number: int, request: pytest.FixtureRequest
) -> None:
    aim = target(SMALL)
    builder = four_forms()
    graph = builder.graph("conv3.y")
    workload = form(graph, number)
    assert workload.epilogue == request.node.callspec.id
    tensors = make_tensors(workload, aim.accelerator, seed=1)
    library = quick_build(aim.accelerator, "rtl")
    for knobs in ({**KNOBS, "loop_order": 1}, {**OTHERS, "loop_order": 3}):
        program = lower(workload, knobs, aim.accelerator)
        trial = run_program(library, program, tensors.inputs, memory=aim.memory, max_cycles=1_000_000)
        assert trial.execution.status is DeviceStatus.DONE
        assert np.array_equal(trial.output, tensors.expected.ravel())

        node = graph.nodes[number]
        alone = single_layer(graph, node)
        compiled = compile_network(alone, aim, by_node={node.name: [knobs]})
        (placement,) = compiled.placements
        assert placement.schedule is not None and placement.schedule.knobs == knobs
        values = np.random.default_rng(2)
        shapes = {name: alone.tensors[name].shape for name in alone.inputs}
        inputs = {name: values.integers(-128, 128, shape).astype(np.int8) for name, shape in shapes.items()}
        with SimulatedVta(aim, "rtl") as device:
            inference = Network(read_bundle(compiled.data, "m"), device, keep=True).run(inputs)
        compare(inference.tensors, evaluate(alone, inputs), alone)
        (vta,) = [step for step in inference.steps if step.kind == "vta"]
        assert vta.cycles == trial.execution.cycles


def of_moved_channels() -> Graph:
    builder = Builder((1, 16, 8, 8))
    first = builder.conv("x", 24)
    return builder.graph(builder.conv(concat(builder, first, builder.conv(first, 24)), 24))


def in_parts() -> Graph:
    builder = Builder((1, 48, 8, 8))
    return builder.graph(builder.conv(builder.conv("x", 48, 1), 72, groups=3))


def with_fewer_blocks() -> Graph:
    builder = Builder((1, 16, 8, 8))
    return builder.graph(builder.conv("x", 40, residual=padded(builder, builder.conv("x", 24), 16)))


@pytest.mark.slow
@pytest.mark.usefixtures("quick_search")
@pytest.mark.parametrize("make", [of_moved_channels, in_parts, with_fewer_blocks])
def test_a_layer_of_the_form_that_the_network_runs_is_measured_alone(make: Callable[[], Graph]) -> None:
    graph, aim = make(), target()
    network = compile_network(graph, aim)
    layers = [placement for placement in network.placements if form_of(placement) is not None]
    assert {name for placement in layers for name in placement.node.inputs} - {*graph.tensors, *graph.constants, ""}
    for placement in layers:
        alone = single_layer(network.form, placement.node)
        compiled = compile_network(alone, aim)
        assert [form_of(each) for each in compiled.placements] == [form_of(placement)]
        inputs = random_inputs(alone)
        with SimulatedVta(aim) as device:
            inference = Network(read_bundle(compiled.data, "m"), device, keep=True).run(inputs)
        compare(inference.tensors, evaluate(alone, inputs), alone)


def test_layers_of_one_shape_and_form_are_one_workload() -> None:
    graph = four_forms().graph("conv3.y")
    found = tuned_network(graph, "small", target(SMALL).accelerator)
    shape = "conv2d:n=1,ci=16,h=8,w=8,co=16,k=3x3,s=1x1,p=1x1,bias=1,epilogue="
    assert [(each.workload, each.nodes) for each in found.layers] == [
        (f"{shape}low_bias", ["conv0"]),
        (f"{shape}bias", ["conv1"]),
        (f"{shape}product_skip", ["conv2"]),
        (f"{shape}product_shifted_skip", ["conv3"]),
    ]
    assert [each.macs for each in found.layers] == [8 * 8 * 16 * 16 * 9] * 4
    assert found.others == {}


def test_other_shifts_clips_and_scales_are_the_same_workload() -> None:
    builder = Builder((1, 16, 8, 8))
    first = builder.conv("x", 16)
    second = builder.conv(first, 16, clip=[0, 90], shift=[11])
    third = builder.conv(second, 16, residual=first, residual_shift=2)
    builder.conv(third, 16, residual=first, residual_shift=6, clip=[0, 127])
    found = tuned_network(builder.graph("conv3.y"), "small", target(SMALL).accelerator)
    assert [each.nodes for each in found.layers] == [["conv0", "conv1"], ["conv2", "conv3"]]


def test_a_depthwise_layer_is_tuned_in_whole_blocks_of_channels() -> None:
    builder = Builder((1, 24, 8, 8))
    graph = builder.graph(builder.conv("x", 24, groups=24))
    (found,) = tuned_network(graph, "small", target(PYNQ).accelerator).layers
    workload = load_convolution(found.workload)
    assert (workload.in_channels, workload.groups) == (32, 2)


def test_the_first_layer_is_tuned_with_its_kernels_columns_as_channels() -> None:
    builder = Builder((1, 3, 32, 32))
    builder.tensors["q"] = Tensor("q", (1, 3, 32, 32), "int8", 1.0)
    builder.nodes.append(Node("quantize", "quantize", ("x",), ("q",), {}))
    graph = builder.graph(builder.conv("q", 16, 7, stride=2))
    network = tuned_network(graph, "small", target(PYNQ).accelerator)
    (found,) = network.layers
    assert network.others == {"quantize": 1}
    workload = load_convolution(found.workload)
    assert (workload.in_channels, workload.kernel, workload.width) == (21, (7, 1), 16)


def test_a_layer_behind_vta_keeps_its_kernels_columns() -> None:
    builder = Builder((1, 16, 32, 32))
    graph = builder.graph(builder.conv(builder.conv("x", 3), 16, 7, stride=2))
    found = tuned_network(graph, "small", target(PYNQ).accelerator).layers[1]
    assert load_convolution(found.workload).in_channels == 3


def test_a_node_that_vta_cannot_run_is_listed_with_its_reason() -> None:
    builder = Builder((1, 16, 8, 8))
    graph = builder.graph(builder.conv("x", 16, shift=[20]))
    (found,) = tuned_network(graph, "small", target(SMALL).accelerator).layers
    assert found.workload == "" and "shifted right by 20" in found.reason and found.macs


def test_schedules_tuned_in_the_layers_form_come_alone() -> None:
    graph = four_forms().graph("conv3.y")
    tuned = {form(graph, 0): [KNOBS], form(graph, 2): [OTHERS]}
    accelerator = target(SMALL).accelerator
    assert tuned_options(layer(graph, 0), tuned, accelerator) == ([KNOBS], True)
    assert tuned_options(layer(graph, 2), tuned, accelerator) == ([OTHERS], True)


def test_schedules_of_another_form_are_options_that_are_ranked_again() -> None:
    graph = four_forms().graph("conv3.y")
    accelerator = target(SMALL).accelerator
    tuned = {form(graph, 0): [KNOBS], form(graph, 2): [OTHERS]}
    assert tuned_options(layer(graph, 3), tuned, accelerator) == ([KNOBS, OTHERS], False)
    plain = {form(graph, 0).plain: [KNOBS], form(graph, 2): [OTHERS]}
    assert tuned_options(layer(graph, 1), plain, accelerator) == ([KNOBS], True)
    assert tuned_options(layer(graph, 3), plain, accelerator) == ([KNOBS], False)


def test_schedules_of_another_shape_are_none() -> None:
    graph = four_forms().graph("conv3.y")
    builder = Builder((1, 16, 8, 8))
    other = builder.graph(builder.conv("x", 32))
    assert tuned_options(layer(graph, 0), {form(other, 0): [KNOBS]}, target(SMALL).accelerator) == ([], False)
