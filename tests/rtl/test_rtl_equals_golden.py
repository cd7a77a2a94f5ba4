"""The RTL against the golden model: the whole memory, and all that is counted but time, after random programs.

More than 20,000 random instructions for pynq's two revisions, samples of a batched set and of the wide ISA on a 128-bit
bus. HILT_RANDOM_SEED moves them; nightly.py does a million for every build.
"""

from __future__ import annotations

import os

import pytest

from hilt.simulator.build import build, quick_build
from hilt.vta.accelerator import Accelerator, IsaRevision
from hilt.vta.parameters import VTAParameters
from tests.rtl.compare_models import explain, memory_timing, on_library
from tests.rtl.variants import VARIANTS

INSTRUCTIONS = 450
PROGRAMS = {"pynq A": 24, "pynq B": 24, "4x8 B, 128-bit bus": 5, "zcu102 wide, 128-bit bus": 5}
WITH_ASSERTIONS = {
    "pynq A": VARIANTS["pynq A"],
    "1x8 A, 4 read ports": Accelerator(VTAParameters.from_name("1x8_i8w8a32_12_13_14_15"), IsaRevision.A, read_ports=4),
}
FIRST_SEED = int(os.environ.get("HILT_RANDOM_SEED", "1"))


def test_the_sample_is_large_enough() -> None:
    assert INSTRUCTIONS * (PROGRAMS["pynq A"] + PROGRAMS["pynq B"]) >= 20_000


@pytest.mark.parametrize("variant", PROGRAMS)
def test_random_programs_leave_the_same_memory(variant: str) -> None:
    accelerator = VARIANTS[variant]
    rtl, golden = quick_build(accelerator, "rtl"), on_library(build(accelerator, "golden"))
    for seed in range(FIRST_SEED, FIRST_SEED + PROGRAMS[variant]):
        timing = memory_timing(seed)
        problem = explain(accelerator, seed, INSTRUCTIONS, on_library(rtl, **timing), golden)
        assert problem is None, f"{problem}\nwith a memory of {timing}"


@pytest.mark.parametrize("variant", WITH_ASSERTIONS)
def test_no_assertion_fails_and_nothing_depends_on_unwritten_memory(variant: str) -> None:
    """The debug profile: assertions on, and every register and buffer random at power-on."""
    accelerator = WITH_ASSERTIONS[variant]
    rtl, golden = build(accelerator, "rtl", "debug"), on_library(build(accelerator, "golden"))
    for seed in range(FIRST_SEED, FIRST_SEED + 3):
        model = on_library(rtl, **memory_timing(seed))
        problem = explain(accelerator, seed, INSTRUCTIONS, model, golden, fill=True)
        assert problem is None, problem
