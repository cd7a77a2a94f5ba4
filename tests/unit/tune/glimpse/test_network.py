"""The perceptron in numpy, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from hilt.tune.glimpse.network import CUT, NumpyPerceptron

ARRAYS = {
    "it.mean": np.array([1.0, 2.0], np.float32),
    "it.scale": np.array([1.0, 2.0], np.float32),
    "it.0.weight": np.array([[1.0, -1.0, 0.0], [0.0, 1.0, 2.0]], np.float32),
    "it.0.bias": np.array([0.5, 0.0, -1.0], np.float32),
    "it.1.weight": np.array([[1.0], [10.0], [100.0]], np.float32),
    "it.1.bias": np.array([0.25], np.float32),
    "other.0.weight": np.zeros((9, 9), np.float32),
}


def test_inputs_are_standardised_and_cut_and_layers_rectified_but_for_the_last() -> None:
    network = NumpyPerceptron.from_arrays(ARRAYS, "it")
    assert (network.inputs, network.outputs) == (2, 1)
    # (1, -1) after the mean and the scale: the sums are 1.5, -2 and -3, and the rectifier clears the last two
    assert network(np.array([2.0, 0.0], np.float32)).tolist() == [1.75]
    # (-1, 1): sums -0.5, 2 and 1
    assert network(np.array([[0.0, 4.0]], np.float32)).tolist() == [[120.25]]
    # far beyond the training: (CUT, CUT), and (-CUT, -CUT) whose sums are all below 0 or 0
    assert network(np.array([1e6, 1e6], np.float32)) == pytest.approx([CUT + 0.5 + 100 * (2 * CUT - 1) + 0.25])
    assert network(np.array([-1e6, -1e6], np.float32)).tolist() == [0.25]
    assert CUT == 4


def test_an_output_may_be_below_zero() -> None:
    network = NumpyPerceptron.from_arrays({**ARRAYS, "it.1.bias": np.array([-9.0], np.float32)}, "it")
    assert network(np.array([2.0, 0.0], np.float32)).tolist() == [-7.5]


@pytest.mark.parametrize(
    ("name", "shape", "said"),
    [
        ("it.scale", (3,), "it has no layers, or a mean and a scale of different sizes"),
        ("it.0.weight", (3, 3), "layer 0 of it does not fit the one before it"),
        ("it.0.weight", (2,), "layer 0 of it does not fit"),
        ("it.0.bias", (2,), "layer 0 of it does not fit"),
        ("it.1.weight", (2, 1), "layer 1 of it does not fit"),
        ("it.1.bias", (1, 1), "layer 1 of it does not fit"),
    ],
)
def test_shapes_that_do_not_follow_one_another_are_refused(name: str, shape: tuple[int, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        NumpyPerceptron.from_arrays({**ARRAYS, name: np.zeros(shape, np.float32)}, "it")


def test_a_network_without_layers_or_arrays_is_refused() -> None:
    with pytest.raises(ValueError, match="it has no layers"):
        NumpyPerceptron.from_arrays({name: ARRAYS[name] for name in ("it.mean", "it.scale", "other.0.weight")}, "it")
    with pytest.raises(KeyError):
        NumpyPerceptron.from_arrays(ARRAYS, "other")
