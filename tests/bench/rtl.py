"""The simulation speed of the RTL for every set of parameters: the best of some runs, by processor time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from statistics import median

from hilt.virtual.board_model import board_model
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
"""Runs of each set, taken in turn, so that all share the seconds in which nothing else slows the machine."""


def figures(sizes: Sizes) -> Iterator[Figure]:
    with ExitStack() as stack:
        boards = {name: board_model(name) for name in SCHEDULES}
        schedules = {
            name: stack.enter_context(prepared(board.accelerator, "rtl", *SCHEDULES[name], board.memory_model))
            for name, board in boards.items()
        }
        rounds = [{name: schedule.run() for name, schedule in schedules.items()} for _ in range(RUNS)]
    for name, board in boards.items():
        accelerator = board.accelerator
        cycles = rounds[0][name][0].cycles
        rates = [execution.cycles / seconds / 1e6 for execution, seconds in (each[name] for each in rounds)]
        yield Figure(
            f"RTL cycles/s, {name} ({accelerator.parameters.name}, ISA {accelerator.isa}, {board.bus_bits} bit)",
            f"{'resnet18.C5' if name != 'pynq_batched' else 'C5 with a batch of 4'}, {cycles:,} cycles",
            "1",
            f"best of {RUNS}",
            f"{max(rates):.2f} million/s (median {median(rates):.2f})",
            "2 million/s" if name == "pynq" else "",
        )


TOPIC = Topic("rtl", "the Verilated RTL on one core", figures)
