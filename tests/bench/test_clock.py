"""The memory of a faster clock: `python -m tests.bench clock`."""

from __future__ import annotations

import pytest

from tests.bench.best_by_twin import BOARD
from tests.bench.clock import CLOCKS_MHZ, memory_at


@pytest.mark.parametrize("clock", CLOCKS_MHZ)
def test_the_memory_is_as_slow_in_nanoseconds_at_every_clock(clock: int) -> None:
    memory, usual = memory_at(clock), BOARD.memory_model
    assert memory.read_latency / clock == pytest.approx(usual.read_latency * 1e6 / BOARD.clock_hz, abs=0.5 / clock)
    assert memory.write_latency / clock == pytest.approx(usual.write_latency * 1e6 / BOARD.clock_hz, abs=0.5 / clock)
    assert memory.bandwidth == usual.bandwidth
