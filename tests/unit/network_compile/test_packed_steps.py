"""Which steps of the processor work on packed tensors, and their attributes there: a table of forms."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hilt.network import joined_order
from hilt.network.packed_steps import packed_attributes

Shapes = dict[str, tuple[int, ...]]


def asked(
    op: str,
    inputs: Shapes,
    output: tuple[int, ...],
    attributes: dict[str, Any] | None = None,
    *,
    bands: bool = False,
    batch: int = 1,
    dtype: str = "int8",
    constants: dict[str, Any] | None = None,
) -> Any:
    """Return the packed attributes of a node on blocks of 16 channels."""
    tensors = {name: SimpleNamespace(shape=shape, dtype="int8") for name, shape in inputs.items()}
    tensors["out"] = SimpleNamespace(shape=output, dtype=dtype)
    constants = constants or {}
    graph: Any = SimpleNamespace(tensors=tensors, constants=constants)
    node: Any = SimpleNamespace(
        op=op, name=op, inputs=[*inputs, *constants], outputs=["out"], attributes=attributes or {}
    )
    layout: Any = SimpleNamespace(parameters=SimpleNamespace(batch=batch, block=16), bands=bands)
    return packed_attributes(graph, node, layout)


IMAGE, POINT = (1, 32, 6, 8), (1, 32, 1, 1)


@pytest.mark.parametrize(
    ("inputs", "output", "whole"),
    [
        ({"a": IMAGE, "b": IMAGE}, IMAGE, True),
        ({"a": IMAGE, "b": POINT}, IMAGE, True),
        ({"a": (1, 32, 6, 1), "b": IMAGE}, IMAGE, True),
        ({"a": IMAGE, "b": (1, 1, 6, 8)}, IMAGE, False),
        ({"a": IMAGE, "b": (1, 32, 2, 8)}, IMAGE, False),
        ({"a": IMAGE, "b": (1, 32)}, IMAGE, False),
        ({"a": (1, 32), "b": (1, 32)}, (1, 32), True),
        ({"a": (1, 32, 6), "b": (1, 32, 6)}, (1, 32, 6), False),
        ({"a": (2, 32, 1, 1), "b": POINT}, (2, 32, 1, 1), False),
    ],
)
def test_two_tensors_of_one_shape_or_one_value_a_channel(inputs: Shapes, output: tuple[int, ...], whole: bool) -> None:
    assert asked("add", inputs, output, {"shift": 3}) == ({"shift": 3} if whole else None)
    assert asked("add", inputs, output, dtype="float32") is None
    assert asked("subtract", inputs, output) is None


@pytest.mark.parametrize(
    ("first", "second", "place"),
    [
        (IMAGE, (1, 1, 6, 8), 1),
        ((1, 1, 6, 8), IMAGE, 0),
        (POINT, (1, 1, 6, 8), 1),
        (IMAGE, IMAGE, None),
        (IMAGE, POINT, None),
    ],
)
def test_a_factor_of_each_pixel_lies_in_the_first_lane(
    first: tuple[int, ...], second: tuple[int, ...], place: int | None
) -> None:
    wanted = {"shift": 3} if place is None else {"shift": 3, "by_pixel": place}
    assert asked("multiply", {"a": first, "b": second}, IMAGE, {"shift": 3}) == wanted
    assert asked("multiply", {"a": first, "b": second}, IMAGE, bands=True) == (
        None if POINT in (first, second) else {key: value for key, value in wanted.items() if key != "shift"}
    )


def test_a_factor_of_other_pixels_or_images_is_no_packed_one() -> None:
    assert asked("multiply", {"a": IMAGE, "b": (1, 1, 6, 1)}, IMAGE) is None
    assert asked("multiply", {"a": (2, *IMAGE[1:]), "b": (1, 1, 6, 8)}, (2, *IMAGE[1:])) is None
    assert asked("multiply", {"a": (1, 1, 6, 8), "b": (1, 1, 6, 8)}, (1, 1, 6, 8)) == {}


def test_a_constant_is_no_packed_tensor_and_a_table_is_one() -> None:
    assert asked("add", {"a": IMAGE}, IMAGE, constants={"b": np.zeros(1)}) is None
    entries = SimpleNamespace(dtype="int8")
    assert asked("table", {"a": IMAGE}, IMAGE, {"x": 1}, constants={"t": entries}) == {"x": 1}
    assert asked("table", {"a": IMAGE}, IMAGE, constants={"t": SimpleNamespace(dtype="float32")}) is None
    assert asked("table", {"a": IMAGE, "b": IMAGE}, IMAGE) is None


@pytest.mark.parametrize(
    ("channels", "axis", "found"),
    [
        ((32, 16), 1, {"axis": 1}),
        ((32, 16), -3, {"axis": 1}),
        ((32, 20), 1, {"axis": 1}),
        ((20, 32), 1, {"axis": 1, "channels": [20, 32]}),
        ((20, 12), 1, {"axis": 1, "channels": [20, 12]}),
        ((18, 32), 1, None),
        ((20, 30), 1, None),
        ((20, 20), 2, {"axis": 2}),
        ((20, 20), 3, {"axis": 3}),
        ((20, 20), 0, None),
    ],
)
def test_channels_are_joined_in_blocks_or_in_words(channels: tuple[int, int], axis: int, found: Any) -> None:
    inputs = {name: (1, count, 6, 8) for name, count in zip("ab", channels, strict=True)}
    assert asked("concat", inputs, (1, sum(channels), 6, 8), {"axis": axis}) == found
    assert asked("concat", inputs, (1, sum(channels), 6, 8), {"axis": axis}, constants={"c": np.zeros(1)}) is None


@pytest.mark.parametrize(
    ("mode", "channels", "made", "taken"),
    [("DCR", 64, 16, True), ("CRD", 64, 16, False), ("DCR", 24, 6, False), ("DCR", 16, 4, True)],
)
def test_depth_becomes_space_in_words_of_lanes(mode: str, channels: int, made: int, taken: bool) -> None:
    attributes = {"mode": mode, "blocksize": 2}
    found = asked("depth_to_space", {"a": (1, channels, 3, 4)}, (1, made, 6, 8), attributes)
    assert found == ({**attributes, "channels": [channels]} if taken else None)
    assert asked("depth_to_space", {"a": (1, channels)}, (1, made), attributes) is None


def cut(starts: list[int], ends: list[int], axes: list[int], steps: list[int]) -> dict[str, Any]:
    return {"starts": starts, "ends": ends, "axes": axes, "steps": steps}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (cut([1], [5], [2], [2]), cut([1], [5], [2], [2])),
        (cut([1], [5], [-1], [2]), cut([1], [5], [3], [2])),
        (cut([16], [48], [1], [1]), cut([1], [3], [1], [1])),
        (cut([-48], [40], [1], [1]), cut([1], [3], [1], [1])),
        (cut([0, 16], [6, 20], [3, 1], [1, 1]), cut([0, 1], [6, 2], [3, 1], [1, 1])),
        (cut([8], [48], [1], [1]), None),
        (cut([16], [48], [1], [2]), None),
        (cut([48], [48], [1], [1]), None),
        (cut([0], [1], [0], [1]), cut([0], [1], [0], [1])),
    ],
)
def test_channels_are_cut_at_blocks(given: dict[str, Any], found: dict[str, Any] | None) -> None:
    assert asked("slice", {"a": (1, 64, 6, 8)}, (1, 64, 6, 8), given) == found


def test_images_are_cut_at_batches() -> None:
    shape = (6, 64, 6, 8)
    assert asked("slice", {"a": shape}, shape, cut([2], [5], [0], [1]), batch=2) == cut([1], [3], [0], [1])
    assert asked("slice", {"a": shape}, shape, cut([1], [5], [0], [1]), batch=2) is None
    assert asked("slice", {"a": shape}, shape, cut([0], [6], [0], [1]), batch=2, bands=True) is None


@pytest.mark.parametrize(
    ("pads", "found"),
    [
        ([0, 0, 1, 2, 0, 0, 3, 4], [0, 0, 1, 2, 0, 0, 0, 0, 3, 4, 0, 0]),
        ([0, 1, 1, 2, 0, 0, 3, 4], None),
        ([0, 0, 1, 2, 0, 1, 3, 4], None),
        ([1, 0, 1, 2, 0, 0, 3, 4], None),
        ([0, 0, 0, 0], None),
    ],
)
def test_pads_are_of_rows_and_columns(pads: list[int], found: list[int] | None) -> None:
    wanted = None if found is None else {"value": 7, "pads": found}
    assert asked("pad", {"a": IMAGE}, (1, 32, 10, 14), {"value": 7, "pads": pads}) == wanted


@pytest.mark.parametrize(
    ("channels", "pads", "value", "taken"),
    [
        (24, [0, 0, 0, 0, 0, 4, 0, 0], 0, True),
        (32, [0, 0, 0, 0, 0, 1, 0, 0], 0, True),
        (24, [0, 0, 0, 0, 0, 4, 0, 0], 1, False),
        (22, [0, 0, 0, 0, 0, 4, 0, 0], 0, False),
        (24, [0, 0, 0, 0, 0, 4, 1, 0], 0, False),
        (24, [0, 0, 0, 0, 0, 4, -1, 0], 0, False),
        (24, [0, 4, 0, 0, 0, 4, 0, 0], 0, False),
        (24, [0, 0, 0, 0, 1, 4, 0, 0], 0, False),
    ],
)
def test_channels_of_zeros_come_behind_words_of_lanes(channels: int, pads: list[int], value: int, taken: bool) -> None:
    made = tuple(size + pads[axis] + pads[axis + 4] for axis, size in enumerate((1, channels, 6, 8)))
    attributes = {"value": value, "pads": pads}
    wanted = {**attributes, "channels": [channels]} if taken else None
    for bands in (False, True):
        assert asked("pad", {"a": (1, channels, 6, 8)}, made, attributes, bands=bands) == wanted


def test_pools_have_pixels_and_upsampling_any() -> None:
    for op in ("max_pool", "average_pool", "global_average_pool", "upsample"):
        assert asked(op, {"a": IMAGE}, IMAGE, {"k": 1}) == {"k": 1}
    assert asked("max_pool", {"a": (1, 32)}, (1, 32)) is None


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "taken"),
    [
        ("add", {"a": IMAGE, "b": IMAGE}, {}, True),
        ("add", {"a": IMAGE, "b": POINT}, {}, False),
        ("max_pool", {"a": IMAGE}, {}, False),
        ("slice", {"a": IMAGE}, cut([1], [5], [3], [1]), True),
        ("slice", {"a": IMAGE}, cut([1], [5], [2], [1]), False),
    ],
)
def test_bands_need_the_rows_that_they_have(op: str, inputs: Shapes, attributes: dict[str, Any], taken: bool) -> None:
    assert (asked(op, inputs, IMAGE, attributes, bands=True) is not None) is taken
    assert asked(op, inputs, IMAGE, attributes) is not None


def joined(sizes: tuple[int, ...], **changes: Any) -> list[int]:
    """Return the order of a Concat's operands whose readers are two convolutions."""
    values = {
        "op": "concat", "axis": 1, "outputs": [], "reader": "conv2d", "groups": 1, "reads": ["j", "w", "b"],
        "constants": {"w": 1}, "readers": 2, **changes,
    }  # fmt: skip
    names = [f"t{place}" for place in range(len(sizes))]
    node: Any = SimpleNamespace(op=values["op"], attributes={"axis": values["axis"]}, inputs=names, outputs=["j"])
    reader: Any = SimpleNamespace(op=values["reader"], attributes={"groups": values["groups"]}, inputs=values["reads"])
    tensors = {name: SimpleNamespace(shape=(1, size, 4, 4)) for name, size in zip(names, sizes, strict=True) if size}
    graph: Any = SimpleNamespace(tensors=tensors, constants=values["constants"], outputs=values["outputs"])
    return joined_order._order(graph, node, {"j": [reader] * values["readers"]})


