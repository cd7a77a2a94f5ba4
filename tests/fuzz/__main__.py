"""Mutated frames and bundles, and random networks: `python -m tests.fuzz [frames|bundles|networks] [COUNT] [SEED]`."""

from __future__ import annotations

import argparse
import resource
import sys
import time

from tests.fuzz.bundles import MOST_TIMES_DECLARED, BundleStatistics, fuzz_one, seeds
from tests.fuzz.frames import MOST_BYTES, fuzz
from tests.fuzz.networks import NetworkStatistics, try_one

COUNTS = {"frames": 1_000_000, "bundles": 100_000, "networks": 1000}
_MEMORY_BYTES = 4 << 30
"""A mutant that asks for more gets MemoryError, and not this machine."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("kind", nargs="?", default="frames", choices=COUNTS)
    parser.add_argument("count", nargs="?", type=int, help="a million, a hundred thousand, or a thousand")
    parser.add_argument("seed", nargs="?", type=int, default=1)
    options = parser.parse_args()
    count = COUNTS[options.kind] if options.count is None else options.count
    return {"frames": frames, "bundles": bundles, "networks": networks}[options.kind](count, options.seed)


def frames(count: int, seed: int) -> int:
    """Feed frames and print the statistics. Returns the exit code."""
    began = time.monotonic()
    statistics = fuzz(count, seed)
    print(
        f"{statistics.frames} frames, seed {seed}, {time.monotonic() - began:.0f} s: {statistics.messages} messages, "
        f"{statistics.refused_messages} refused as messages, {statistics.refused_frames} streams refused as frames; "
        f"slowest stream {1e3 * statistics.slowest_seconds:.1f} ms, "
        f"at most {statistics.most_bytes} bytes of memory (bound {MOST_BYTES})"
    )
    return 0 if statistics.most_bytes <= MOST_BYTES else 1


def bundles(count: int, seed: int) -> int:
    """Feed mutated bundles and print the statistics; mutant k of seed s is s/k. Returns the exit code."""
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    began, bases, statistics = time.process_time(), seeds(), BundleStatistics()
    for number in range(count):
        fuzz_one(bases, seed, number, statistics)
        if (number + 1) % 10_000 == 0:
            print(f"{number + 1}: {len(statistics.violations)} violations", flush=True)
    print(
        f"{statistics.bundles} bundles, seed {seed}, {time.process_time() - began:.0f} s of processor time: "
        f"{statistics.refused} refused, {statistics.ran} ran within their memory, "
        f"{statistics.failed_steps} failed in a step, {statistics.long} too long to try; "
        f"slowest {1e3 * statistics.slowest_seconds:.0f} ms; reading took at most "
        f"{statistics.most_times_declared:.2f} times the file (bound {MOST_TIMES_DECLARED}); "
        f"{len(statistics.violations)} violations"
    )
    for violation in statistics.violations:
        print(violation)
    return 1 if statistics.violations or statistics.most_times_declared > MOST_TIMES_DECLARED else 0


def networks(count: int, seed: int) -> int:
    """Make networks and print the statistics; network k of seed s is s/k. Returns the exit code."""
    began, statistics = time.process_time(), NetworkStatistics()
    for number in range(count):
        try_one(seed, number, statistics)
        if (number + 1) % 100 == 0:
            print(f"{number + 1}: {len(statistics.wrong)} wrong", flush=True)
    refused = ", ".join(f"{count} {kind}" for kind, count in sorted(statistics.refused.items())) or "none"
    print(
        f"{statistics.networks} networks, seed {seed}, {time.process_time() - began:.0f} s of processor time: "
        f"{statistics.tensors} tensors compared, refused: {refused}; {len(statistics.wrong)} wrong"
    )
    for wrong in statistics.wrong:
        print(wrong)
    return 1 if statistics.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
