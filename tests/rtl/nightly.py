"""A million random instructions for each build of the accelerator, the RTL against the golden model: `make nightly`.

    python -m tests.rtl.nightly [--instructions N] [--first-seed S] [VARIANT ...]

Prints a line for each build, stops at the first difference and says how to repeat it.
"""

from __future__ import annotations

import argparse
import sys
import time

from hilt.simulator.build import build
from tests.rtl.compare_models import explain, memory_timing, on_library
from tests.rtl.variants import VARIANTS

PROGRAM = 450


def compare(variant: str, instructions: int, first_seed: int) -> str | None:
    """Runs programs of PROGRAM random instructions; the first difference, or None."""
    accelerator = VARIANTS[variant]
    rtl, golden = build(accelerator, "rtl"), on_library(build(accelerator, "golden"))
    begun = time.monotonic()
    programs = -(-instructions // PROGRAM)
    for seed in range(first_seed, first_seed + programs):
        timing = memory_timing(seed)
        problem = explain(accelerator, seed, PROGRAM, on_library(rtl, **timing), golden)
        if problem is not None:
            return f"{problem}\nwith a memory of {timing}"
    seconds = time.monotonic() - begun
    seeds = f"seeds {first_seed} to {first_seed + programs - 1}"
    print(f"{variant:26} {programs * PROGRAM:>10,} instructions ({seeds}): no difference, {seconds:,.0f} s", flush=True)
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="*", metavar="VARIANT", help=f"of {', '.join(VARIANTS)}")
    parser.add_argument("--instructions", type=int, default=1_000_000, help="for each build; default: %(default)s")
    parser.add_argument("--first-seed", type=int, default=100_000, help="of the programs; default: %(default)s")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.variants if name not in VARIANTS]:
        parser.error(f"no build {unknown[0]!r}; there are {', '.join(VARIANTS)}")
    for variant in arguments.variants or VARIANTS:
        problem = compare(variant, arguments.instructions, arguments.first_seed)
        if problem is not None:
            print(f"{variant}: {problem}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