def test_whole_blocks_come_first_where_convolutions_alone_read_them() -> None:
    assert joined((20, 32, 6, 48)) == [1, 3, 0, 2]
    assert joined((16, 16)) == [0, 1]
    for changes in (
        {"op": "add"},
        {"axis": 2},
        {"outputs": ["j"]},
        {"readers": 0},
        {"reader": "dense"},
        {"groups": 2},
        {"reads": ["x", "w", "j"]},
        {"reads": ["j", "w", "j"]},
        {"constants": {}},
    ):
        assert joined((20, 32), **changes) == [], changes
    assert joined((20, 0, 32)) == [], "a constant among them"


def test_a_normalization_of_channels_that_are_first_has_a_packed_form() -> None:
    inputs, constants = {"a": IMAGE}, {"factors": np.zeros((2, 32), np.float32)}
    for groups in (0, 4):
        attributes = {"axis": 1, "groups": groups}
        assert asked("normalization", inputs, IMAGE, attributes, constants=constants) == attributes
        wanted = None if groups else attributes
        assert asked("normalization", inputs, IMAGE, attributes, constants=constants, batch=2) == wanted
        assert asked("normalization", inputs, IMAGE, attributes, constants=constants, bands=True) == wanted
        assert asked("normalization", inputs, IMAGE, attributes, constants=constants, dtype="float32") is None
    assert asked("normalization", inputs, IMAGE, {"axis": 3, "groups": 0}, constants=constants) is None


def test_a_pad_of_own_elements_has_a_packed_form() -> None:
    attributes = {"pads": [0, 0, 2, 1, 0, 0, 0, 3], "mode": "reflect"}
    assert asked("pad", {"a": IMAGE}, (1, 32, 8, 12), attributes) == {
        "pads": [0, 0, 2, 1, 0, 0, 0, 0, 0, 3, 0, 0], "mode": "reflect",
    }  # fmt: skip
    assert asked("pad", {"a": IMAGE}, (1, 48, 6, 8), {"pads": [0, 0, 0, 0, 0, 16, 0, 0], "mode": "edge"}) is None
