# SPDX-License-Identifier: Apache-2.0
"""Joining mapped parts of a design, and the block RAM of its RAMs."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from hilt import paths

sys.path.insert(0, str(paths.hls_directory() / "yosys"))

from block_ram import used
from netlist_parts import PartError, join


def cell(kind: str, **connections: list[Any]) -> dict[str, Any]:
    return {"type": kind, "port_directions": {}, "connections": connections, "parameters": {}}


def module(ports: dict[str, tuple[str, list[Any]]], cells: dict[str, Any]) -> dict[str, Any]:
    nets = {name: {"bits": bits, "hide_name": 0} for name, (_, bits) in ports.items()}
    directed = {name: {"direction": direction, "bits": bits} for name, (direction, bits) in ports.items()}
    return {"ports": directed, "cells": cells, "netnames": nets}


INVERTER = module({"a": ("input", [2]), "y": ("output", [3])}, {"lut": cell("LUT1", I0=[2], O=[3])})


def test_a_part_takes_the_place_of_its_cell_under_its_name() -> None:
    top = module(
        {"in": ("input", [2]), "out": ("output", [4])},
        {"first": cell("inverter", a=[2], y=[3]), "second": cell("inverter", a=[3], y=[4])},
    )
    joined = join({"top": top, "inverter": INVERTER}, "top", {})
    first, second = joined["cells"]["first.lut"]["connections"], joined["cells"]["second.lut"]["connections"]
    assert first["O"] == second["I0"], "the net between them is one"
    assert joined["netnames"]["first.y"]["bits"] == joined["netnames"]["second.a"]["bits"]
    assert len({first["I0"][0], first["O"][0], second["O"][0]}) == 3


def test_constants_and_wires_pass_through_a_part() -> None:
    inner = module({"a": ("input", [2, 3]), "y": ("output", [3, "1"])}, {})
    top = module(
        {"in": ("input", [2])},
        {"wires": cell("wires", a=["0", 2], y=[5, 6]), "sink": cell("LUT2", I0=[5], I1=[6], O=[7])},
    )
    joined = join({"top": top, "wires": inner}, "top", {})
    sink = joined["cells"]["sink"]["connections"]
    assert sink["I0"] == joined["netnames"]["in"]["bits"] and sink["I1"] == ["1"]


def test_lanes_share_narrow_ports_and_split_wide_ones() -> None:
    lane = module(
        {"enable": ("input", [2]), "d": ("input", [3]), "q": ("output", [4])},
        {"ff": cell("FDRE", CE=[2], D=[3], Q=[4])},
    )
    top = module(
        {"e": ("input", [2]), "d": ("input", [3, 4]), "q": ("output", [5, 6])},
        {"bank": cell("lane", enable=[2], d=[3, 4], q=[5, 6])},
    )
    joined = join({"top": top, "lane": lane}, "top", {"lane": 2})
    low, high = (joined["cells"][f"bank.lane[{n}].ff"]["connections"] for n in (0, 1))
    assert low["CE"] == high["CE"] == joined["netnames"]["e"]["bits"]
    assert low["D"] + high["D"] == joined["netnames"]["d"]["bits"]
    assert low["Q"] + high["Q"] == joined["netnames"]["q"]["bits"]
    with pytest.raises(PartError, match=r"bank\.d has 2 bits; a lane of 4 has 1"):
        join({"top": top, "lane": lane}, "top", {"lane": 4})


def test_each_lane_of_a_bank_has_blocks_of_its_own() -> None:
    cells = {f"bank.lane[{n}].u_ram": cell("vta_ram", data_i=[0] * 32, read_index_i=[0] * 10) for n in range(16)}
    cells["u_uop"] = cell("vta_dual_port_ram", a_data_i=[0] * 32, a_index_i=[0] * 9, b_index_i=[0] * 9)
    assert used({"modules": {"top": {"cells": cells}}}, "top") == 16 + 1
