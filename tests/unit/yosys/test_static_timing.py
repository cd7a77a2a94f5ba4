# SPDX-License-Identifier: Apache-2.0
"""Static timing on netlists small enough to add up by hand."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from hilt import paths

sys.path.insert(0, str(paths.hls_directory() / "yosys"))

from static_timing import Delays, NetlistError, worst_paths
from timing import Limits, problems, worst_by_name

CELLS = {
    **{"lut": 0.1, "ff_out": 0.5, "ff_data": 0.05, "ff_enable": 0.2, "ff_reset": 0.4, "muxf7": 0.2, "muxf8": 0.15},
    **{"carry_in_to_out": 0.01, "carry_start": 0.3, "carry_end": 0.02, "carry_sum": 0.25},
    **{"dsp_input": 0.3, "dsp_out": 0.4, "dsp_register": 0.4, "dsp_preadd_multiply": 3.0, "dsp_multiply": 1.5},
    **{"ram_out": 2.0, "ram_address": 0.6, "ram_data": 0.7, "ram_write": 0.5, "ram_enable": 0.4},
    **{"dsp_c": 1.7, "dsp_a": 3.5, "dsp_preadd_a": 5.0, "dsp_cascade": 1.5},
}
DELAYS = Delays(CELLS, ((1, 1.0), (1000, 2.0)))


def cell(kind: str, inputs: dict[str, list[Any]], outputs: dict[str, list[Any]], **parameters: str) -> dict[str, Any]:
    directions = dict.fromkeys(inputs, "input") | dict.fromkeys(outputs, "output")
    return {"type": kind, "port_directions": directions, "connections": inputs | outputs, "parameters": parameters}


def analyse(cells: dict[str, Any], names: dict[str, list[int]] | None = None) -> list[Any]:
    nets = {name: {"bits": bits, "hide_name": 0} for name, bits in (names or {}).items()}
    return worst_paths({"modules": {"top": {"cells": cells, "netnames": nets}}}, "top", DELAYS)


def flip_flop(data: int, output: int, **pins: int) -> dict[str, Any]:
    return cell("FDRE", {"C": [1], "D": [data], **{pin: [bit] for pin, bit in pins.items()}}, {"Q": [output]})


def test_a_path_is_the_sum_of_cells_and_nets() -> None:
    cells = {
        "a": flip_flop(9, 2),
        "lut": cell("LUT2", {"I0": [2], "I1": [2]}, {"O": [3]}),
        "b": flip_flop(3, 4),
    }
    (path,) = analyse(cells, {"first_q": [2], "second_q": [4]})
    assert path.delay == pytest.approx(0.5 + 2.0 + 0.1 + 1.0 + 0.05)
    assert path.cells == pytest.approx(0.5 + 0.1 + 0.05)
    assert (path.levels, path.begin, path.end) == (1, "first_q", "second_q.D")


def test_a_carry_chain_has_no_nets_within() -> None:
    carry = {
        f"c{n}": cell("CARRY4", {"CI": [10 + n], "S": [], "DI": []}, {"CO": ["x", "x", "x", 11 + n]}) for n in (1, 2)
    }
    start = cell("CARRY4", {"CI": ["0"], "S": [2], "DI": []}, {"CO": [3, "x", "x", 11]})
    (path,) = analyse({"a": flip_flop(9, 2), "start": start, **carry, "b": flip_flop(13, 4)})
    assert path.delay == pytest.approx(0.5 + 1.0 + 0.3 + 2 * 0.01 + 1.0 + 0.05)
    assert path.levels == 1


def test_registers_inside_a_dsp_slice_split_its_path() -> None:
    registered = {"AREG": "1", "BREG": "1", "DREG": "1", "MREG": "1", "PREG": "1", "USE_DPORT": "TRUE"}
    slice_ = cell("DSP48E1", {"CLK": [1], "A": [2], "B": [2], "D": [2]}, {"P": [5]}, **registered)
    paths_ = analyse({"a": flip_flop(9, 2), "dsp": slice_, "b": flip_flop(5, 6)})
    assert paths_[0].delay == pytest.approx(0.4 + 3.0), "AREG to MREG, past the pre-adder"
    assert any(path.end == "dsp.A" and path.cells == pytest.approx(0.5 + 0.3) for path in paths_)


def test_a_ram_that_is_not_mapped_has_the_pins_of_block_ram() -> None:
    ports = {"clk_i": [1], "write_i": [2], "write_index_i": [2], "data_i": [2], "read_i": [2], "read_index_i": [2]}
    cells = {"a": flip_flop(9, 2), "ram": cell("vta_ram", ports, {"data_o": [3]}), "b": flip_flop(3, 4)}
    setups = {path.end: path.delay - 0.5 - 2.0 for path in analyse(cells) if path.begin == "a"}
    assert setups == pytest.approx(
        {"ram.write_i": 0.5, "ram.write_index_i": 0.6, "ram.data_i": 0.7, "ram.read_i": 0.4, "ram.read_index_i": 0.6}
    )
    assert any(path.begin == "ram.data_o" and path.delay == pytest.approx(2.0 + 1.0 + 0.05) for path in analyse(cells))


def test_the_address_of_a_ram_goes_to_each_of_its_blocks_and_its_data_to_one() -> None:
    """2,048 words of 36 bits: two blocks."""
    index, data = [2] + ["0"] * 10, [4] + ["0"] * 35
    ports = {"clk_i": [1], "read_index_i": index, "data_i": data, "read_i": ["0"], "write_i": ["0"]}
    cells = {"a": flip_flop(9, 2), "b": flip_flop(9, 4), "ram": cell("vta_ram", ports, {"data_o": [3]})}
    delays = {path.end: path.delay for path in analyse(cells)}
    assert delays["ram.read_index_i"] == pytest.approx(0.5 + 2.0 + 0.6), "two loads"
    assert delays["ram.data_i"] == pytest.approx(0.5 + 1.0 + 0.7), "one"


def test_routed_nets_are_a_table_of_their_own() -> None:
    table = {"lut": 0.1, "nets": [[1, 0.5]], "nets_routed": [[1, 0.7]]}
    assert (Delays.of(table).net(1), Delays.of(table, "nets_routed").net(1)) == (0.5, 0.7)
    assert Delays.of(table).cells == {"lut": 0.1}


def test_a_loop_and_an_unknown_cell_are_refused() -> None:
    loop = {
        "a": flip_flop(9, 2),
        "x": cell("LUT2", {"I0": [2], "I1": [4]}, {"O": [3]}),
        "y": cell("LUT1", {"I0": [3]}, {"O": [4]}),
    }
    with pytest.raises(NetlistError, match="the logic has a loop: 2 nets"):
        analyse(loop)
    with pytest.raises(NetlistError, match="cell odd is a FOO"):
        analyse({"odd": cell("FOO", {}, {})})


def test_paths_that_differ_by_numbers_alone_are_one() -> None:
    cells: dict[str, Any] = {}
    for n in range(3):
        cells |= {f"a{n}": flip_flop(9, 20 + n), f"b{n}": flip_flop(20 + n, 30 + n)}
    names = {"data_q": [20, 21, 22], "next_q": [30, 31, 32]}
    assert len(analyse(cells, names)) == 3
    assert len(worst_by_name(analyse(cells, names))) == 1


def test_more_levels_than_allowed_are_a_problem() -> None:
    cells = {"a": flip_flop(9, 2), "lut": cell("LUT1", {"I0": [2]}, {"O": [3]}), "b": flip_flop(3, 4)}
    paths_ = analyse(cells)
    assert problems(paths_, Limits(100, 1, 0.6)) == []
    assert problems(paths_, Limits(100, 0, 0.6)) == ["1 logic levels, 0 allowed"]
    assert problems(paths_, Limits(100, 1, 0.01)) == ["cells take 6% of the period, 1% allowed"]


def test_a_late_path_is_a_problem() -> None:
    paths_ = analyse({"a": flip_flop(9, 2), "b": flip_flop(2, 4)})
    (period,) = (path.delay for path in paths_)
    assert problems(paths_, Limits(1000 / (period + 0.01), 1, 1)) == []
    assert problems(paths_, Limits(1000, 1, 1)) == ["pins late at 1000 MHz with routed nets: 1"]
