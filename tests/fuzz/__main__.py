"""`python -m tests.fuzz [frames|bundles] [COUNT] [SEED]`: a million frames, or a hundred thousand bundles."""

from __future__ import annotations

import resource
import sys
import time

from tests.fuzz.bundles import MOST_TIMES_DECLARED, BundleStatistics, fuzz_one, seeds
from tests.fuzz.frames import MOST_BYTES, fuzz

FRAMES = 1_000_000
BUNDLES = 100_000
_MEMORY_BYTES = 4 << 30
"""A mutant that asks for more gets MemoryError, and not this machine."""


def main() -> int:
    arguments = sys.argv[1:]
    kind = arguments.pop(0) if arguments and not arguments[0].isdigit() else "frames"
    count, seed = (
        int(each) for each in (*arguments, *(str(BUNDLES if kind == "bundles" else FRAMES), "1")[len(arguments) :])
    )
    return bundles(count, seed) if kind == "bundles" else frames(count, seed)


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


if __name__ == "__main__":
    sys.exit(main())
