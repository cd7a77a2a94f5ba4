"""The programs of the selftest on the reference model: their output is the expected one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from syrupy.assertion import SnapshotAssertion

from hilt.measure import Request
from hilt.measure.selftest import programs
from hilt.simulator.build import build
from hilt.simulator.program_run import run_program
from hilt.virtual.board_model import BOARD_MODELS
from hilt.vta.accelerator import Accelerator

Maker = Callable[[Accelerator], Request]
MAKERS: dict[str, Maker] = {
    "loads": lambda accelerator: programs.loads(accelerator, 8, 3),
    "stores": lambda accelerator: programs.stores(accelerator, 8, 3),
    "input depth": programs.input_depth,
    "weight depth": programs.weight_depth,
    "micro-op depth": programs.micro_op_depth,
    "accumulator depth": programs.accumulator_depth,
    "sums in a row": lambda accelerator: programs.chained_sums(accelerator, 1),
    "sums in turn": lambda accelerator: programs.chained_sums(accelerator, 3),
    "long run": lambda accelerator: programs.long_run(accelerator, 40_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pynq", "pynq_batched", "zcu102"])
@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_the_output_is_the_expected_one(name: str, maker: Maker) -> None:
    accelerator = BOARD_MODELS[name].accelerator
    request = maker(accelerator)
    ran = run_program(build(accelerator, "golden"), request.program, request.tensors.inputs)
    assert ran.execution.status.name == "DONE"
    assert np.array_equal(ran.output, request.tensors.expected.reshape(-1))


def test_the_depth_programs_reach_the_last_element() -> None:
    accelerator = BOARD_MODELS["pynq"].accelerator
    parameters = accelerator.parameters
    assert len(programs.input_depth(accelerator).tensors.inputs["inp"]) == parameters.inp_depth
    assert len(programs.weight_depth(accelerator).tensors.inputs["wgt"]) == parameters.wgt_depth
    assert len(programs.micro_op_depth(accelerator).program.uops) == accelerator.uop_depth
    assert len(programs.accumulator_depth(accelerator).tensors.expected) == parameters.acc_depth


@pytest.mark.parametrize("name", ["pynq", "pynq_batched", "zcu102"])
def test_the_programs_are_as_they_were(name: str, snapshot: SnapshotAssertion) -> None:
    """Figures of one board from two versions of hilt are of the same programs, on the same numbers."""
    accelerator = BOARD_MODELS[name].accelerator
    lines = []
    for maker_name, maker in MAKERS.items():
        request = maker(accelerator)
        words = [request.program.sha256[:12], f"{len(request.program.instructions)} instructions"]
        words += [f"{key} {_digest(values)}" for key, values in sorted(request.tensors.inputs.items())]
        words += [f"makes {_digest(request.tensors.expected)}", f"within {request.limit_seconds:g} s"]
        lines.append(f"{maker_name}: {', '.join(words)}, {request.repeat} times {request.number}")
    assert "\n".join(lines) == snapshot


def _digest(values: NDArray[Any]) -> str:
    return f"{values.shape} {hashlib.sha256(values.tobytes()).hexdigest()[:10]}"
