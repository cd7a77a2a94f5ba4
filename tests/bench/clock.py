"""The worth of a clock: microseconds of the ten ResNet-18 layers at several clocks of the same board.

The twin predicts the best configuration at 100 MHz with a memory whose latency stays the same in nanoseconds. A beat a
cycle is taken to be there at every clock, as at an HP port of Zynq-7000 (64 bit, up to 250 MHz).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hilt.schedule import load_workload, lower
from hilt.simulator.device import MemoryModel
from hilt.simulator.twin import Twin
from hilt.vta.program import Program
from tests.bench.best_by_twin import BOARD, LAYERS, PYNQ, best_by_twin
from tests.bench.figure import Figure, Sizes, Topic

CLOCKS_MHZ = (100, 125, 142.857, 200)
"""The first is the public bitstreams', with which the others are compared."""


def figures(sizes: Sizes) -> Iterator[Figure]:
    twin = Twin(PYNQ)
    totals = dict.fromkeys(CLOCKS_MHZ, 0.0)
    for name in LAYERS:
        workload = load_workload(name)
        found = best_by_twin(twin, workload, orders=4, checks="compiler")
        program = lower(workload, found.index, PYNQ, found.checks)
        times = {clock: microseconds(twin, program, clock) for clock in CLOCKS_MHZ}
        for clock, time in times.items():
            totals[clock] += time
        yield Figure("best schedule's time", name, "-", f"{found.searched:,} by twin", _line(times))
    yield Figure("sum of the ten layers", "resnet18", "-", "1", _line(totals))


def microseconds(twin: Twin, program: Program, clock_mhz: float) -> float:
    """Return the time of a program at a clock, by the twin."""
    (answer,) = twin.predict([program], memory_at(clock_mhz))
    return float(answer["cycles"]) / clock_mhz


def memory_at(clock_mhz: float) -> MemoryModel:
    """Return the board's memory in cycles of another clock: the same latencies in nanoseconds."""
    memory, faster = BOARD.memory_model, clock_mhz * 1e6 / BOARD.clock_hz
    read, write = (round(latency * faster) for latency in (memory.read_latency, memory.write_latency))
    return replace(memory, read_latency=read, write_latency=write)


def _line(times: dict[int, float]) -> str:
    first = times[CLOCKS_MHZ[0]]
    return "; ".join(
        f"{clock} MHz {time:,.1f} µs" + (f" (x{first / time:.3f})" if clock != CLOCKS_MHZ[0] else "")
        for clock, time in times.items()
    )


TOPIC = Topic("clock", "microseconds of the ten layers at several clocks, by the twin, pynq", figures)
"""In cycles a faster clock costs only what the memory's latency grows by."""
