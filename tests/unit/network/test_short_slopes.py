"""Slopes get 7 bits in a quantised model, where VTA can multiply by them, and the rest of it stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import helper

from hilt.network.calibration import Calibration
from hilt.network.layers import layer_of
from hilt.network.lower_slopes import Slopes
from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_graph import graph_of
from hilt.network.onnx_simplify import fix
from hilt.network.quantize.quantizer import Quantisation, quantise
from hilt.network.quantize.short_slopes import short_slope, short_slopes
from hilt.vta.accelerator import Accelerator
from hilt.vta.parameters import VTAParameters

from .models import model_of

VTA = Accelerator.for_parameters(VTAParameters.from_name("1x16_i8w8a32_15_15_18_17"), table=False)


@pytest.mark.parametrize("largest", [2.0, 1.0, 0.999, 0.99, 0.6, 0.25, 0.1, 1e-3])
def test_a_slope_is_off_by_half_a_step_of_the_largest_at_most(largest: float) -> None:
    slopes = (np.random.default_rng(1).uniform(-1, 1, (16, 1, 1)) * largest).astype(np.float32)
    slopes[3] = largest
    made = short_slopes(slopes)
    assert made.dtype == np.float32 and made.shape == slopes.shape
    assert np.abs(made - slopes).max() <= largest / 126
    exponent = next(bits for bits in range(20) if np.array_equal(np.rint(made * 2.0**bits), made * 2.0**bits))
    assert np.abs(made * 2.0**exponent).max() <= 127


@pytest.mark.parametrize("slope", [0.01, 0.1, 0.2, 0.25, 0.3, 1 / 3])
def test_a_slope_of_all_channels_has_a_table_without_ties(slope: float) -> None:
    """Rounded half up it is the same table, so VTA's products are its entries."""
    made = short_slope(slope)
    assert 0 < abs(made - slope) <= 2**-9
    products = made * np.arange(-128, 0)
    np.testing.assert_array_equal(np.rint(products), np.floor(products + 0.5))


@pytest.mark.parametrize("slope", [0.5, 0.75, 1.5, -0.2])
def test_a_slope_of_all_channels_that_would_change_much_stays(slope: float) -> None:
    assert short_slope(slope) == slope


@pytest.mark.parametrize("slopes", [[0.07, 9.0], [-9.0, 0.07], [0.0, 0.0], []])
def test_slopes_that_would_change_much_and_zeros_stay(slopes: list[float]) -> None:
    given = np.array(slopes, np.float32)
    np.testing.assert_array_equal(short_slopes(given), given)


@pytest.mark.parametrize(
    ("least", "most"), [(-1.3, 1.9), (-0.1, 1.05), (-2.6, 4.0), (-4.1, 5.3), (1.01, 5.3), (-2.9, 0.9)]
)
def test_slopes_on_both_sides_of_one_and_their_differences_from_it_are_weights(least: float, most: float) -> None:
    slopes = np.random.default_rng(4).uniform(least, most, 64).astype(np.float32)
    slopes[:2] = least, most
    made = short_slopes(slopes)
    assert 0 < np.abs(made - slopes).max() <= 2**-5
    bits = next(bits for bits in range(20) if np.array_equal(np.rint(made * 2.0**bits), made * 2.0**bits))
    largest = np.abs(made).max() if most < 1 else max(np.abs(made).max(), np.abs(1 - made).max())
    assert largest * 2**bits <= 127


def quantised(middle: Any, kept: tuple[str, ...] = (), **constants: NDArray[Any]) -> Quantisation:
    """Return a network of a convolution, a node in the middle, and one more."""
    random = np.random.default_rng(2)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="first"),
        middle,
        helper.make_node("Conv", ["b", "v"], ["y"], name="last"),
    ]
    weights = {"w": random.normal(0, 1, (24, 3, 1, 1)), "v": random.normal(0, 1, (4, 24, 1, 1))}
    every = {name: value.astype(np.float32) for name, value in {**weights, **constants}.items()}
    graph = graph_of(model_of(nodes, {"x": (1, 3, 6, 6)}, every), "net")
    fix(graph, {}, {})
    canonicalise(graph)
    samples = tuple({"x": random.normal(0, 1, (1, 3, 6, 6)).astype(np.float32)} for _ in range(6))
    return quantise(graph, Calibration(samples), search=False, kept=kept)


@pytest.mark.parametrize(
    "middle",
    [
        helper.make_node("PRelu", ["a", "s"], ["b"], name="act"),
        helper.make_node("LeakyRelu", ["a"], ["b"], name="act", alpha=0.1),
        helper.make_node("LeakyRelu", ["a"], ["b"], name="act"),
    ],
    ids=["PRelu", "LeakyRelu of 0.1", "LeakyRelu"],
)
def test_vta_runs_what_the_quantiser_writes(middle: Any) -> None:
    for least, most in ((-0.2, 1.2), (-1.3, 3.9)):
        slopes = np.random.default_rng(3).uniform(least, most, (24, 1, 1))
        assert_on_vta(quantised(middle, s=slopes))


def assert_on_vta(made: Quantisation) -> None:
    assert made.agreement.unexplained == 0
    layer = layer_of(made.graph, made.graph.nodes[2], VTA)
    assert isinstance(layer.work, Slopes), layer  # type: ignore[union-attr]


@pytest.mark.parametrize(("largest", "kept"), [(9.0, ()), (0.9, ("act",))])
def test_large_slopes_and_those_of_kept_nodes_are_written_as_they_are(largest: float, kept: tuple[str, ...]) -> None:
    slopes = np.random.default_rng(3).uniform(0.5, largest, (24, 1, 1)).astype(np.float32)
    made = quantised(helper.make_node("PRelu", ["a", "s"], ["b"], name="act"), kept, s=slopes)
    (written,) = (node for node in made.model.nodes if node.op == "PRelu")
    np.testing.assert_array_equal(made.model.constants[written.inputs[1]], slopes)
