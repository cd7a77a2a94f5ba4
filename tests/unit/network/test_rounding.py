"""Weights that are rounded by their effect on the sums: inputs of a sum, layers that take part, gains."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hilt.network.quantize import rounding

RANDOM = np.random.default_rng(7)


def layer(op: str, shape: tuple[int, ...], **attributes: Any) -> tuple[Any, Any]:
    """A graph with one layer of constant weights."""
    weights = np.random.default_rng(1).normal(0, 1, shape)
    node = SimpleNamespace(name="n", op=op, inputs=["x", "w"], attributes=attributes)
    return SimpleNamespace(constants={"w": weights}), SimpleNamespace(node=node)


@pytest.mark.parametrize(
    ("op", "shape", "attributes", "columns"),
    [
        ("Gemm", (4, 7), {}, 7),
        ("Conv", (4, 3, 2, 5), {"dilations": [1, 1]}, 30),
        ("Conv", (4, 3, 2, 5), {"dilations": [1, 2]}, None),
        ("ConvTranspose", (4, 3, 2, 5), {}, None),
        ("Gemm", (4, 1), {}, None),
        ("Gemm", (4, 2), {}, 2),
        ("Gemm", (1, 1200), {}, 1200),
        ("Gemm", (1, 1201), {}, None),
    ],
)
def test_layers_of_many_columns_or_of_one_are_rounded_plainly(
    op: str, shape: tuple[int, ...], attributes: dict[str, Any], columns: int | None
) -> None:
    assert rounding._columns(*layer(op, shape, **attributes)) == columns


@pytest.mark.parametrize(("groups", "strides", "pads"), [(1, [1, 1], [0, 1, 2, 0]), (2, [2, 1], [1, 0, 0, 2])])
def test_a_sum_reads_its_window_of_its_group(groups: int, strides: list[int], pads: list[int]) -> None:
    data = RANDOM.normal(0, 1, (2, 4, 5, 6))
    graph, conv = layer("Conv", (6, 4 // groups, 3, 2), strides=strides, pads=pads, group=groups)
    found = rounding._windows(graph, conv, data)
    top, left, bottom, right = pads
    padded = np.zeros((2, 4, 5 + top + bottom, 6 + left + right))
    padded[:, :, top : top + 5, left : left + 6] = data
    rows = range(0, padded.shape[2] - 2, strides[0])
    columns = range(0, padded.shape[3] - 1, strides[1])
    for group in range(groups):
        channels = slice(group * 4 // groups, (group + 1) * 4 // groups)
        expected = [
            padded[image, channels, row : row + 3, column : column + 2].ravel()
            for image, row, column in itertools.product(range(2), rows, columns)
        ]
        np.testing.assert_array_equal(found[group], expected)


def test_a_dense_sum_reads_all_of_its_row() -> None:
    data = RANDOM.normal(0, 1, (2, 3, 5))
    np.testing.assert_array_equal(rounding._windows(*layer("Gemm", (4, 5)), data), data.reshape(1, 6, 5))


def test_of_many_sums_a_part_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounding, "_ROWS", 10)
    graph, conv = layer("Conv", (1, 1, 1, 1), strides=[1, 1], pads=[0, 0, 0, 0])
    found = rounding._windows(graph, conv, np.arange(40.0).reshape(1, 1, 5, 8))
    assert found[0, :, 0].tolist() == list(range(0, 40, 4))


@pytest.mark.parametrize(("share", "step"), [(9, 1), (5, 1), (4, 2), (2, 4), (1, 9)])
def test_second_moments_are_of_as_many_sums_as_a_sample_has(share: int, step: int) -> None:
    windows = RANDOM.normal(0, 1, (2, 9, 3))
    expected = [part[::step].T @ part[::step] for part in windows]
    np.testing.assert_allclose(rounding._moment(windows, share), expected)


def test_columns_that_say_nothing_of_each_other_are_rounded_plainly() -> None:
    weights = RANDOM.normal(0, 60, (5, 8))
    np.testing.assert_array_equal(
        rounding._spread(weights[None], np.eye(8)[None])[0], np.clip(np.rint(weights), -128, 127)
    )


def test_two_columns_that_read_the_same_share_their_error() -> None:
    """Both are 0.5 too much or too little by themselves; together they are right."""
    moment = np.ones((2, 2))
    made = rounding._spread(np.array([[[10.4, 10.4], [-3.3, -3.4]]]), moment[None])[0]
    assert made.sum(axis=1).tolist() == [21, -7]


def test_sums_are_nearer_than_with_plain_rounding() -> None:
    weights = RANDOM.normal(0, 3, (40, 12))
    data = RANDOM.normal(0, 1, (200, 4)) @ RANDOM.normal(0, 1, (4, 12)) + RANDOM.normal(0, 0.1, (200, 12))
    made = rounding._spread(weights[None], (data.T @ data)[None])[0]
    plain, spread = (np.square(data @ (each - weights).T).sum() for each in (np.rint(weights), made))
    assert spread < 0.5 * plain
    assert made.dtype == np.int8 and np.abs(made - weights).max() < 8


def test_integers_stay_in_their_range() -> None:
    made = rounding._spread(np.array([[[200.0, 127.4, -128.4, -300.0]]]), np.eye(4)[None])[0]
    assert made.tolist() == [[127, 127, -128, -128]]


def test_layers_are_one_of_the_same_weights_scale_and_groups() -> None:
    scales = SimpleNamespace(weights={"n": [3, 4]})
    _, first = layer("Conv", (2, 2, 1, 1), group=2)
    _, second = layer("Conv", (2, 2, 1, 1))
    assert rounding._key(first, scales) == ("w", (3, 4), 2)  # type: ignore[arg-type]
    assert rounding._key(second, scales) == ("w", (3, 4), 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("groups", [1, 2])
def test_weights_are_in_steps_of_their_own_row(groups: int) -> None:
    graph, conv = layer("Conv", (4, 3, 1, 2), group=groups)
    scales: Any = SimpleNamespace(weights={"n": [2, 3, 4, 5]})
    made = rounding._rounded(graph, conv, scales, np.stack([np.eye(6)] * groups))
    steps = np.exp2([2, 3, 4, 5])[:, None, None, None]
    np.testing.assert_array_equal(made, np.rint(graph.constants["w"] * steps))


def test_each_group_is_rounded_by_its_own_moments() -> None:
    weights, data = RANDOM.normal(0, 9, (3, 2, 5)), RANDOM.normal(0, 1, (3, 20, 2)) @ RANDOM.normal(0, 1, (3, 2, 5))
    moments = data.swapaxes(1, 2) @ data
    together = rounding._spread(weights, moments)
    alone = [rounding._spread(weights[group : group + 1], moments[group : group + 1])[0] for group in range(3)]
    np.testing.assert_array_equal(together, alone)
    assert not np.array_equal(together, rounding._spread(weights, moments[::-1]))
