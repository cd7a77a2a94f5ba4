"""The tiles of upsamplings and gates that an accelerator holds, at their limits."""

from __future__ import annotations

import numpy as np
import pytest

from hilt.network.lower_gate import added_input, added_passes
from hilt.network.lower_upsample import UpsampleWriter, Upsampling, upsample_knobs
from hilt.schedule import Rejected

from .graphs import target

ACCELERATOR = target().accelerator
"""2048 inputs and as many accumulators."""
PLAIN = Upsampling(3, (8, 8), (2, 2))
SHUFFLE = Upsampling(3, (8, 8), (2, 2), sources=4)


@pytest.mark.parametrize(
    ("work", "rows"),
    [
        (PLAIN, [1, 2, 4, 8, 16, 24]),  # of 32 outputs; all planes are one behind another
        (SHUFFLE, [1, 2, 4, 8]),
        (Upsampling(1, (3, 5), (1, 1)), [3]),
        (Upsampling(1, (9, 300), (2, 2)), [1, 3]),
        (Upsampling(200, (9, 16), (1, 1)), [1, 2, 4, 8, 16, 32, 64, 128, 256]),
    ],
)
def test_tiles_of_an_upsampling_are_of_about_16_to_4096_elements(work: Upsampling, rows: list[int]) -> None:
    assert upsample_knobs(work) == [{"rows": each} for each in rows]


@pytest.mark.parametrize(
    ("work", "rows", "words"),
    [
        (PLAIN, 24, None),  # one tile
        (Upsampling(8, (8, 8), (2, 2)), 32, None),  # two of 1024 accumulators
        (Upsampling(8, (8, 8), (2, 2)), 33, "33 rows takes 264 input elements and 1056 accumulators"),
        (Upsampling(8, (8, 8), (2, 2)), 64, None),
        (Upsampling(8, (8, 8), (2, 2)), 65, "65 rows takes 520 input elements and 2080 accumulators"),
        (Upsampling(2, (64, 16), (1, 1), sources=1), 64, None),
        (Upsampling(4, (16, 16), (2, 2), sources=4), 16, None),
        (Upsampling(4, (17, 16), (2, 2), sources=4), 17, "17 rows takes 1088 input elements and 1088 accumulators"),
        (Upsampling(1, (64, 16), (2, 1), sources=2), 64, None),
        (Upsampling(1, (65, 16), (2, 1), sources=2), 65, "65 rows takes 2080 input elements and 2080 accumulators"),
    ],
)
def test_an_upsampling_is_refused_where_its_tiles_have_no_place(work: Upsampling, rows: int, words: str | None) -> None:
    if words is None:
        UpsampleWriter(work, rows, ACCELERATOR)
        return
    with pytest.raises(Rejected, match=words) as refused:
        UpsampleWriter(work, rows, ACCELERATOR)
    assert refused.value.reason == "acc_overflow"


@pytest.mark.parametrize(
    ("offset", "passes", "value"),
    [
        (0, 0, 0), (1, 1, 1), (127, 1, 127), (-128, 1, -128), (128, 2, 64), (254, 2, 127), (-256, 2, -128),
        (129, None, None), (256, None, None), (-129, None, None), (-258, None, None),
    ],
)  # fmt: skip
def test_an_offset_is_made_up_of_one_or_two_equal_inputs(offset: int, passes: int | None, value: int | None) -> None:
    assert added_passes(offset) == passes
    if value is not None:
        made = added_input(offset, ACCELERATOR)
        assert made.shape == (1, 16) and made.dtype == np.int8 and set(made.ravel().tolist()) == {value}
