"""The bench of mutants of several read ports: random programs, and blocks of inputs with pads."""

from __future__ import annotations

from pathlib import Path

from hilt.simulator.driver import Execution
from hilt.vta.accelerator import Accelerator, IsaRevision, VTAParameters
from hilt.vta.isa import MemoryType
from tests.rtl.assembly import DATA, finish, load, run
from tests.rtl.mutation.simulation import Bench, compare_random

PORTS = Accelerator(
    VTAParameters(3, 3, 5, 2, 3, 13, 13, 12, 15), IsaRevision.B, instruction_queue_depth=16, read_ports=4, bands=True
)
"""4x8: an input has four beats of 64 bits, a turn for each port."""
PROGRAMS, INSTRUCTIONS = 16, 400


ENDS = {"at its end": 256, "one past its end": 257}
"""Blocks that end at the end of the input buffer, or one past it: their elements, pads included."""


def _compare(rtl: Path, golden: Path, ends: list[Execution]) -> str | None:
    return compare_random(PORTS, PROGRAMS, INSTRUCTIONS, rtl, golden, ends) or _compare_ends(rtl, golden, ends)


def _compare_ends(rtl: Path, golden: Path, ends: list[Execution]) -> str | None:
    for name, elements in ENDS.items():
        block = load(MemoryType.INP, 240, DATA // 32, 1, elements - 241, x_pad_1=1, push_next=1)
        shown, expected = (run(each, PORTS, [block, finish(pop_prev=1)], {}).execution for each in (rtl, golden))
        ends.append(shown)
        if (shown.status, shown.fault) != (expected.status, expected.fault):
            return f"a block that ends {name}: {shown.fault} and {expected.fault}"
    return None


BENCH = Bench(PORTS, _compare)
