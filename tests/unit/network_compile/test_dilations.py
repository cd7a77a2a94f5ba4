"""Dilated convolutions: VTA steps over the rows and columns between taps; the reference writes no zeros either."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from hilt.network.band_layers import placed_layer
from hilt.network.compile import compile_network
from hilt.network.graph import Graph
from hilt.network.kernels import gathered, spread
from hilt.network.layers import VtaLayer, folded, layer_of
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt.network.target import CompileTarget
from hilt.network.tuned_forms import tuned_form
from hilt.network.verify import compare, inside_of
from hilt.schedule import load_convolution
from hilt.schedule.workload_syntax import format_workload
from hilt_runtime import Network, read_bundle

from .graphs import BATCHED, PYNQ, SMALL, Builder, banded, target

pytestmark = pytest.mark.usefixtures("quick_search")

TARGETS: Mapping[str, CompileTarget] = {
    "1x16": target(PYNQ),
    "1x8, small": target(SMALL),
    "4x8": target(BATCHED),
    "4x8 in bands": replace(banded(target(BATCHED)), bands=True),
}


def far(shape: tuple[int, int, int], channels: int, kernel: int, dilation: int, **more: int) -> Graph:
    """Return a layer and a dilated one behind it."""
    builder = Builder((1, *shape), 4)
    return builder.graph(builder.conv(builder.conv("x", shape[0], 1), channels, kernel, dilation=dilation, **more))


def with_residual(shift: int) -> Graph:
    builder = Builder((1, 16, 11, 9), 4)
    made = builder.conv("x", 24, 1)
    return builder.graph(builder.conv(made, 24, 3, dilation=3, residual=made, residual_shift=shift))


def written_with_zeros() -> Graph:
    graph = far((16, 12, 9), 24, 3, 2)
    graph.constants["conv1.w"] = spread(graph.constants["conv1.w"], (2, 2))
    graph.nodes[1].attributes["dilations"] = [1, 1]
    return graph


FORMS: Mapping[str, Graph] = {
    "by two": far((16, 12, 9), 24, 3, 2),
    "by eight, further than the image": far((16, 12, 9), 24, 3, 8),
    "by three, with a stride": far((8, 13, 14), 16, 3, 3, stride=2),
    "of an even kernel": far((16, 10, 12), 16, 2, 4),
    "of five": far((24, 21, 9), 16, 5, 2),
    "written with zeros": written_with_zeros(),
    "in groups": far((16, 12, 12), 32, 3, 2, groups=2),
    "by channel": far((32, 11, 9), 32, 3, 2, groups=32),
    "by channel, some of a block": far((20, 14, 9), 20, 3, 4, groups=20),
    "with a residual": with_residual(5),
    "with a residual shifted further": with_residual(8),
    "whose bias is a product": far((16, 24, 20), 16, 3, 2),
}


FARTHER_THAN_A_LOAD = ("by eight, further than the image", "4x8 in bands")
"""Lanes would need rows of lanes three ahead."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "aim"),
    [
        *((form, aim) for form in FORMS for aim in ("1x16", "4x8 in bands")),
        *((form, aim) for form in ("of five", "by channel", "with a residual") for aim in ("1x8, small", "4x8")),
    ],
)
def test_every_tensor_is_the_references(form: str, aim: str) -> None:
    graph = FORMS[form]
    compiled = compile_network(graph, TARGETS[aim])
    others = [placement.node.name for placement in compiled.placements if not placement.on_vta]
    assert others == (["conv1"] if (form, aim) == FARTHER_THAN_A_LOAD else [])
    inputs = {"x": np.random.default_rng(8).integers(-128, 128, graph.tensors["x"].shape).astype(np.int8)}
    bundle = read_bundle(compiled.data, "m")
    with SimulatedVta(TARGETS[aim]) as device:
        inference = Network(bundle, device, keep=True).run(inputs)
    compare(inference.tensors, evaluate(graph, inputs), graph, inside_of(bundle.manifest))


def test_zeros_cost_no_products() -> None:
    """Nine taps take the products of nine, however far apart they are."""
    accelerator = target().accelerator
    for form, dilation in (("by two", 2), ("by eight, further than the image", 8), ("written with zeros", 2)):
        layer = layer_of(FORMS[form], FORMS[form].nodes[1], accelerator)
        assert isinstance(layer, VtaLayer)
        assert (layer.workload.kernel, layer.workload.dilation) == ((3, 3), (dilation, dilation))
        assert layer.weights.shape == (24, 16, 3, 3)
        assert layer.workload.macs == 24 * 16 * 9 * 12 * 9


def test_a_first_layers_columns_hold_the_zeros() -> None:
    builder = Builder((1, 2, 9, 9), 4)
    graph = builder.graph(builder.conv("x", 8, 3, dilation=2))
    layer = layer_of(graph, graph.nodes[0], target().accelerator)
    assert isinstance(layer, VtaLayer)
    narrow = folded(layer)
    assert narrow is not None and narrow.fold is not None and narrow.fold.kernel == 5
    assert (narrow.workload.kernel, narrow.workload.in_channels) == ((5, 1), 10)


def test_a_band_reads_the_rows_of_its_farthest_tap() -> None:
    graph, aim = FORMS["by two"], TARGETS["4x8 in bands"]
    layer = placed_layer(graph, graph.nodes[1], aim.accelerator, bands=True)
    assert layer.bands is not None
    assert (layer.bands.kernel, layer.bands.height) == (5, 2 + 5)


def test_gathered_kernels_are_the_spread_ones() -> None:
    random = np.random.default_rng(6)
    for _ in range(200):
        taps, dilation = random.integers(1, 5, 2), random.integers(1, 4, 2)
        weights = random.integers(-2, 3, (2, 2, *taps))
        made, found = gathered(spread(weights, dilation.tolist()))
        np.testing.assert_array_equal(spread(made, found), spread(weights, dilation.tolist()))
        assert all(gap % step == 0 or count == 1 for gap, step, count in zip(found, dilation, taps, strict=True))
    nothing = np.zeros((2, 2, 3, 3), np.int8)
    assert gathered(nothing)[0].shape == nothing.shape


def test_a_trial_runs_the_layer_with_its_dilation() -> None:
    graph, accelerator = FORMS["with a residual"], target().accelerator
    layer = layer_of(graph, graph.nodes[1], accelerator)
    assert isinstance(layer, VtaLayer)
    form = tuned_form(layer, accelerator)
    assert form.has_skip and form.dilation == (3, 3)
    assert load_convolution(format_workload(form)).schedule_shape == form.schedule_shape
