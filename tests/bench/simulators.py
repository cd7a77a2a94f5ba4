"""How fast the models of the accelerator run: the best of a few runs, by processor time of the one thread."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from hilt.schedule import load_workload, lower, make_tensors
from hilt.simulator.build import Form, build
from hilt.simulator.device import MemoryModel, SimulatedDevice, Status
from hilt.simulator.driver import execute
from hilt.simulator.program_run import place
from hilt.vta.accelerator import Accelerator, load_parameters
from hilt.vta.isa import MemoryType
from tests.bench.figure import Figure
from tests.rtl.assembly import BASE, INSN, MEMORY_BYTES, UOP_POOL, finish, gemm, load, micro_ops, words

PYNQ = Accelerator.for_parameters(load_parameters("pynq"))
WORKLOAD = "resnet18.C5"
KNOBS = {"tile_b": 1, "tile_h": 14, "tile_w": 28, "tile_ci": 2, "tile_co": 2, "oc_nthread": 2, "h_nthread": 1}
RUNS = 5


def figures() -> Iterator[Figure]:
    yield Figure("golden model, one GEMM instruction", _golden_gemm(), "micro-ops/s", 30e6)
    micro_ops_per_second, _ = _schedule("golden")
    yield Figure(f"golden model, {WORKLOAD}", micro_ops_per_second, "micro-ops/s")
    _, cycles_per_second = _schedule("rtl")
    yield Figure(f"RTL, {WORKLOAD}", cycles_per_second, "cycles/s", 1e6)


def _golden_gemm() -> float:
    """A conv's reuse: 196 accumulators, nine weights, and inputs that move on by one."""
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
        return max(_rates(device, INSN, len(instructions))[0] for _ in range(RUNS))


def _schedule(form: Form) -> tuple[float, float]:
    """(GEMM micro-ops, cycles) per second of one program of WORKLOAD, whose output is compared once."""
    workload = load_workload(WORKLOAD)
    program = lower(workload, KNOBS, PYNQ)
    tensors = make_tensors(workload, PYNQ, seed=1)
    addresses, end = place(program, BASE)
    with SimulatedDevice(build(PYNQ, form), MemoryModel(BASE, end - BASE)) as device:
        device.write_memory(addresses["insn"], program.relocated(addresses))
        for name, array in {**tensors.inputs, "uop": program.uops}.items():
            device.write_memory(addresses[name], array)
        rates = [_rates(device, addresses["insn"], len(program.instructions)) for _ in range(RUNS)]
        output = device.view(addresses["out"], program.buffer("out").bytes).view(np.int8)
        assert np.array_equal(output, tensors.expected.ravel())
    return max(rate for rate, _ in rates), max(rate for _, rate in rates)


def _rates(device: SimulatedDevice, insn_addr: int, insn_count: int) -> tuple[float, float]:
    start = time.thread_time()
    execution = execute(device, insn_addr, insn_count, 1 << 40)
    seconds = time.thread_time() - start
    assert execution.status is Status.DONE
    return execution.counters.macs / PYNQ.macs_per_cycle / seconds, execution.cycles / seconds
