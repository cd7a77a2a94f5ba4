# SPDX-License-Identifier: Apache-2.0
"""Write the register map of registers.toml as SystemVerilog, C, Python and Markdown.

python hls/registers/generate.py           writes the files
python hls/registers/generate.py --check   ends with status 1 where a file differs
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCE = "hls/registers/registers.toml"
PAGE_BYTES = 0x1000
START, START_AND_AUTO_RESTART = 0x01, 0x81


class MapError(ValueError):
    """A register map that contradicts itself."""


@dataclass(frozen=True)
class Word:
    """One 32-bit register: `name` is unique in the map, `offset` counts in bytes from the fetch page."""

    name: str
    offset: int
    access: str
    text: str


@dataclass(frozen=True)
class Map:
    """The register map: pages by name, registers as written, faults as written."""

    version: int
    identity: int
    pages: dict[str, int]
    registers: list[dict[str, Any]]
    faults: list[dict[str, Any]]

    def words(self) -> list[Word]:
        """Return every 32-bit register, by offset.

        Raises:
            MapError: Two registers have one offset or one name, or one is outside its page.
        """
        words = sorted(self._words(), key=lambda word: word.offset)
        for first, second in pairwise(words):
            if first.offset == second.offset:
                raise MapError(f"{first.name} and {second.name} are both at 0x{first.offset:04X}")
        if len({word.name for word in words}) != len(words):
            raise MapError("two registers have one name")
        return words

    def _words(self) -> Iterator[Word]:
        for register in self.registers:
            for page in register["pages"]:
                several = len(register["pages"]) > 1
                name = f"{page}_{register['name']}" if several else register["name"]
                halves = ("_low", "_high") if register.get("wide") else ("",)
                for number, half in enumerate(halves):
                    offset = register["offset"] + 4 * number
                    if offset % 4 or offset >= PAGE_BYTES:
                        raise MapError(f"{name}: offset 0x{offset:X} is not a word of a page")
                    yield Word(name + half, self.pages[page] + offset, register["access"], register["text"])


def read_map(path: Path = HERE / "registers.toml") -> Map:
    """Return the register map of a TOML file."""
    table = tomllib.loads(path.read_text())
    return Map(table["version"], table["identity"], table["pages"], table["registers"], table["faults"])


def camel(name: str) -> str:
    """Return a snake_case name in the style of SystemVerilog constants."""
    return "".join(part.capitalize() for part in name.split("_"))


def system_verilog(registers: Map) -> str:
    """Return the package of offsets and fault codes."""
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        f"// Register offsets and fault codes. Generated from {SOURCE}: do not edit.",
        "",
        "package vta_registers_pkg;",
        "",
        f"  localparam logic [31:0] RegIdentityValue = 32'h{registers.identity:08X};",
        f"  localparam logic [31:0] RegMapVersionValue = 32'd{registers.version};",
        "",
        "  // Registers that each stage's page has, by their offset in the page.",
    ]
    for register in registers.registers:
        if len(register["pages"]) > 1:
            lines += _page_offsets(register)
    lines += ["", "  // Registers of one page, by their offset from the fetch page."]
    single = {word.offset for word in registers.words()} - _offsets_on_every_page(registers)
    for word in registers.words():
        if word.offset in single:
            lines.append(f"  localparam logic [13:0] Reg{camel(word.name)} = 14'h{word.offset:04X};")
    lines += ["", "  typedef enum logic [3:0] {"]
    last = len(registers.faults) - 1
    for number, fault in enumerate(registers.faults):
        name = f"Fault{camel(fault['name'].removesuffix('_index').removesuffix('_instruction'))}"
        lines.append(f"    {name:<12} = 4'd{fault['code']}{'' if number == last else ','}")
    return "\n".join([*lines, "  } fault_e;", "", "endpackage", ""])


def _page_offsets(register: dict[str, Any]) -> Iterator[str]:
    halves = ("Low", "High") if register.get("wide") else ("",)
    for number, half in enumerate(halves):
        offset = register["offset"] + 4 * number
        yield f"  localparam logic [11:0] Page{camel(register['name'])}{half} = 12'h{offset:03X};"


def _offsets_on_every_page(registers: Map) -> set[int]:
    return {
        registers.pages[page] + register["offset"] + half
        for register in registers.registers
        if len(register["pages"]) > 1
        for page in register["pages"]
        for half in (0, 4)
    }


def c_header(registers: Map) -> str:
    """Return the header of offsets and fault codes."""
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        f"/* Register offsets and fault codes. Generated from {SOURCE}: do not edit. */",
        "#ifndef HILT_VTA_REGISTERS_H",
        "#define HILT_VTA_REGISTERS_H",
        "",
        f"#define VTA_IDENTITY_VALUE 0x{registers.identity:08X}u",
        f"#define VTA_MAP_VERSION_VALUE {registers.version}u",
        "",
        "/* Byte offsets of the pages from the fetch page, and their end. */",
        "enum vta_page {",
        *(f"  VTA_PAGE_{name.upper()} = 0x{base:04X}," for name, base in registers.pages.items()),
        f"  VTA_PAGE_END = 0x{max(registers.pages.values()) + PAGE_BYTES:04X}",
        "};",
        "",
        "/* Byte offsets from the fetch page. The counters of a page are at the same offsets of each page. */",
        "enum vta_register {",
        *(f"  VTA_REG_{word.name.upper()} = 0x{word.offset:04X}," for word in registers.words()),
        "};",
        "",
        "/* Bits of a control register. */",
        "enum vta_control {",
    ]
    (control,) = (register for register in registers.registers if register["name"] == "control")
    lines += [f"  VTA_CONTROL_{field['name'].upper()} = 1 << {field['bits'][1]}," for field in control["fields"]]
    lines += ["};", "", "enum vta_fault_code {"]
    lines += [f"  VTA_FAULT_{fault['name'].upper()} = {fault['code']}," for fault in registers.faults]
    return "\n".join([*lines, "};", "", "#endif", ""])


def python_module(registers: Map) -> str:
    """Return the module of board and host, Python 3.8: plain integers, which a poll reads often."""
    size = max(registers.pages.values()) + PAGE_BYTES
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        f'"""The accelerator\'s registers and faults. Generated from {SOURCE}: do not edit."""',
        "",
        "from __future__ import annotations",
        "",
        "from enum import IntEnum",
        "",
        f"REGISTER_BYTES = 0x{size:04X}",
        '"""Size of the four pages: fetch, load, compute, store."""',
        "",
        f"START = 0x{START:02X}",
        f"START_AND_AUTO_RESTART = 0x{START_AND_AUTO_RESTART:02X}",
        "",
        f"IDENTITY_VALUE = 0x{registers.identity:08X}",
        "",
        "",
        "class Register:",
        '    """Byte offset of a register. Fetch is at 0x0000, load 0x1000, compute 0x2000, store 0x3000."""',
        "",
        *(f"    {word.name.upper()} = 0x{word.offset:04X}" for word in registers.words()),
        "",
        "",
        "class FaultCode(IntEnum):",
        '    """Reason why the accelerator stopped itself."""',
        "",
        *(f"    {fault['name'].upper()} = {fault['code']}" for fault in registers.faults),
        "",
        "",
        "FAULTS = {",
        *(f'    {fault["code"]}: "{fault["text"]}",' for fault in registers.faults if fault["code"]),
        "}",
        '"""Text of a fault by its code; `format` takes the fault address."""',
    ]
    return "\n".join([*lines, ""])


