"""Trials a second over SSH on a virtual board: the price of a trial beside its cycles."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from hilt.measure import Measurer, Request, open_measurer
from hilt.trial import Outcome, Result
from tests.bench.figure import Figure, Sizes, Topic
from tests.bench.own_home import own_home
from tests.e2e.small_programs import dot_product

BOARD = "virtual:pynq"
WARM_UP = 20


def figures(sizes: Sizes) -> Iterator[Figure]:
    with own_home(), _opened() as measurer:
        _measure(measurer, _requests(measurer, "warm", WARM_UP))
        requests = _requests(measurer, "pipelined", sizes.trials)
        start = time.perf_counter()
        cycles = _measure(measurer, requests)
        pipelined = time.perf_counter() - start
        requests = _requests(measurer, "alone", sizes.trials)
        start = time.perf_counter()
        for request in requests:
            _measure(measurer, [request])
        alone = time.perf_counter() - start
    subject, count = f"a dot product of {cycles} cycles, {BOARD}", f"{sizes.trials} trials"
    rate = sizes.trials / pipelined
    yield Figure("trials/s over SSH, next one sent ahead", subject, "7", count, f"{rate:.0f}/s", "100/s")
    yield Figure("trials/s over SSH, one at a time", subject, "7", count, f"{sizes.trials / alone:.0f}/s")


@contextmanager
def _opened() -> Iterator[Measurer]:
    measurer = open_measurer(BOARD)
    try:
        yield measurer
    finally:
        measurer.close()


def _requests(measurer: Measurer, run: str, count: int) -> list[Request]:
    return [dot_product(measurer.description.accelerator, ordinal, run=run) for ordinal in range(count)]


def _measure(measurer: Measurer, requests: list[Request]) -> int:
    """Cycles of one of them."""
    results: dict[int, Result] = {}
    measurer.measure(requests, results.__setitem__)
    assert all(result.outcome is Outcome.OK for result in results.values()), results
    cycles = results[requests[0].ordinal].cycles
    assert cycles is not None
    return cycles


TOPIC = Topic("trials", "trials a second over SSH", figures)
