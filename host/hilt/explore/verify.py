"""Runs the schedules of a design on the Verilated RTL, and compares cycles and outputs with the prediction."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hilt.explore.design import Design
from hilt.explore.schedules import LayerSchedule, load_batched
from hilt.schedule import lower, make_tensors
from hilt.simulator.build import build
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program

_SEED = 1


@dataclass(frozen=True)
class LayerVerification:
    """One layer's best schedule on the RTL, beside the prediction."""

    workload: str
    status: str
    """`done`, or how the RTL ended."""
    predicted_cycles: int
    rtl_cycles: int
    output_is_right: bool

    @property
    def agrees(self) -> bool:
        """Return whether the RTL took exactly the predicted cycles and computed the reference's output."""
        return self.status == "done" and self.output_is_right and self.predicted_cycles == self.rtl_cycles

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self) | {"agrees": self.agrees}


def verify_layer(design: Design, layer: LayerSchedule) -> LayerVerification:
    """Run a layer's schedule on the RTL and return both cycle counts.

    The RTL is compiled on first use, which takes a minute or more. Raises MissingToolError, BuildError.
    """
    accelerator = design.accelerator
    workload = load_batched(layer.workload, design.parameters.batch)
    program = lower(workload, layer.knobs, accelerator)
    tensors = make_tensors(workload, accelerator, seed=_SEED)
    run = run_program(
        build(accelerator, "rtl"), program, tensors.inputs, memory=design.memory, max_cycles=4 * layer.cycles + 10_000
    )
    done = run.execution.status is DeviceStatus.DONE
    right = done and bool(np.array_equal(run.output, tensors.expected.ravel()))
    return LayerVerification(
        layer.workload, run.execution.status.name.lower(), layer.cycles, run.execution.cycles, right
    )
