"""The golden model against an interpreter of the instructions that shares no code with it."""

from __future__ import annotations

import pytest

from hilt.simulator.build import build
from tests.rtl.compare_models import explain, on_library, on_numpy
from tests.rtl.variants import VARIANTS

PROGRAMS = 5
INSTRUCTIONS = 300


@pytest.mark.parametrize("variant", VARIANTS)
def test_random_programs_leave_the_same_memory(variant: str) -> None:
    accelerator = VARIANTS[variant]
    golden, witness = on_library(build(accelerator, "golden")), on_numpy(accelerator)
    for seed in range(1000, 1000 + PROGRAMS):
        problem = explain(accelerator, seed, INSTRUCTIONS, golden, witness)
        assert problem is None, problem