def markdown(registers: Map) -> str:
    """Return the page for readers."""
    lines = [
        "# Registers",
        "",
        f"Generated from `{SOURCE}` by `make registers`: edit that file, not this page.",
        "",
        "One AXI4-Lite slave has a page of 4 KiB for each stage. The offsets 0x00 to 0x28 are those of public VTA",
        "bitstreams; the others are hilt's own. All registers have 32 bits. A 64-bit value has its low word first.",
        "A register that is not listed reads 0. A write with a byte strobe low is refused with SLVERR.",
        "Counters are cleared when fetch starts. [microarchitecture.md](microarchitecture.md) defines what they count.",
        "",
        "| page | offset |",
        "|---|---|",
        *(f"| {name} | 0x{base:04X} |" for name, base in registers.pages.items()),
        "",
        "## Registers of every page",
        "",
        *_table(register for register in registers.registers if len(register["pages"]) > 1),
    ]
    for page in registers.pages:
        lines += ["", f"## {page.capitalize()}", ""]
        lines += _table(register for register in registers.registers if register["pages"] == [page])
    lines += ["", "## Fields"]
    for register in registers.registers:
        if "fields" in register:
            lines += ["", f"`{register['name']}`", "", "| bits | field | |", "|---|---|---|"]
            for field in register["fields"]:
                high, low = field["bits"]
                bits = f"{high}:{low}" if high != low else f"{low}"
                lines.append(f"| {bits} | {field['name']} | {field['text']} |")
    lines += ["", "## Faults", "", "| code | name | fault address |", "|---|---|---|"]
    lines += [f"| {fault['code']} | {fault['name']} | {fault['address']} |" for fault in registers.faults]
    return "\n".join([*lines, ""])


def _table(registers: Iterator[dict[str, Any]]) -> Iterator[str]:
    yield from ("| offset | name | access | |", "|---|---|---|---|")
    for register in registers:
        offset = register["offset"]
        offsets = f"0x{offset:02X}, 0x{offset + 4:02X}" if register.get("wide") else f"0x{offset:02X}"
        yield f"| {offsets} | {register['name']} | {register['access']} | {register['text']} |"


FILES = {
    "hls/rtl/vta_registers_pkg.sv": system_verilog,
    "hls/sim/vta_registers.h": c_header,
    "board/hilt_runtime/registers.py": python_module,
    "docs/registers.md": markdown,
}


def main(arguments: list[str]) -> int:
    """Write the files, or compare them with `--check`; return the exit status."""
    registers = read_map()
    stale = []
    for name, generate in FILES.items():
        path, text = ROOT / name, generate(registers)
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            path.write_text(text)
    if stale and "--check" in arguments:
        print(f"not as {SOURCE} says: {', '.join(stale)}; run `make registers`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
