from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from hilt.tune.stopwatch import Stopwatch


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Processor time that only the test moves on."""
    now = [100.0]
    monkeypatch.setattr(time, "process_time", lambda: now[0])
    yield now


def test_a_part_within_a_part_counts_once(clock: list[float]) -> None:
    watch = Stopwatch()
    clock[0] += 7  # nobody's
    with watch.part("training"):
        clock[0] += 1
        with watch.part("features"):
            clock[0] += 2
        clock[0] += 4
    clock[0] += 7
    with watch.part("features"):
        clock[0] += 8
        assert watch.seconds == {"training": 5, "features": 10}
        clock[0] += 16
    assert watch.seconds == {"training": 5, "features": 26}


def test_a_part_that_raises_is_counted_and_ended(clock: list[float]) -> None:
    watch = Stopwatch()
    with pytest.raises(KeyError), watch.part("training"):
        clock[0] += 3
        raise KeyError
    clock[0] += 50
    assert watch.seconds == {"training": 3}


def test_it_counts_work_and_not_waiting() -> None:
    watch = Stopwatch()
    with watch.part("work"):
        start = time.process_time()
        while time.process_time() - start < 0.02:
            pass
    assert 0.02 <= watch.seconds["work"] < 1
