"""The LOADs that bring each lane its band of an image, beside the rows that the lane's layer reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilt.network.bands import ANY, ZEROS, Bands, band_rows, with_bands
from hilt.schedule.checks import Rejected
from hilt.schedule.code import Code
from hilt.vta.isa import INSTRUCTION, UOP, MemoryType, Opcode

BANDS = {
    "plain": Bands(4, 12, 5, 12, 1, 1, 0),
    "window": Bands(4, 12, 5, 12, 3, 1, 1),
    "stride": Bands(2, 13, 5, 7, 3, 2, 1),
    "few rows": Bands(4, 5, 3, 5, 3, 1, 1),
    "repeated edge": Bands(2, 9, 4, 9, 3, 1, 1, repeats=True),
    "smaller output": Bands(2, 12, 4, 10, 3, 1, 0),
    "window of five": Bands(4, 16, 5, 16, 5, 1, 2),
}
SHIFTS = {0: 0, 1: 1, 2: 2, 3: -1}


def record_of(**fields: int) -> np.ndarray[Any, Any]:
    record = np.zeros(1, INSTRUCTION)
    for name, value in {"opcode": Opcode.LOAD, "memory_type": MemoryType.INP, **fields}.items():
        record[name] = value
    return record


def code_of(*records: np.ndarray[Any, Any], buffers: list[int] | None = None) -> Code:
    owners = np.array(buffers or [0] * len(records))
    return Code(np.concatenate(records), owners, ("data", "other"), np.zeros(1, UOP))


def wanted(bands: Bands, record: np.ndarray[Any, Any]) -> dict[tuple[int, int], Any]:
    """Return the content of each place on chip of each lane: plane, image row and column, or zeros, or anything."""
    found: dict[tuple[int, int], Any] = {}
    (one,) = record
    wide = int(one["x_pad_0"] + one["x_size"] + one["x_pad_1"])
    for lane in range(bands.lanes):
        outputs = min(bands.band_made, bands.made - lane * bands.band_made)
        for place in range(int(one["y_size"]) * wide):
            line, column = divmod(place, wide)
            key = lane, int(one["sram_base"]) + place
            if not int(one["x_pad_0"]) <= column < int(one["x_pad_0"] + one["x_size"]):
                found[key] = ZEROS
                continue
            element = int(one["dram_base"]) + line * int(one["x_stride"]) + column - int(one["x_pad_0"])
            row, at = divmod(element, bands.width)
            plane, row = divmod(row, bands.height)
            image = lane * bands.band_made * bands.stride - bands.pad + row
            if bands.repeats:
                image = min(max(image, 0), bands.rows - 1)
            read = outputs > 0 and row < (outputs - 1) * bands.stride + bands.kernel
            found[key] = (plane, image, at) if 0 <= image < bands.rows else ZEROS
            if not read:
                found[key] = ANY
    return found


def brought(bands: Bands, loads: np.ndarray[Any, Any]) -> dict[tuple[int, int], Any]:
    """Return the content that LOADs bring to each place on chip of each lane, of an image that lies in bands."""
    found: dict[tuple[int, int], Any] = {}
    for load in loads:
        wide = int(load["x_pad_0"] + load["x_size"] + load["x_pad_1"])
        for lane in (lane for lane in range(bands.lanes) if not int(load["lanes_kept"]) >> lane & 1):
            source = lane + SHIFTS[int(load["lane_shift"])]
            for place in range(int(load["y_pad_0"] + load["y_size"]) * wide):
                line, column = divmod(place, wide)
                line, column = line - int(load["y_pad_0"]), column - int(load["x_pad_0"])
                key, value = (lane, int(load["sram_base"]) + place), ZEROS
                if line >= 0 and 0 <= column < int(load["x_size"]) and 0 <= source < bands.lanes:
                    row, at = divmod(int(load["dram_base"]) + line * int(load["x_stride"]) + column, bands.width)
                    plane, row = divmod(row, bands.band)
                    value = (plane, source * bands.band + row, at)
                found[key] = value
    return found


def boxes(bands: Bands) -> dict[str, dict[str, int]]:
    """Return LOADs of one lane's layer: all rows, some columns, whole planes, every other row, rows in one run."""
    height, width = bands.height, bands.width
    return {
        "rows": {"x_size": width, "x_stride": width, "y_size": height},
        "some columns": {
            "dram_base": height * width + width + 1, "x_size": width - 2, "x_stride": width, "y_size": height - 1,
            "x_pad_0": 1, "x_pad_1": 2, "sram_base": 7,
        },
        "one run": {"x_size": width * height, "y_size": 1},
        "planes": {"x_size": width * height, "x_stride": width * height, "y_size": 3},
        "a part of each plane": {
            "dram_base": width, "x_size": width * (height - 1), "x_stride": width * height, "y_size": 2,
        },
        "every other row": {"x_size": width, "x_stride": 2 * width, "y_size": (height + 1) // 2},
        "one row": {"dram_base": (height - 1) * width, "x_size": width, "x_stride": width, "y_size": 1},
    }  # fmt: skip


@pytest.mark.parametrize("name", BANDS)
def test_each_lane_gets_the_rows_that_its_layer_reads(name: str) -> None:
    bands = BANDS[name]
    for kind, fields in boxes(bands).items():
        record = record_of(**fields)
        made = with_bands(code_of(record), bands, "data")
        given = brought(bands, made.records)
        for key, value in wanted(bands, record).items():
            assert value in (ANY, given.get(key)), (kind, key)
        assert len(made.buffers) == len(made.records) and not made.buffers.any()


def test_most_rows_come_by_one_load_and_the_others_by_as_few_as_there_are_sources() -> None:
    """Rows of three of a window of three: one from the band before, the rest from the own, zeros at both ends."""
    counts = {
        name: len(with_bands(code_of(record_of(**boxes(bands)["rows"])), bands, "data").records)
        for name, bands in BANDS.items()
    }
    assert counts["plain"] == 1 and counts["window"] == 3


def test_more_than_fifteen_rows_of_zeros_take_several_loads() -> None:
    bands = Bands(2, 4, 3, 44, 1, 1, 20)
    record = record_of(x_size=3, x_stride=3, y_size=bands.height)
    made = with_bands(code_of(record), bands, "data")
    assert made.records["y_pad_0"].max() == 15
    given = brought(bands, made.records)
    assert all(value in (ANY, given.get(key)) for key, value in wanted(bands, record).items())


def test_other_instructions_stay_in_their_places() -> None:
    bands = BANDS["window"]
    load = record_of(**boxes(bands)["rows"])
    others = [
        record_of(opcode=Opcode.GEMM),
        record_of(memory_type=MemoryType.WGT, x_size=3),
        record_of(**boxes(bands)["rows"]),  # of another buffer
        record_of(opcode=Opcode.STORE),
    ]
    code = code_of(others[0], load, others[1], others[2], load, others[3], buffers=[-1, 0, 0, 1, 0, 0])
    made = with_bands(code, bands, "data")
    alone = with_bands(code_of(load), bands, "data").records
    expected = np.concatenate([others[0], alone, others[1], others[2], alone, others[3]])
    np.testing.assert_array_equal(made.records, expected)
    own = [0] * len(alone)
    assert made.buffers.tolist() == [-1, *own, 0, 1, *own, 0] and made.names == code.names


def test_rows_of_a_band() -> None:
    assert [band_rows(rows, 4) for rows in (1, 4, 5, 8, 9)] == [1, 1, 2, 2, 3]
    bands = BANDS["stride"]
    assert (bands.band, bands.band_made, bands.height) == (7, 4, 9)
    assert bands.needs(0) == (ZEROS, (0, 0)) and bands.needs(1) == ((0, -1), (0, 0))
    assert bands.needs(8) == ((1, -8), ANY), "the last band has three rows, which read seven"


def test_rows_that_no_load_reaches_are_rejected() -> None:
    with pytest.raises(Rejected, match="padding alone"):
        with_bands(code_of(record_of(y_size=0, x_size=4)), BANDS["plain"], "data")
    far = Bands(4, 4, 3, 4, 7, 1, 3)
    with pytest.raises(Rejected, match="rows of lanes .* ahead; a LOAD reaches -1 to 2"):
        with_bands(code_of(record_of(x_size=3, x_stride=3, y_size=far.height)), far, "data")
