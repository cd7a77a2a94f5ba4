"""Random convolutions on the RTL of every parameter set and ISA: any kernel, stride and padding, with bias, with
channels and batch that fill their blocks in part."""

import numpy as np
import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from hilt.schedule import Conv2d, Rejected, lower, make_tensors, space_for
from hilt.simulator.build import quick_build
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program
from tests.rtl.variants import IN_EACH_RUN, VARIANTS
from tests.unit.schedule.cases import describe, small_convolutions


@pytest.mark.parametrize("variant", IN_EACH_RUN)
def test_any_small_convolution(variant: str) -> None:
    accelerator = VARIANTS[variant]
    library = quick_build(accelerator, "rtl")

    # Without the phase of shrinking a failure costs no more than a pass.
    @seed(14)
    @settings(max_examples=25, deadline=None, database=None, phases=[Phase.explicit, Phase.generate])
    @given(small_convolutions(), st.integers(0, 2**31))
    def check(workload: Conv2d, draw: int) -> None:
        space = space_for(workload, accelerator)
        knobs = space.knobs_at(int(np.random.default_rng(draw).integers(len(space))))
        try:
            program = lower(workload, knobs, accelerator)
        except Rejected:
            return
        tensors = make_tensors(workload, accelerator, seed=5)
        run = run_program(library, program, tensors.inputs, max_cycles=3_000_000)
        assert run.execution.status is DeviceStatus.DONE, describe(knobs)
        assert np.array_equal(run.output, tensors.expected.ravel()), describe(knobs)

    check()
