"""`python -m tests.fuzz [FRAMES] [SEED]`: a million frames by default; prints the statistics."""

from __future__ import annotations

import sys
import time

from tests.fuzz.frames import MOST_BYTES, fuzz

FRAMES = 1_000_000


def main() -> int:
    frames, seed = (int(each) for each in (*sys.argv[1:], *(str(FRAMES), "1")[len(sys.argv) - 1 :]))
    began = time.monotonic()
    statistics = fuzz(frames, seed)
    print(
        f"{statistics.frames} frames, seed {seed}, {time.monotonic() - began:.0f} s: {statistics.messages} messages, "
        f"{statistics.refused_messages} refused as messages, {statistics.refused_frames} streams refused as frames; "
        f"slowest stream {1e3 * statistics.slowest_seconds:.1f} ms, "
        f"at most {statistics.most_bytes} bytes of memory (bound {MOST_BYTES})"
    )
    return 0 if statistics.most_bytes <= MOST_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
