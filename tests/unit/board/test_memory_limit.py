"""A network's processor steps may take three quarters of the memory that is free; behind them there is no bound."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hilt_board import memory_limit
from hilt_board.memory_limit import limited_memory

TAKEN, FREE = 1000, 400
WANTED = 1024 * (TAKEN + 300)


@pytest.mark.parametrize(("hard", "limit"), [(-1, WANTED), (WANTED + 1, WANTED), (WANTED - 1, WANTED - 1), (7, 7)])
def test_it_holds_for_the_block_and_no_longer(hard: int, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"VmData": f"Name:\tx\nVmData:\t{TAKEN} kB\nVmStk:\t1 kB\n", "MemAvailable": f"MemAvailable: {FREE} kB\n"}
    held = [(hard, hard)]
    system = SimpleNamespace(
        RLIMIT_DATA=2, getrlimit=lambda kind: held[-1], setrlimit=lambda kind, pair: held.append(pair)
    )
    monkeypatch.setattr(memory_limit, "resource", system)
    monkeypatch.setattr(
        memory_limit,
        "Path",
        lambda path: SimpleNamespace(
            read_text=lambda **_: texts["VmData" if path == "/proc/self/status" else "MemAvailable"]
        ),
    )
    with pytest.raises(MemoryError), limited_memory():
        assert held[1:] == [(limit, hard)]
        raise MemoryError
    assert held[2:] == [(hard, hard)]
