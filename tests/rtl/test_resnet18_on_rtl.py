"""The ten convolutions of ResNet-18 on the Verilated RTL, each by a good configuration, compared in full."""

import numpy as np
import pytest

from hilt.schedule import Conv2d, bound_cycles, load_workload, lower, make_tensors, space_for, verdicts
from hilt.simulator.build import quick_build
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import ProgramRun, run_program
from hilt.vta.accelerator import Accelerator, load_parameters

PYNQ = Accelerator.for_parameters(load_parameters("pynq"))
WITHOUT_INTERLOCK = Accelerator.for_parameters(load_parameters("pynq"), hazards="none")
KNOBS = ("tile_b", "tile_h", "tile_w", "tile_ci", "tile_co", "oc_nthread", "h_nthread")
GOOD = {
    "resnet18.C2": (1, 7, 56, 1, 2, 1, 2),
    "resnet18.C3": (1, 28, 7, 1, 4, 2, 1),
    "resnet18.C4": (1, 2, 28, 2, 4, 2, 2),
    "resnet18.C5": (1, 14, 28, 2, 2, 2, 1),
    "resnet18.C6": (1, 14, 14, 1, 4, 2, 1),
    "resnet18.C7": (1, 2, 14, 2, 8, 2, 2),
    "resnet18.C8": (1, 14, 14, 1, 4, 2, 1),
    "resnet18.C9": (1, 7, 7, 1, 8, 2, 1),
    "resnet18.C10": (1, 7, 7, 1, 16, 2, 1),
    "resnet18.C11": (1, 7, 7, 1, 8, 2, 1),
}
EPILOGUE_CYCLES = 0.5
"""Cycles of every output element in the stage that runs the GEMM.

SHR, MAX and MIN go in one pass, two elements a cycle. The reset is done in passing (vta_fold).
"""

ENDS_CYCLES = 3_000
"""Cycles at both ends, before the first tile has arrived and after the last was computed.

Nothing hides the memory there: 967 and 1,990 cycles in C10 (its timeline), a tenth of the short 1x1 layers.
"""


def run(workload: Conv2d, knobs: dict[str, int], accelerator: Accelerator) -> tuple[ProgramRun, int]:
    """The run, and how many output elements are wrong."""
    tensors = make_tensors(workload, accelerator, seed=1)
    program = lower(workload, knobs, accelerator)
    done = run_program(quick_build(accelerator, "rtl"), program, tensors.inputs, max_cycles=5_000_000)
    assert done.execution.status is DeviceStatus.DONE, knobs
    return done, int(np.sum(done.output != tensors.expected.ravel()))


@pytest.mark.parametrize("name", GOOD)
def test_a_good_configuration_is_right_and_near_the_compute_bound(name: str) -> None:
    workload = load_workload(name)
    done, wrong = run(workload, dict(zip(KNOBS, GOOD[name], strict=True)), PYNQ)
    assert wrong == 0
    bound = bound_cycles(workload, PYNQ)
    cycles = done.execution.cycles
    print(f"{name}: {cycles} cycles, {cycles / bound:.3f} of the roofline bound {bound}")
    outputs = workload.batch * workload.out_channels // PYNQ.parameters.block * workload.out_height * workload.out_width
    micro_ops = workload.macs // PYNQ.macs_per_cycle
    least = micro_ops + EPILOGUE_CYCLES * outputs
    assert least < cycles < 1.03 * least + ENDS_CYCLES


def test_virtual_threads_hide_the_loads() -> None:
    """The same tile alone and as two threads: the loads of one go on while the other computes."""
    workload = load_workload("resnet18.C9")
    single = dict(zip(KNOBS, (1, 7, 7, 1, 8, 1, 1), strict=True))
    alone, wrong_alone = run(workload, single, PYNQ)
    threaded, wrong_threaded = run(workload, {**single, "oc_nthread": 2}, PYNQ)
    assert wrong_alone == wrong_threaded == 0
    assert threaded.execution.cycles < 0.75 * alone.execution.cycles


@pytest.mark.parametrize("name", ["resnet18.C7", "resnet18.C10"])
def test_strict_rejects_lost_sums_without_interlock(name: str) -> None:
    """The level `strict` accepts only schedules that lose no sums without an interlock.

    The hardware is as the public bitstreams are: a schedule that `strict` accepts is right on it. A schedule that
    `strict` refuses and `compiler` accepts is wrong on it, but right if the accumulator waits.
    """
    workload = load_workload(name)
    space = space_for(workload, WITHOUT_INTERLOCK)
    columns = space.columns(np.arange(len(space)))
    compiles, safe = (verdicts(workload, WITHOUT_INTERLOCK, columns, level) == 0 for level in ("compiler", "strict"))
    generator = np.random.default_rng(3)
    for index in generator.choice(np.flatnonzero(safe), 3, replace=False):
        assert run(workload, space.knobs_at(int(index)), WITHOUT_INTERLOCK)[1] == 0
    index = int(generator.choice(np.flatnonzero(compiles & ~safe)))
    assert run(workload, space.knobs_at(index), WITHOUT_INTERLOCK)[1] > 0
    assert run(workload, space.knobs_at(index), PYNQ)[1] == 0
