"""How fast the RTL is simulated, for every set of parameters: the best of some runs, by processor time."""

from __future__ import annotations

from collections.abc import Iterator

from hilt.virtual.personality import personality
from tests.bench.figure import Figure, Sizes, Topic
from tests.bench.prepared import GOOD_C5, KNOBS, prepared

C5_OF_FOUR = "conv2d:n=4,ci=128,h=28,w=28,co=128,k=3x3,s=1x1,p=1x1"
SCHEDULES = {
    "pynq": ("resnet18.C5", GOOD_C5),
    "pynq_batched": (C5_OF_FOUR, dict(zip(KNOBS, (1, 4, 28, 2, 8, 2, 1), strict=True))),
    "zcu104": ("resnet18.C5", GOOD_C5),
    "zcu102": ("resnet18.C5", GOOD_C5),
}
"""ultra96 is zcu104 with another clock."""
RUNS = 10
"""Of some seconds in all: what else the machine does takes up to a half of a single one."""


def figures(sizes: Sizes) -> Iterator[Figure]:
    for name, (workload, configuration) in SCHEDULES.items():
        board = personality(name)
        accelerator = board.accelerator
        with prepared(accelerator, "rtl", workload, configuration, board.memory_model) as schedule:
            runs = [schedule.run() for _ in range(RUNS)]
        cycles = runs[0][0].cycles
        rate = max(execution.cycles / seconds for execution, seconds in runs)
        yield Figure(
            f"RTL cycles/s, {name} ({accelerator.parameters.name}, ISA {accelerator.isa}, {board.bus_bits} bit)",
            f"{'resnet18.C5' if name != 'pynq_batched' else 'C5 with a batch of 4'}, {cycles:,} cycles",
            "1",
            f"best of {RUNS}",
            f"{rate / 1e6:.2f} million/s",
            "2 million/s" if name == "pynq" else "",
        )


TOPIC = Topic("rtl", "the Verilated RTL on one core", figures)
