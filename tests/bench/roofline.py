"""How near the best schedule of each ResNet-18 layer comes to what no schedule can beat.

The twin answers for every configuration that the compiler accepts; the best then runs on the RTL, and its whole output
is compared with the reference.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from hilt.schedule import Conv2d, bound_cycles, load_workload, lower, make_tensors, space_for, verdicts
from hilt.schedule.bounds import least_bytes
from hilt.simulator.build import build
from hilt.simulator.device import Status
from hilt.simulator.program_run import run_program
from hilt.simulator.twin import Twin, TwinStatus
from hilt.virtual.personality import personality
from hilt.vta.accelerator import Accelerator
from tests.bench.figure import Figure, Sizes, Topic

BOARD = personality("pynq")
PYNQ = BOARD.accelerator
LAYERS = [f"resnet18.C{number}" for number in range(2, 12)]
EPILOGUE_OPERATIONS = 4
"""Reset, SHR, MAX and MIN: a cycle each for every output element, in the stage that runs the GEMM."""
SEED = 1


def figures(sizes: Sizes) -> Iterator[Figure]:
    twin = Twin(PYNQ)
    for name in LAYERS:
        workload = load_workload(name)
        start = time.process_time()
        configuration, predicted, searched = _best_by_twin(twin, workload)
        seconds = time.process_time() - start
        cycles = _on_rtl(workload, configuration)
        bound = bound_cycles(workload, PYNQ)
        memory = -(-least_bytes(workload, PYNQ) // (PYNQ.bus_bits // 8))
        binds = "memory" if bound == memory else "MACs"
        knobs = " ".join(f"{value}" for value in configuration.values())
        value = f"{cycles:,} cycles / {bound:,} ({binds}) = {cycles / bound:.3f}"
        yield Figure(
            "best schedule over the roofline bound",
            f"{name}: {knobs}",
            str(SEED),
            f"{searched:,} by twin in {seconds:.0f} s",
            value,
            "1.05" if binds == "MACs" else "",
        )
        least = max(memory, _compute_stage_cycles(workload, PYNQ))
        also = f"{cycles / least:.3f} of {least:,}; twin {'agrees' if predicted == cycles else f'says {predicted:,}'}"
        yield Figure("  over what the compute stage must do", name, str(SEED), "1", also)


def _best_by_twin(twin: Twin, workload: Conv2d) -> tuple[dict[str, int], int, int]:
    """(the configuration of fewest cycles, its cycles, how many were asked for)."""
    space = space_for(workload, PYNQ)
    accepted = np.flatnonzero(verdicts(workload, PYNQ, space.columns(np.arange(len(space)))) == 0)
    memory = BOARD.memory_model
    best = (1 << 63, -1)
    for index in accepted:
        prediction = twin.predict([lower(workload, space.configuration(int(index)), PYNQ)], memory)[0]
        assert prediction["status"] == TwinStatus.DONE, (workload.name, int(index))
        best = min(best, (int(prediction["cycles"]), int(index)))
    return space.configuration(best[1]), best[0], len(accepted)


def _on_rtl(workload: Conv2d, configuration: dict[str, int]) -> int:
    """Cycles of a verified run."""
    tensors = make_tensors(workload, PYNQ, SEED)
    program = lower(workload, configuration, PYNQ)
    memory = BOARD.memory_model
    run = run_program(build(PYNQ, "rtl"), program, tensors.inputs, memory=memory)
    assert run.execution.status is Status.DONE, run.execution
    assert np.array_equal(run.output, tensors.expected.ravel()), f"{workload.name} gave a wrong answer"
    return run.execution.cycles


def _compute_stage_cycles(workload: Conv2d, accelerator: Accelerator) -> int:
    """GEMM micro-ops, and the operations on every output element that VTA's instructions cannot do beside them."""
    block = accelerator.parameters.block
    outputs = workload.batch * -(-workload.out_channels // block) * workload.out_height * workload.out_width
    taps = -(-workload.in_channels // block) * workload.kernel[0] * workload.kernel[1]
    return outputs * (taps + EPILOGUE_OPERATIONS)


TOPIC = Topic("roofline", "cycles over the roofline bound, best of all configurations, pynq", figures)
