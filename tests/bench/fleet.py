"""Trials a second of two boards over those of one.

The board is the bottleneck: each run takes 50 ms at least.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from hilt.measure import Measurer, Request, open_measurer
from hilt.trial import Outcome, Result
from tests.bench.figure import Figure, Sizes, Topic
from tests.bench.own_home import own_home
from tests.e2e.small_programs import dot_product

BOARD = "virtual:pynq_paced"
BATCHES = 8
BATCH = 16


def figures(sizes: Sizes) -> Iterator[Figure]:
    with own_home():
        one = _rate(f"{BOARD}@a", "one")
        two = _rate(f"{BOARD}@a,{BOARD}@b", "two")
    subject, count = f"a dot product, {BOARD}", f"{BATCHES} batches of {BATCH}"
    yield Figure("trials/s of one board", subject, "7", count, f"{one:.1f}/s")
    yield Figure("trials/s of two boards", subject, "7", count, f"{two:.1f}/s")
    yield Figure("two boards over one", subject, "7", count, f"{two / one:.2f}", "1.8")


def _rate(boards: str, run: str) -> float:
    measurer = open_measurer(boards)
    try:
        _measure(measurer, _requests(measurer, f"{run}-warm", 0))
        started = time.perf_counter()
        for batch in range(BATCHES):
            _measure(measurer, _requests(measurer, run, batch))
        return BATCHES * BATCH / (time.perf_counter() - started)
    finally:
        measurer.close()


def _requests(measurer: Measurer, run: str, batch: int) -> list[Request]:
    accelerator = measurer.description.accelerator
    return [dot_product(accelerator, number, run=run) for number in range(batch * BATCH, (batch + 1) * BATCH)]


def _measure(measurer: Measurer, requests: list[Request]) -> None:
    results: dict[int, Result] = {}
    measurer.measure(requests, results.__setitem__)
    assert all(result.outcome is Outcome.OK for result in results.values()), results


TOPIC = Topic("fleet", "several boards", figures)
