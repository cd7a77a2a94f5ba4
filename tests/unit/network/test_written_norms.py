"""Norms that are written as means, a square and a root: which are one operator, with the same results, in integers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network.calibration import Calibration
from hilt.network.quantize.quantizer import quantise

from .models import Array, canonical, canonical_operators, model_of

node = helper.make_node
SHAPE = (2, 5, 6, 7)
NORMS = ("LayerNormalization", "InstanceNormalization")


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(0.5, 2, shape).astype(np.float32)


def written(
    axes: Sequence[int], *, square: str = "Pow", quotient: str = "Div", parts: int = 1, opset: int = 13,
    of: Sequence[int] = (), keepdims: int = 1, epsilon: float = 1e-5, data: str = "x", result: str = "y",
) -> tuple[list[Any], dict[str, Array]]:  # fmt: skip
    """Return the nodes of a norm over axes, and their constants; the variance is over the axes `of`, if given."""
    constants = {"two": np.array(2, np.float32), "epsilon": np.array(epsilon, np.float32)}

    def mean(source: str, target: str, over: Sequence[int]) -> Any:
        if opset < 18:
            return node("ReduceMean", [source], [target], axes=list(over), keepdims=keepdims)
        constants[f"{target}_axes"] = np.array(over)
        return node("ReduceMean", [source, f"{target}_axes"], [target], keepdims=keepdims)

    nodes = []
    for part in range(parts):  # of torch.var, the variance has a difference of its own
        nodes += [mean(data, f"m{part}", axes), node("Sub", [data, f"m{part}"], [f"d{part}"])]
    centred = f"d{parts - 1}"
    nodes += [
        node("Pow", [centred, "two"], ["q"]) if square == "Pow" else node("Mul", [centred, centred], ["q"]),
        mean("q", "v", of or axes),
        node("Add", ["v", "epsilon"] if square == "Pow" else ["epsilon", "v"], ["e"]),
        node("Sqrt", ["e"], ["r"]),
    ]
    if quotient == "Div":
        nodes.append(node("Div", ["d0", "r"], [result]))
    else:
        nodes += [node("Reciprocal", ["r"], ["i"]), node("Mul", ["i", "d0"], [result])]
    return nodes, constants


def joined(nodes: list[Any], constants: dict[str, Array], opset: int = 13) -> Counter[str]:
    return canonical_operators(nodes, SHAPE, constants, opset)


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize(
    "form", [{}, {"square": "Mul"}, {"quotient": "Reciprocal"}, {"parts": 2}, {"parts": 2, "square": "Mul"}]
)
def test_a_written_norm_is_one_operator(form: dict[str, Any], opset: int) -> None:
    assert joined(*written([-1], opset=opset, **form), opset) == {"LayerNormalization": 1}
    assert joined(*written([2, -1], opset=opset, **form), opset) == {"InstanceNormalization": 1}
    assert joined(*written([1], opset=opset, **form), opset) == {"Transpose": 2, "LayerNormalization": 1}


@pytest.mark.parametrize(
    "form",
    [
        {"axes": [-1], "of": [-2]},
        {"axes": [0]},
        {"axes": [1, 2, 3]},
        {"axes": [-1], "epsilon": 0.0},
        {"axes": [-1], "epsilon": 2.0},
    ],
)
def test_other_sums_stay(form: dict[str, Any]) -> None:
    assert not set(joined(*written(**form))) & set(NORMS)


def test_another_power_stays() -> None:
    nodes, constants = written([-1])
    assert not set(joined(nodes, {**constants, "two": np.array(4, np.float32)})) & set(NORMS)


def test_parts_that_others_read_stay_beside_it() -> None:
    nodes, constants = written([-1], result="n")
    made = joined([*nodes, node("Add", ["n", "d0"], ["y"])], constants)
    assert made == {"LayerNormalization": 1, "AveragePool": 1, "Sub": 1, "Add": 1}


@pytest.mark.parametrize("turned", [False, True], ids=["of channels", "between transposes"])
def test_a_norm_over_the_channels_of_an_image_turns_nothing(turned: bool) -> None:
    """The integers of VTA's buffers have it, with its factors, an activation and the quantisation behind it."""
    nodes = [node("Conv", ["x", "w"], ["s"], pads=[1] * 4)]
    constants = {"w": normal(24, 4, 3, 3, seed=1), "u": normal(8, 24, 1, 1, seed=2)}
    if turned:
        constants |= {"scale": normal(24, seed=3), "bias": normal(24, seed=4)}
        nodes += [
            node("Transpose", ["s"], ["a"], perm=[0, 2, 3, 1]),
            node("LayerNormalization", ["a", "scale", "bias"], ["n"], axis=-1),
            node("Transpose", ["n"], ["b"], perm=[0, 3, 1, 2]),
        ]
    else:
        more, parts = written([1], data="s", result="n", opset=17)
        constants |= {"scale": normal(24, 1, 1, seed=3), "bias": normal(24, 1, 1, seed=4), **parts}
        nodes += [*more, node("Mul", ["n", "scale"], ["f"]), node("Add", ["f", "bias"], ["b"])]
    nodes += [node("Relu", ["b"], ["t"]), node("Conv", ["t", "u"], ["y"])]
    model = model_of(nodes, {"x": (1, 4, 9, 8)}, constants)
    samples = tuple({"x": normal(1, 4, 9, 8, seed=seed)} for seed in range(16))
    result = quantise(canonical(model), Calibration(samples), search=False)
    operators = [each.op for each in result.graph.nodes]
    assert operators[:4] == ["quantize", "conv2d", "normalization", "conv2d"]
    norm = result.graph.nodes[2]
    assert (norm.attributes["axis"], norm.attributes["groups"], norm.attributes["rounded"]) == (1, 0, 1)
    assert result.agreement.unexplained == 0 and result.costs.decibels > 25


def test_a_transpose_behind_other_axes_turns_nothing_back() -> None:
    """A Reshape lets channels lie among the columns first."""
    nodes = [
        node("Conv", ["x", "w"], ["s"], pads=[1] * 4),
        node("Transpose", ["s"], ["a"], perm=[0, 2, 3, 1]),
        node("LayerNormalization", ["a", "scale"], ["n"], axis=-1),
        node("Reshape", ["n", "shape"], ["r"]),
        node("Transpose", ["r"], ["t"], perm=[0, 3, 1, 2]),
        node("Conv", ["t", "u"], ["y"]),
    ]
    constants = {"w": normal(24, 4, 3, 3, seed=1), "u": normal(8, 12, 1, 1, seed=2), "scale": normal(24, seed=3)}
    model = model_of(nodes, {"x": (1, 4, 9, 8)}, {**constants, "shape": np.array([1, 9, 16, 12])})
    samples = tuple({"x": normal(1, 4, 9, 8, seed=seed)} for seed in range(16))
    result = quantise(canonical(model), Calibration(samples), search=False)
    assert "normalization" in {each.op for each in result.graph.nodes}
    assert result.agreement.unexplained == 0 and result.costs.decibels > 25
