"""Layers, knobs and configurations as numbers, of a layer whose numbers all differ."""

from __future__ import annotations

import numpy as np
import pytest

from hilt.schedule import load_workload
from hilt.schedule.space import Knob, Space
from hilt.tune.glimpse.encoding import (
    CONFIGURATION_FEATURES,
    LAYER_FEATURES,
    SLOTS,
    VALUE_FEATURES,
    KnobSpace,
    layer_features,
)
from hilt.virtual.board_model import board_model

BOARD = board_model("pynq").accelerator
LAYER = load_workload("conv2d:n=1,ci=64,h=20,w=12,co=128,k=3x5,s=2x1,p=1x2")
"""Its outputs are 10 x 12; in blocks of 16 channels, 4 to 8."""
SPACE = Space(
    [
        Knob("tile_h", (1, 2, 4, 5, 10), True),
        Knob("later", (1, 2, 3), False),
        Knob("tile_co", (1, 2, 4, 8), True),
        Knob("loop_order", (1, 2, 3, 4), False),
    ]
)
KNOBS = KnobSpace.of(SPACE, LAYER)


def test_a_knob_without_a_slot_is_left_out() -> None:
    assert KNOBS.known == (0, 2, 3)
    assert [SLOTS[slot] for slot in KNOBS.slots] == ["height", "co", "order"]


def test_a_layer_gives_its_sizes_in_blocks_and_its_kind() -> None:
    found = layer_features(LAYER, BOARD, SPACE, "tvm")
    macs = 10 * 12 * 64 * 128 * 15
    sizes = [1, 4, 8, 1, 10, 12, 20, 12, 64, 128, 1, 3, 5, 2, 1, macs]
    assert found.dtype == np.float32 and found.shape == (LAYER_FEATURES,)
    assert found[: len(sizes)] == pytest.approx(np.log2(sizes), rel=1e-6)
    assert found[len(sizes)] == pytest.approx(np.log2(4 * 8 * 15))
    assert found[len(sizes) + 1 :].tolist() == [1, 0, 0, 1, 1, 0]


@pytest.mark.parametrize(
    ("layer", "checks", "flags"),
    [
        ("conv2d:n=1,ci=64,h=20,w=12,co=128,k=3x5,s=2x1,p=0x0", "strict", [0, 0, 1, 0, 0, 1]),
        ("conv2d:n=1,ci=64,h=20,w=12,co=128,k=3x5,s=2x1,p=0x2", "tvm", [1, 0, 1, 0, 1, 0]),
    ],
)
def test_flags_are_padding_bias_space_and_checks(layer: str, checks: str, flags: list[int]) -> None:
    space = Space([Knob("TH", (1, 2), True)])
    assert layer_features(load_workload(layer), BOARD, space, checks)[-6:].tolist() == flags  # type: ignore[arg-type]


def test_a_value_is_placed_between_both_ends_of_its_knob() -> None:
    found = KNOBS.value_features(0)
    assert found.shape == (5, VALUE_FEATURES)
    inner, outer, divides, order = np.split(found, [9, 13, 14], axis=1)
    assert inner[0].tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 0]
    assert inner[2].tolist() == [0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert inner[3] == pytest.approx([0, 0, 3 - np.log2(5), np.log2(5) - 2, 0, 0, 0, 0, 0], abs=1e-6)
    assert outer[3].tolist() == pytest.approx([0, 1, 0, 0], abs=1e-6) and outer[4].tolist() == [1, 0, 0, 0]
    assert outer[0].tolist() == [0, 0, 0, 1]  # further than the last centre
    assert divides[:, 0].tolist() == [1, 1, 0, 1, 1] and not order.any()


def test_an_order_is_one_of_four() -> None:
    found = KNOBS.value_features(2)
    assert found[:, -4:].tolist() == np.eye(4).tolist() and not found[:, :-4].any()


def test_a_configuration_gives_each_slots_value_the_rest_of_its_extent_and_its_tiles_input() -> None:
    index = SPACE.indices(np.array([[2, 1, 3, 1]]))  # four rows, all eight blocks, the second order
    (found,) = KNOBS.configuration_features(index)
    assert found.shape == (CONFIGURATION_FEATURES,)
    values, rests, ones, ends, order, tile = np.split(found, [7, 14, 21, 28, 32])
    slots = SLOTS.index("height"), SLOTS.index("co")
    assert [values[slot] for slot in slots] == [2, 3] and values.sum() == 5
    assert [rests[slot] for slot in slots] == pytest.approx([np.log2(2.5), 0]) and rests.sum() == pytest.approx(
        rests[1]
    )
    assert ones.tolist() == [slot not in ("height", "co") for slot in SLOTS[:-1]]
    assert ends.tolist() == [slot != "height" for slot in SLOTS[:-1]]
    assert order.tolist() == [0, 1, 0, 0]
    assert tile == pytest.approx([np.log2(3 * 2 + 3), np.log2(0 * 1 + 5)])
