# SPDX-License-Identifier: Apache-2.0
"""The register map has one source; every file made from it is up to date and consistent."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from hilt import paths
from hilt_runtime import registers
from hilt_runtime.registers import FAULTS, FaultCode, Register

SCRIPT = paths.hls_directory() / "registers" / "generate.py"
ROOT = paths.hls_directory().parent


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


def test_the_numbers_that_run_are_those_of_the_map(generate: ModuleType) -> None:
    table = generate.read_map()
    offsets = {name: number for name, number in vars(Register).items() if not name.startswith("_")}
    assert offsets == {word.name.upper(): word.offset for word in table.words()}
    assert FaultCode.__members__ == {fault["name"].upper(): fault["code"] for fault in table.faults}
    assert {fault["code"]: fault["text"] for fault in table.faults if fault["code"]} == FAULTS
    assert registers.IDENTITY_VALUE == table.identity == int.from_bytes(b"HILT", "big")
    assert registers.REGISTER_BYTES == max(table.pages.values()) + 0x1000 == 0x4000
    assert (registers.START, registers.START_AND_AUTO_RESTART) == (1, 1 | 1 << 7)  # ap_start, auto_restart


def test_every_fault_has_a_text() -> None:
    assert FAULTS.keys() == {code.value for code in FaultCode if code is not FaultCode.NONE}


PRODUCT = sorted(path for folder in ("board", "experiments", "host") for path in (ROOT / folder).rglob("*.py"))


def test_registers_are_defined_once() -> None:
    """No product file but the generated one reads or writes a register by a number, or lists offsets."""
    table = ROOT / "board" / "hilt_runtime" / "registers.py"
    numbers = re.compile(r"(?:\.(?:read|write|read_register|write_register)\(|\bread\(|\bwrite\()\s*0x[0-9A-Fa-f]+")
    named = re.compile(r"^\s*_?(?:" + "|".join(names()) + r")\b.*= *(?:0x|\d)", re.MULTILINE)
    literal = [
        str(path.relative_to(ROOT))
        for path in PRODUCT
        if path != table and (numbers.search(text := path.read_text(encoding="utf-8")) or named.search(text))
    ]
    assert literal == []
    assert [path for name, path in definitions() if name in ("Register", "FaultCode")] == [table, table]


def names() -> list[str]:
    return [name for name in vars(Register) if not name.startswith("_")]


def definitions() -> list[tuple[str, Path]]:
    found = []
    for path in PRODUCT:
        found += [(name, path) for name in re.findall(r"(?m)^class (\w+)", path.read_text(encoding="utf-8"))]
    return found


def test_the_public_map_is_that_of_public_bitstreams() -> None:
    """Offsets of public VTA drivers, written here a second time on purpose."""
    public = {
        **{"FETCH_CONTROL": 0x0000, "INSN_COUNT": 0x0010, "INSN_ADDR": 0x0018},
        **{"LOAD_CONTROL": 0x1000, "INP_ADDR": 0x1010, "WGT_ADDR": 0x1018},
        **{"COMPUTE_CONTROL": 0x2000, "DONE_WRITE": 0x2010, "DONE_READ": 0x2018, "UOP_ADDR": 0x2020},
        **{"BIAS_ADDR": 0x2028, "STORE_CONTROL": 0x3000, "OUT_ADDR": 0x3010},
    }
    assert {name: getattr(Register, name) for name in public} == public


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
