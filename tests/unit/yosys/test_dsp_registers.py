# SPDX-License-Identifier: Apache-2.0
"""Operands' registers that become those of a DSP slice, and those that must not."""

from __future__ import annotations

import sys
from typing import Any

from hilt import paths

sys.path.insert(0, str(paths.hls_directory() / "yosys"))

from dsp_registers import pack


def cell(kind: str, outputs: tuple[str, ...], **ports: list[Any]) -> dict[str, Any]:
    directions = {port: "output" if port in outputs else "input" for port in ports}
    return {"type": kind, "port_directions": directions, "connections": ports, "parameters": {}}


def flip_flop(data: int, output: int, enable: Any = 3, reset: Any = "0") -> dict[str, Any]:
    return cell("FDRE", ("Q",), C=[2], CE=[enable], D=[data], Q=[output], R=[reset])


def module(**flip_flops: dict[str, Any]) -> dict[str, Any]:
    return {"cells": {"dsp": cell("DSP48E2", ("P",), CLK=[2], A=["0", 20, 21, 21], C=["0"], P=[50]), **flip_flops}}


def test_an_operand_of_registers_and_constants_is_packed() -> None:
    packed = module(a=flip_flop(10, 20), b=flip_flop(11, 21))
    assert pack(packed) == 2
    assert set(packed["cells"]) == {"dsp"}
    dsp = packed["cells"]["dsp"]
    assert dsp["connections"]["A"] == ["0", 10, 11, 11] and dsp["connections"]["CEA2"] == [3]
    assert dsp["parameters"] == {"AREG": "1"}, "nothing at C, so no CREG"


def test_a_register_that_others_read_stays_for_them() -> None:
    packed = module(a=flip_flop(10, 20), b=flip_flop(11, 21), lut=cell("LUT1", ("O",), I0=[20], O=[60]))
    assert pack(packed) == 1
    assert set(packed["cells"]) == {"dsp", "a", "lut"}


def test_registers_of_two_enables_or_with_a_reset_stay_outside() -> None:
    for second in (flip_flop(11, 21, enable=4), flip_flop(11, 21, reset=5)):
        packed = module(a=flip_flop(10, 20), b=second)
        assert pack(packed) == 0 and packed["cells"]["dsp"]["connections"]["A"] == ["0", 20, 21, 21]
