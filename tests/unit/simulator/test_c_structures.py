"""The C structures of the libraries are defined once in Python, with the fields of the headers."""

from __future__ import annotations

import re
from dataclasses import fields

from hilt import paths
from hilt.simulator.machine import MachineParameters
from hilt_virtual_board.machine import COSTS
from hilt_virtual_board.model import ModelMemory


def members(header: str, structure: str) -> list[str]:
    text = (paths.hls_directory() / header).read_text(encoding="utf-8")
    found = re.search(rf"(?:struct {structure} \{{|typedef struct \{{)(.*?)\}}(?: {structure};|;)", text, re.DOTALL)
    assert found is not None
    plain = re.sub(r"//.*|/\*.*?\*/", "", found.group(1))
    return re.findall(r"(\w+)\s*[;,]", plain)


def test_a_memory_has_the_fields_of_the_header() -> None:
    assert [name for name, *_ in ModelMemory._fields_] == members("sim/vta_sim.h", "vta_memory_model")


def test_the_costs_are_those_of_the_header_and_of_the_hosts_parameters() -> None:
    assert list(COSTS) == members("timing/public/vta_machine.h", "vta_machine_parameters")
    assert list(COSTS) == [field.name for field in fields(MachineParameters)]


def test_each_structure_is_defined_once() -> None:
    root = paths.hls_directory().parent
    sources = [path for folder in ("board", "experiments", "host") for path in (root / folder).rglob("*.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    assert text.count('("bandwidth_numerator", ctypes') == 1
    assert text.count("ctypes.c_double) for ") == 1
