"""The rough estimate of row programs: DMA rows and iterations are those of the lowered programs."""

from __future__ import annotations

import numpy as np
import pytest

from hilt.run_choices import SpaceName
from hilt.schedule import load_workload
from hilt.tune.model_guided.structural import COSTS, StructuralEstimate
from hilt.tune.problem import TuningProblem
from hilt.vta.accelerator import Accelerator, load_parameters
from hilt.vta.isa import MemoryType, Opcode, decode

PROBLEM = TuningProblem.of(
    load_workload("conv2d:n=1,ci=64,h=12,w=12,co=64,k=3x3,s=1x1,p=1x1"),
    Accelerator.for_parameters(load_parameters("pynq")),
    kind=SpaceName.ROWS,
)


def loaded_rows(index: int) -> tuple[int, int]:
    """Return the DMA rows of the loads of inputs and weights, and the iterations of GEMMs, of a lowered program."""
    program = PROBLEM.lowered(index)
    assert program is not None
    records = decode(program.instructions, PROBLEM.accelerator)
    operands = np.isin(records["memory_type"], (MemoryType.INP, MemoryType.WGT)) & (records["opcode"] == Opcode.LOAD)
    gemms = records[(records["opcode"] == Opcode.GEMM) & (records["reset"] == 0)]
    return int(records["y_size"][operands].sum()), int((gemms["iter_out"].astype(int) * gemms["iter_in"]).sum())


@pytest.mark.parametrize(("cost", "place"), [("row", 0), ("gemm turn", 1)])
def test_a_machine_where_only_one_kind_of_work_costs_is_estimated_exactly(cost: str, place: int) -> None:
    indices = np.random.default_rng(4).permutation(np.flatnonzero(PROBLEM.compiles))[:12].astype(np.int64)
    costs = np.full(len(COSTS), -60.0)
    costs[COSTS.index(cost)] = 0.0
    estimate = StructuralEstimate(PROBLEM.hidden_features(indices))
    found = np.exp(estimate.log_cycles(costs, overlap=False))
    np.testing.assert_allclose(found, [loaded_rows(int(index))[place] for index in indices], rtol=1e-6)
