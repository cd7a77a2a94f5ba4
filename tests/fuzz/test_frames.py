"""Twenty thousand frames of `python -m tests.fuzz`."""

from __future__ import annotations

from tests.fuzz.frames import MOST_BYTES, fuzz


def test_frames_of_all_kinds_are_read_or_refused() -> None:
    statistics = fuzz(20_000, seed=11)
    assert statistics.frames >= 20_000
    assert statistics.messages > 5_000 and statistics.refused_frames > 1_000 and statistics.refused_messages > 1_000, (
        statistics
    )
    assert statistics.most_bytes <= MOST_BYTES
