"""Workloads and configurations that the tests of hilt.schedule go over."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from hilt.schedule import Conv2d, space_for, verdicts
from hilt.vta.accelerator import Accelerator, IsaRevision, load_parameters

PYNQ = Accelerator.for_parameters(load_parameters("pynq"))
PYNQ_B = Accelerator.for_parameters(load_parameters("pynq"), IsaRevision.B)
BATCHED = Accelerator.for_parameters(load_parameters("pynq_batched"))
ZCU102 = Accelerator.for_parameters(load_parameters("zcu102"))
RESNET18 = [f"resnet18.C{number}" for number in range(2, 12)]


def accepted(workload: Conv2d, accelerator: Accelerator, count: int, seed: int) -> list[dict[str, int]]:
    """`count` random configurations that the compiler accepts."""
    space = space_for(workload, accelerator)
    good = np.flatnonzero(verdicts(workload, accelerator, space.columns(np.arange(len(space)))) == 0)
    chosen = np.random.default_rng(seed).choice(good, size=min(count, len(good)), replace=False)
    return [space.knobs_at(int(index)) for index in chosen]


@st.composite
def small_convolutions(draw: st.DrawFn) -> Conv2d:
    """Any kernel, dilation, stride and padding (the same on both sides or not), channels and batch that fill blocks in
    part, bias or not."""
    kernel = (draw(st.integers(1, 5)), draw(st.integers(1, 4)))
    dilation = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    padding = tuple(draw(st.integers(0, side + 1)) for side in kernel)
    pad_end = draw(st.none() | st.tuples(*(st.integers(0, side + 1) for side in kernel)))
    low = draw(st.integers(-128, 0))
    return Conv2d(
        name="small",
        batch=draw(st.integers(1, 6)),
        in_channels=draw(st.integers(1, 70)),
        height=draw(st.integers((kernel[0] - 1) * dilation[0] + 1, 13)),
        width=draw(st.integers((kernel[1] - 1) * dilation[1] + 1, 13)),
        out_channels=draw(st.integers(1, 70)),
        kernel=kernel,
        stride=(draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        padding=(padding[0], padding[1]),
        padding_end=pad_end,
        dilation=dilation,
        bias=draw(st.booleans()),
        shift=draw(st.integers(0, 12)),
        clip=(low, draw(st.integers(low, 127))),
    )


def describe(knobs: dict[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in knobs.items())
