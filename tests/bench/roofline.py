"""The distance of the best schedule of each ResNet-18 layer from the roofline bound.

The twin answers for every configuration that the compiler accepts. The best then runs on the RTL, and its whole
output is compared with the reference.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from hilt.schedule import Conv2d, bound_cycles, load_workload
from hilt.schedule.bounds import least_bytes
from hilt.simulator.twin import Twin
from hilt.vta.accelerator import Accelerator
from tests.bench.best_by_twin import LAYERS, PYNQ, SEED, best_by_twin, cycles_on_rtl
from tests.bench.figure import Figure, Sizes, Topic

EPILOGUE_PASSES = 1
"""Over every output element, two elements a cycle, in the stage that runs the GEMM: SHR with MAX and MIN."""


def figures(sizes: Sizes) -> Iterator[Figure]:
    twin = Twin(PYNQ)
    for name in LAYERS:
        workload = load_workload(name)
        start = time.process_time()
        found = best_by_twin(twin, workload, orders=4, checks="compiler")
        seconds = time.process_time() - start
        cycles = cycles_on_rtl(workload, found)
        bound = bound_cycles(workload, PYNQ)
        memory = -(-least_bytes(workload, PYNQ) // (PYNQ.bus_bits // 8))
        binds = "memory" if bound == memory else "MACs"
        knobs = " ".join(f"{value}" for value in found.index.values())
        value = f"{cycles:,} cycles / {bound:,} ({binds}) = {cycles / bound:.3f}"
        yield Figure(
            "best schedule over the roofline bound",
            f"{name}: {knobs}",
            str(SEED),
            f"{found.searched:,} by twin in {seconds:.0f} s",
            value,
            "1.05" if binds == "MACs" else "",
        )
        least = max(memory, _compute_stage_cycles(workload, PYNQ))
        twins = "twin agrees" if found.cycles == cycles else f"twin says {found.cycles:,}"
        also = f"{cycles / least:.3f} of {least:,}; {twins}"
        yield Figure("  over what the compute stage must do", name, str(SEED), "1", also)


def _compute_stage_cycles(workload: Conv2d, accelerator: Accelerator) -> int:
    """GEMM micro-ops, and the operations on every output element that VTA's instructions cannot do beside them."""
    block = accelerator.parameters.block
    outputs = workload.batch * -(-workload.out_channels // block) * workload.out_height * workload.out_width
    taps = -(-workload.in_channels // block) * workload.kernel[0] * workload.kernel[1]
    return outputs * taps + outputs * EPILOGUE_PASSES // 2


TOPIC = Topic("roofline", "cycles over the roofline bound, best of all configurations, pynq", figures)
