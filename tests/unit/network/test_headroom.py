"""Ranges that few samples show have room for values to come; known ends, and ranges of held-out samples, have none."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from hilt.network.calibration import Calibration, Feeds, Runner, hold_out
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.quantize.headroom import NO_ENDS, NO_GROWTH, find_ends, growth
from hilt.network.quantize.quantizer import quantise
from hilt.network.quantize.statistics import best_exponent, observe, signal_to_noise

from .models import Array, canonical, model_of


def test_the_fewer_samples_and_the_more_they_differ_the_larger_is_the_room() -> None:
    def most(*peaks: float) -> float:
        return max(factor for factor, _ in growth(peaks))

    assert most(1) > most(1, 1) > most(1, 1, 1) > most(*[1] * 7) > 1.05
    assert most(1) == pytest.approx(np.exp(np.sqrt(3 * 2 * 0.2**2)))
    assert most(1, 2, 1) > most(1, 1.2, 1) > most(1, 1, 1)
    assert most(3, 6, 3) == pytest.approx(most(1, 2, 1)), "units do not matter"
    assert most(1, 1e-9) == most(1, 0.25), "a sample in which a tensor is next to empty tells little"
    assert growth([0, 0]) == NO_GROWTH
    assert sum(share for _, share in growth([1, 2])) == pytest.approx(1)


def _exponent(values: Array, *, headroom: bool) -> int:
    graph = canonical(model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": (1, 1, 16, 16)}, {}))
    return best_exponent([observe(graph, ["x"], [{"x": values}], headroom=headroom)["x"]])


def test_a_sample_that_fills_a_range_gets_the_next_one() -> None:
    values = np.random.default_rng(0).uniform(-1, 1, (1, 1, 16, 16)).astype(np.float32)
    assert _exponent(values * 0.99, headroom=False) == 7
    assert _exponent(values * 0.99, headroom=True) == 6
    assert _exponent(values * 0.55, headroom=True) == 7, "there is room"


@pytest.mark.parametrize(("mean", "scale"), [(0, 1), (0, 255), (127.5, 127.5)])
def test_images_of_bytes_lose_no_steps(mean: float, scale: float) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (1, 1, 16, 16))
    pixels[..., :2, 0] = 0, 255
    values = ((pixels - mean) / scale).astype(np.float32)
    assert _exponent(values, headroom=True) == _exponent(values, headroom=False)


def _ends(values: Array) -> tuple[float, float]:
    graph = canonical(model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": values.shape}, {}))
    return find_ends(graph, ["x"], [{"x": values}])["x"]


def test_bytes_end_255_steps_from_those_that_were_seen() -> None:
    image = np.arange(40, 240).astype(np.float32).reshape(1, 1, 10, 20)
    assert _ends(image) == (-16, 295)
    assert _ends(image / 255) == pytest.approx((-16 / 255, 295 / 255))
    both = np.concatenate([image / 100 - 1, image / 50 - 2], axis=1)
    assert _ends(both) == pytest.approx((-16 / 50 - 2, 295 / 50 - 2)), "each channel has its mean and scale"
    assert _ends(np.random.default_rng(0).normal(size=(1, 1, 10, 20)).astype(np.float32)) == NO_ENDS
    assert _ends(np.full((1, 1, 4, 4), 3, np.float32)) == NO_ENDS


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([helper.make_node("Sigmoid", ["x"], ["y"])], (0, 1)),
        ([helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("GlobalMaxPool", ["t"], ["y"])], (-1, 1)),
        ([helper.make_node("Clip", ["x", "zero", "six"], ["y"])], (0, 6)),
        ([helper.make_node("Clip", ["x", "zero"], ["y"])], (0, np.inf)),
        ([helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Concat", ["s", "x"], ["y"], axis=1)], NO_ENDS),
        ([helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Add", ["s", "s"], ["y"])], NO_ENDS),
    ],
)  # fmt: skip
def test_operators_tell_ends(nodes: list[object], expected: tuple[float, float]) -> None:
    constants = {"zero": np.float32(0), "six": np.float32(6)}
    graph = canonical(model_of(nodes, {"x": (1, 2, 4, 4)}, constants))
    values = np.random.default_rng(0).normal(size=(1, 2, 4, 4)).astype(np.float32)
    assert find_ends(graph, ["y"], [{"x": values}])["y"] == expected


def _network() -> OnnxGraph:
    """Return three convolutions with weights drawn by a seed, and two Relus."""
    shapes = {"w0": (16, 8, 3, 3), "w1": (16, 16, 3, 3), "w2": (24, 16, 1, 1)}
    random = np.random.default_rng(1)
    constants = {
        name: (random.normal(size=shape) * 1.4 / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        for name, shape in shapes.items()
    }
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c0"]),
        helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("Conv", ["r0", "w1"], ["c1"]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2"], ["y"]),
    ]
    return canonical(model_of(nodes, {"x": (1, 8, 5, 5)}, constants))


def _samples(count: int, seed: int) -> tuple[Feeds, ...]:
    random = np.random.default_rng(seed)
    return tuple({"x": random.normal(size=(1, 8, 5, 5)).astype(np.float32)} for _ in range(count))


def _unseen_decibels(count: int, seed: int) -> tuple[float, float]:
    """Return the mean and the 5th percentile of new samples' decibels, if so many others calibrate."""
    graph = _network()
    model = quantise(_network(), Calibration(_samples(count, seed))).model
    given = [list(Runner(each, ["y"]).over(_samples(60, 99))) for each in (graph, model)]
    found = [signal_to_noise(*pair) for pair in zip(*given, strict=True)]
    return float(np.mean(found)), float(np.percentile(found, 5))


def test_new_samples_lie_in_the_ranges_of_few() -> None:
    found = np.mean([_unseen_decibels(count, seed) for count in (1, 3) for seed in range(3)], axis=0)
    assert found[0] > 28 and found[1] > 21, "21.2 and 12.4 without headroom"


def test_a_range_has_no_room_where_samples_are_held_out_and_one_line_says_where_none_are() -> None:
    few, many = (quantise(_network(), Calibration(_samples(count, 0)), search=False) for count in (7, 8))
    assert not hold_out(Calibration(_samples(7, 0))).unseen
    assert "fitted the scales" in few.costs.warnings()[0]
    assert not many.costs.warnings()


def _seen(*samples: list[float]) -> tuple[list[float], list[float]]:
    """Return the least and the largest value to expect of each channel: one value a channel and sample."""
    graph = canonical(model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": (1, len(samples[0]), 1, 1)}, {}))
    feeds = [{"x": np.array(sample, np.float32).reshape(1, -1, 1, 1)} for sample in samples]
    found = observe(graph, ["x"], feeds)["x"]
    return found.lows.tolist(), found.highs.tolist()


def test_a_channel_that_few_samples_fill_has_room() -> None:
    lows, highs = _seen([1, 4, 0, -1], [1, 1, 0, -1], [1, 2, 0, -3])
    assert highs == [1, 5, 0, -1], "half as far above the largest value as that is above the second"
    assert lows == [1, 1 - 0.5, 0, -3 - 1]
    assert _seen([4, -1]) == ([4, -1], [4, -1]), "one sample tells of no others"
