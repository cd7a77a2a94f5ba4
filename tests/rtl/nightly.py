"""A million random instructions for each build of the accelerator, the RTL against the golden model and the twin.

Builds with four read ports run some with assertions, too, and registers and buffers that are random at power-on.

    make nightly
    python -m tests.rtl.nightly [--instructions N] [--first-seed S] [--jobs N] [VARIANT ...]

Programs are shared out to a process for each processor. Prints a line for each build, stops at the first difference and
says how to repeat it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from hilt.simulator.build import build, quick_build
from hilt.simulator.device import MemoryModel
from hilt.simulator.twin import Twin
from tests.rtl.compare_models import explain, memory_timing, on_library
from tests.rtl.random_programs import random_program
from tests.rtl.twin_comparison import random_differences
from tests.rtl.variants import VARIANTS, WIDE_VARIANTS

BUILDS = VARIANTS | WIDE_VARIANTS
PROGRAM = 450
"""Random instructions of one program: long enough to fill queues, short enough that most results are stored."""
TWIN_EVERY = 10
"""Of so many programs one runs on the twin too."""
AT_ONCE = 50
"""Programs that a process is given at a time."""


WITH_ASSERTIONS = 40
"""Programs of a build with assertions."""


def compare(variant: str, seeds: range) -> str | None:
    """Run the programs of these seeds; return the first difference, or None."""
    accelerator = BUILDS[variant]
    rtl, golden = quick_build(accelerator, "rtl"), on_library(build(accelerator, "golden"))
    for seed in seeds:
        timing = memory_timing(seed)
        problem = explain(accelerator, seed, PROGRAM, on_library(rtl, **timing), golden)
        if problem is not None:
            return f"{variant}: {problem}\nwith a memory of {timing}"
        if seed % TWIN_EVERY == 0 and (differences := twin_differences(variant, seed)):
            return f"{variant}, seed {seed}: {'; '.join(differences)}\nwith a memory of {timing}"
    return None


def twin_differences(variant: str, seed: int) -> list[str]:
    """Return the differences between the RTL's cycles and counters and the twin's, for the program of a seed."""
    accelerator = BUILDS[variant]
    program = random_program(accelerator, seed, PROGRAM)
    memory = MemoryModel(**memory_timing(seed))
    return random_differences(quick_build(accelerator, "rtl"), Twin(accelerator), program, memory)


def compare_all(pool: ProcessPoolExecutor, variant: str, instructions: int, first_seed: int) -> str | None:
    build(BUILDS[variant], "rtl")
    build(BUILDS[variant], "golden")
    begun = time.monotonic()
    seeds = range(first_seed, first_seed - (-instructions // PROGRAM))
    shares = [seeds[start : start + AT_ONCE] for start in range(0, len(seeds), AT_ONCE)]
    for problem in pool.map(partial(compare, variant), shares):
        if problem is not None:
            return problem
    seconds = time.monotonic() - begun
    told = f"{len(seeds) * PROGRAM:>10,} instructions (seeds {seeds[0]} to {seeds[-1]})"
    print(f"{variant:26} {told}: no difference, {seconds:,.0f} s", flush=True)
    return None


def asserted(variant: str, first_seed: int) -> str | None:
    """Run programs by the debug profile; return the first difference or failed assertion, or None."""
    accelerator = BUILDS[variant]
    rtl, golden = build(accelerator, "rtl", "debug"), on_library(build(accelerator, "golden"))
    for seed in range(first_seed, first_seed + WITH_ASSERTIONS):
        model = on_library(rtl, **memory_timing(seed))
        problem = explain(accelerator, seed, PROGRAM, model, golden, fill=True)
        if problem is not None:
            return f"{variant}, with assertions: {problem}\nwith a memory of {memory_timing(seed)}"
    print(f"{variant:26} {WITH_ASSERTIONS * PROGRAM:>10,} instructions with assertions: no difference", flush=True)
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="*", metavar="VARIANT", help=f"of {', '.join(BUILDS)}")
    parser.add_argument("--instructions", type=int, default=1_000_000, help="for each build; default: %(default)s")
    parser.add_argument("--first-seed", type=int, default=100_000, help="of the programs; default: %(default)s")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes; default: %(default)s")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.variants if name not in BUILDS]:
        parser.error(f"no build {unknown[0]!r}; there are {', '.join(BUILDS)}")
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for variant in arguments.variants or BUILDS:
            problem = compare_all(pool, variant, arguments.instructions, arguments.first_seed)
            if problem is None and BUILDS[variant].read_ports == 4:
                problem = asserted(variant, arguments.first_seed)
            if problem is not None:
                pool.shutdown(cancel_futures=True)
                print(problem)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
