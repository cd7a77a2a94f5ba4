# SPDX-License-Identifier: Apache-2.0
"""The register map has one source; every file made from it is up to date and consistent."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from types import ModuleType

import pytest

from hilt import paths
from hilt.simulator.registers import FaultCode, Register
from hilt_board import registers as board

SCRIPT = paths.hls_directory() / "registers" / "generate.py"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_registers", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_generated_file_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


def test_host_and_board_name_the_same_offsets() -> None:
    for register in Register:
        assert getattr(board, register.name) == register.value
    assert board.FAULTS.keys() == {code.value for code in FaultCode if code is not FaultCode.NONE}


def test_the_public_map_is_that_of_public_bitstreams() -> None:
    """Offsets of public VTA drivers, written here a second time on purpose."""
    public = {
        **{"FETCH_CONTROL": 0x0000, "INSN_COUNT": 0x0010, "INSN_ADDR": 0x0018},
        **{"LOAD_CONTROL": 0x1000, "INP_ADDR": 0x1010, "WGT_ADDR": 0x1018},
        **{"COMPUTE_CONTROL": 0x2000, "DONE_WRITE": 0x2010, "DONE_READ": 0x2018, "UOP_ADDR": 0x2020},
        **{"BIAS_ADDR": 0x2028, "STORE_CONTROL": 0x3000, "OUT_ADDR": 0x3010},
    }
    assert {name: Register[name].value for name in public} == public


def test_two_registers_at_one_offset_are_refused(generate: ModuleType) -> None:
    registers = generate.read_map()
    twice = replace(registers, registers=[*registers.registers, {**registers.registers[1], "name": "other"}])
    with pytest.raises(generate.MapError, match="both at 0x0010"):
        twice.words()


def test_a_register_past_its_page_is_refused(generate: ModuleType) -> None:
    registers = generate.read_map()
    past = {"name": "past", "pages": ["fetch"], "offset": 0xFFC, "access": "r", "text": "", "wide": True}
    with pytest.raises(generate.MapError, match="offset 0x1000 is not a word of a page"):
        replace(registers, registers=[*registers.registers, past]).words()
