"""`python -m tests.fuzz [FRAMES] [SEED]`: a million frames unless told otherwise; prints what came of them."""

from __future__ import annotations

import sys
import time

from tests.fuzz.frames import MOST_BYTES, fuzz

FRAMES = 1_000_000


def main() -> int:
    frames, seed = (int(each) for each in (*sys.argv[1:], *(str(FRAMES), "1")[len(sys.argv) - 1 :]))
    began = time.monotonic()
    tally = fuzz(frames, seed)
    print(
        f"{tally.frames} frames, seed {seed}, {time.monotonic() - began:.0f} s: {tally.messages} messages, "
        f"{tally.refused_messages} refused as messages, {tally.refused_frames} streams refused as frames; slowest "
        f"stream {1e3 * tally.slowest_seconds:.1f} ms, at most {tally.most_bytes} bytes of memory (bound {MOST_BYTES})"
    )
    return 0 if tally.most_bytes <= MOST_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
