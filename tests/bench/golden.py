"""The speed of the golden model: the best of some runs, by processor time of the one thread."""

from __future__ import annotations

import time
from collections.abc import Iterator

from hilt.simulator.build import build
from hilt.simulator.device import MemoryModel, SimulatedDevice
from hilt.simulator.driver import execute
from hilt.virtual.board_model import board_model
from hilt.vta.isa import MemoryType
from tests.bench.figure import Figure, Sizes, Topic
from tests.bench.prepared import GOOD_C5, prepared
from tests.rtl.assembly import BASE, INSN, MEMORY_BYTES, UOP_POOL, finish, gemm, load, micro_ops, words

PYNQ = board_model("pynq").accelerator
RUNS = 5


def figures(sizes: Sizes) -> Iterator[Figure]:
    rate = _rate(_one_gemm())
    yield Figure("GEMM micro-ops/s", "one GEMM of 1.8 million", "-", f"best of {RUNS}", rate, "30 million/s")
    with prepared(PYNQ, "golden", "resnet18.C5", GOOD_C5, board_model("pynq").memory_model) as schedule:
        runs = [schedule.run() for _ in range(RUNS)]
        fastest = max(execution.counters.macs / PYNQ.macs_per_cycle / seconds for execution, seconds in runs)
    yield Figure("GEMM micro-ops/s", "resnet18.C5, all of a schedule", "1", f"best of {RUNS}", _rate(fastest))


def _one_gemm() -> float:
    """Micro-ops a second with a conv's reuse: 196 accumulators, nine weights, and inputs that move on by one."""
    uops = [(n, n, 0) for n in range(196)]
    instructions = words(
        PYNQ,
        [
            load(MemoryType.UOP, 0, UOP_POOL // PYNQ.uop_element_bytes, 1, len(uops)),
            gemm(0, len(uops), 1024, 9, src_factor_out=1, wgt_factor_in=1),
            finish(),
        ],
    )
    with SimulatedDevice(build(PYNQ, "golden"), MemoryModel(BASE, MEMORY_BYTES)) as device:
        device.write_memory(UOP_POOL, micro_ops(PYNQ, *uops))
        device.write_memory(INSN, instructions)
        return max(_micro_ops_per_second(device, len(instructions)) for _ in range(RUNS))


def _micro_ops_per_second(device: SimulatedDevice, count: int) -> float:
    start = time.thread_time()
    execution = execute(device, INSN, count, 1 << 40)
    return execution.counters.macs / PYNQ.macs_per_cycle / (time.thread_time() - start)


def _rate(per_second: float) -> str:
    return f"{per_second / 1e6:.1f} million/s"


TOPIC = Topic("golden", "the golden model on one core", figures)
