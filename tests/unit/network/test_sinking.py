"""Which operators a Reshape that a layer needs moves behind, and which hold it: the nodes, in order, and the values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_sinking import move_lines_and_batches_back, move_reshapes_back

from .models import operators_after

IMAGES, SIDE = {"s": (2, 3, 7)}, [(2, 3, 1, 7), (2, 3, 7, 1)]


def left_by(shape: tuple[int, ...], operator: tuple[str, str, dict[str, Any]], constants: dict[str, Any]) -> list[str]:
    """Return the operators that are left of a function, a Reshape to s and an operator that reads r."""
    nodes = [("Sin", "x -> a", {}), ("Reshape", "a s -> r", {}), operator]
    made = operators_after(move_reshapes_back, shape, nodes, constants)
    assert made[0] == "Sin" and len(made) == 3
    return made[1:]


def floats(*shape: int) -> Any:
    return np.random.default_rng(4).uniform(0.1, 1, shape).astype(np.float32)


@pytest.mark.parametrize("shape", SIDE)
@pytest.mark.parametrize(
    ("names", "constant", "moves"),
    [
        ("r k", (), True), ("k r", (1,), True), ("r k", (1, 1, 1), True), ("k r", (3, 1), True),
        ("r k", (1, 3, 1), True), ("r r", (), True), ("r k", (7,), False), ("k r", (2, 1, 1), False),
        ("r k", (3, 7), False), ("r k", (1, 2, 3, 7), False),
    ],
)  # fmt: skip
def test_a_side_of_one_comes_back_behind_what_is_alike_along_a_line(
    shape: tuple[int, ...], names: str, constant: tuple[int, ...], moves: bool
) -> None:
    found = left_by(shape, ("Mul", f"{names} -> y", {}), {**IMAGES, "k": floats(*constant)})
    assert found == (["Mul", "Reshape"] if moves else ["Reshape", "Mul"])


@pytest.mark.parametrize(
    ("names", "constant", "moves"),
    [
        ("r k", (), True), ("k r", (5,), True), ("r k", (1, 1, 5), True), ("r k", (1, 1), True),
        ("r k", (3, 1), False), ("r k", (2, 1, 1), False), ("k r", (3, 5), False),
    ],
)  # fmt: skip
def test_rows_part_behind_what_is_alike_in_each(names: str, constant: tuple[int, ...], moves: bool) -> None:
    found = left_by((6, 5), ("Sub", f"{names} -> y", {}), {"s": (2, 3, 5), "k": floats(*constant)})
    assert found == (["Sub", "Reshape"] if moves else ["Reshape", "Sub"])


@pytest.mark.parametrize(
    ("shape", "after"),
    [
        ((2, 3, 2, 7), (2, 3, 14)),  # no side is one
        ((2, 3, 1, 7), (2, 21)),
        ((2, 3, 1, 7), (6, 1, 7)),
        ((2, 3, 1, 7), (3, 2, 7)),
        ((6, 5), (5, 6)),
        ((6, 5), (3, 2, 1, 1, 5, 1)),
        ((6, 5), (2, 5, 3)),
        ((2, 3, 5), (6, 5)),
    ],
)
def test_other_reshapes_stay(shape: tuple[int, ...], after: tuple[int, ...]) -> None:
    assert left_by(shape, ("Relu", "r -> y", {}), {"s": after}) == ["Reshape", "Relu"]


@pytest.mark.parametrize("shape", SIDE)
@pytest.mark.parametrize(
    ("names", "moves"), [("r p", True), ("r p v", True), ("r p v -", True), ("r h - o", False), ("r p - q", False)]
)
def test_a_pad_of_a_line_is_one_of_the_image(shape: tuple[int, ...], names: str, moves: bool) -> None:
    constants = {**IMAGES, "p": [0, 1, 2, 0, 0, 3], "v": np.float32(0.5), "h": [1, 2], "o": [2], "q": [0, 2, 1]}
    found = left_by(shape, ("Pad", f"{names} -> y", {}), constants)
    assert found == (["Pad", "Reshape"] if moves else ["Reshape", "Pad"])


def test_a_clip_keeps_its_bounds_and_a_norm_of_an_image_its_channels() -> None:
    bounds = {**IMAGES, "l": np.float32(0.1), "h": np.float32(0.4)}
    assert left_by(SIDE[0], ("Clip", "r l h -> y", {}), bounds) == ["Clip", "Reshape"]
    assert left_by(SIDE[0], ("Clip", "r - h -> y", {}), bounds) == ["Clip", "Reshape"]
    norm: tuple[str, str, dict[str, Any]] = ("BatchNormalization", "r v v v v -> y", {})
    assert left_by(SIDE[1], norm, {**IMAGES, "v": floats(3)}) == ["BatchNormalization", "Reshape"]
    assert left_by((6, 5), norm, {"s": (2, 3, 5), "v": floats(3)}) == ["Reshape", "BatchNormalization"]


def test_two_tensors_move_together_if_their_shapes_are_alike() -> None:
    nodes: list[tuple[str, str, dict[str, Any]]] = [
        ("Sin", "x -> a", {}), ("Cos", "z -> b", {}), ("Reshape", "a s -> c", {}), ("Reshape", "b s -> d", {}),
        ("Add", "c d -> y", {}),
    ]  # fmt: skip
    alike = operators_after(move_reshapes_back, SIDE[0], nodes, IMAGES, {"z": SIDE[0]})
    assert alike == ["Sin", "Cos", "Add", "Reshape"]
    other = operators_after(move_reshapes_back, SIDE[0], nodes, IMAGES, {"z": SIDE[1]})
    assert other == ["Sin", "Cos", "Reshape", "Reshape", "Add"]
    half = operators_after(move_reshapes_back, SIDE[0], [*nodes[:3], ("Add", "c z -> y", {})], IMAGES, {"z": (2, 3, 7)})
    assert half == ["Sin", "Reshape", "Add"]


@pytest.mark.parametrize(
    ("names", "constant", "moves"),
    [
        ("r k", (), True), ("k r", (5,), True), ("r k", (3, 1), True), ("r k", (4, 3, 5), True), ("r r", (), True),
        ("r k", (1, 4, 3, 5), False),
    ],
)  # fmt: skip
def test_a_batch_of_one_comes_back_behind_any_constant_of_no_more_axes(
    names: str, constant: tuple[int, ...], moves: bool
) -> None:
    nodes = [("Sin", "x -> a", {}), ("Reshape", "a s -> r", {}), ("Mul", f"{names} -> y", {})]
    given = {"s": (4, 3, 5), "k": floats(*constant)}
    found = operators_after(move_lines_and_batches_back, (1, 4, 3, 5), nodes, given)
    assert found == ["Sin", *(["Mul", "Reshape"] if moves else ["Reshape", "Mul"])]


@pytest.mark.parametrize(
    ("shape", "after", "op"),
    [
        ((4, 3, 5), (1, 4, 3, 5), "Sin"),
        ((2, 3, 5), (6, 5), "Sin"),
        ((1, 6), (6,), "Sin"),
        ((1, 4, 3, 5), (4, 3, 5), "Softmax"),
    ],
)
def test_other_reshapes_hold_before_layouts_are_cancelled(
    shape: tuple[int, ...], after: tuple[int, ...], op: str
) -> None:
    nodes = [("Sin", "x -> a", {}), ("Reshape", "a s -> r", {}), (op, "r -> y", {})]
    assert operators_after(move_lines_and_batches_back, shape, nodes, {"s": after}) == ["Sin", "Reshape", op]


@pytest.mark.parametrize(("shape", "moves"), [((1, 4, 3, 5), True), ((4, 3, 5, 1), False)])
def test_a_batch_of_one_comes_back_behind_a_pad(shape: tuple[int, ...], moves: bool) -> None:
    nodes = [("Sin", "x -> a", {}), ("Reshape", "a s -> r", {}), ("Pad", "r p v -> y", {})]
    given = {"s": (4, 3, 5), "p": np.array([1, 0, 2, 0, 3, 0]), "v": np.float32(0.5)}
    found = operators_after(move_lines_and_batches_back, shape, nodes, given)
    assert found == ["Sin", *(["Pad", "Reshape"] if moves else ["Reshape", "Pad"])]


def test_layouts_cancel_between_layers_that_drop_their_batch() -> None:
    """Converters of sound models drop the batch behind each layer, with channels last."""
    last: dict[str, Any] = {"perm": [0, 2, 3, 1]}
    first: dict[str, Any] = {"perm": [0, 3, 1, 2]}
    nodes: list[tuple[str, str, dict[str, Any]]] = [
        ("Conv", "x w -> c", {}), ("Transpose", "c -> t", last), ("Reshape", "t s -> r", {}), ("Add", "r k -> b", {}),
        ("Elu", "b -> e", {}), ("Reshape", "e q -> n", {}), ("Transpose", "n -> f", first),
        ("MaxPool", "f -> p", {"kernel_shape": [1, 2], "strides": [1, 2]}), ("Transpose", "p -> u", last),
        ("Reshape", "u v -> g", {}), ("Reshape", "g h -> i", {}), ("Transpose", "i -> j", first),
        ("Conv", "j m -> y", {}),
    ]  # fmt: skip
    constants = {
        "w": floats(4, 2, 3, 3), "m": floats(3, 4, 1, 1), "k": floats(4), "s": (6, 8, 4), "q": (1, 6, 8, 4),
        "v": (6, 4, 4), "h": (1, 6, 4, 4),
    }  # fmt: skip
    assert operators_after(canonicalise, (1, 2, 8, 10), nodes, constants) == ["Conv", "Elu", "MaxPool", "Conv"]
