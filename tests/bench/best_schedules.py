"""hilt's best schedule of each ResNet-18 layer beside the best of those that TVM v0.9 can run.

The twin answers for every configuration of both. TVM's has one loop order and the limits of TVM's compiler and
runtime (docs/TVM_FACTS.md section 1); hilt's has all four orders and the limits of hilt's compiler. The two best
then run on the RTL, and their whole outputs are compared with the reference.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from hilt.schedule import load_workload
from hilt.simulator.twin import Twin
from tests.bench.best_by_twin import LAYERS, PYNQ, Found, best_by_twin, cycles_on_rtl
from tests.bench.figure import Figure, Sizes, Topic


def figures(sizes: Sizes) -> Iterator[Figure]:
    twin = Twin(PYNQ)
    for name in LAYERS:
        workload = load_workload(name)
        start = time.process_time()
        tvm = best_by_twin(twin, workload, orders=1, checks="tvm")
        ours = best_by_twin(twin, workload, orders=4, checks="compiler")
        seconds = time.process_time() - start
        tvm_cycles, cycles = cycles_on_rtl(workload, tvm), cycles_on_rtl(workload, ours)
        yield Figure(
            "hilt's best over TVM's best",
            f"{name}: {_knobs(ours)} | {_knobs(tvm)}",
            "1",
            f"{ours.searched:,} and {tvm.searched:,} by twin in {seconds:.0f} s",
            f"{cycles:,} / {tvm_cycles:,} cycles = {cycles / tvm_cycles:.3f}",
            "1 or less",
        )


def _knobs(found: Found) -> str:
    return " ".join(str(value) for value in found.index.values())


TOPIC = Topic("best_schedules", "RTL cycles of our best schedule over the best that TVM v0.9 can run, pynq", figures)
