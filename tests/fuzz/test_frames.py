"""Twenty thousand frames of `python -m tests.fuzz`."""

from __future__ import annotations

from tests.fuzz.frames import MOST_BYTES, fuzz


def test_frames_of_all_kinds_are_read_or_refused() -> None:
    tally = fuzz(20_000, seed=11)
    assert tally.frames >= 20_000
    assert tally.messages > 5_000 and tally.refused_frames > 1_000 and tally.refused_messages > 1_000, tally
    assert tally.most_bytes <= MOST_BYTES
