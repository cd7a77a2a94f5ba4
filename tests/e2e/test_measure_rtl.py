"""The whole way on the RTL: lowered convolutions over SSH, verified, and the same cycles whatever ran before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hilt.measure import Measurer, Request, open_measurer
from hilt.schedule import bound_cycles, load_workload, lower, make_tensors, space_for
from hilt.schedule.checks import Rejected
from hilt.trial import Outcome, Result
from tests.e2e.small_programs import dot_product, hanging, wrong

WORKLOAD = load_workload("conv2d:n=1,ci=32,h=14,w=14,co=32,k=3x3,s=1x1,p=1x1")


@pytest.fixture(scope="module")
def measurer(shared_home: Path) -> Iterator[Measurer]:
    opened = open_measurer("virtual:pynq")
    yield opened
    opened.close()


def requests(measurer: Measurer, run: str, count: int) -> list[Request]:
    """Return requests for a seeded sample of the configurations that can be lowered."""
    accelerator = measurer.description.accelerator
    tensors = make_tensors(WORKLOAD, accelerator, seed=1)
    space = space_for(WORKLOAD, accelerator)
    found: list[Request] = []
    for index in space.sample(len(space), np.random.default_rng(5)):
        try:
            program = lower(WORKLOAD, space.knobs_at(int(index)), accelerator)
        except Rejected:
            continue
        ordinal = len(found)
        found.append(Request(ordinal, f"{run}/{ordinal}/0", program, tensors, limit_seconds=0.02))
        if len(found) == count:
            return found
    raise AssertionError(f"only {len(found)} of {len(space)} configurations can be lowered")


def measure(measurer: Measurer, batch: list[Request]) -> dict[int, Result]:
    results: dict[int, Result] = {}
    measurer.measure(batch, results.__setitem__)
    return results


def test_convolutions_are_right_and_take_the_same_cycles_in_any_order(measurer: Measurer) -> None:
    accelerator = measurer.description.accelerator
    forth = requests(measurer, "forth", 12)
    first = measure(measurer, forth)
    elements = WORKLOAD.out_channels * WORKLOAD.out_height * WORKLOAD.out_width
    for result in first.values():
        assert result.outcome is Outcome.OK, result.reason
        assert result.verification is not None
        assert (result.verification.compared, result.verification.mismatched) == (elements, 0)
        assert result.cycles is not None and result.microseconds == pytest.approx(result.cycles / 100)
        assert result.cycles > bound_cycles(WORKLOAD, accelerator, bytes_per_cycle=8)
    assert len({result.cycles for result in first.values()}) > 6

    back = list(reversed(requests(measurer, "back", 12)))
    disturbances = [
        hanging(accelerator, 100, "back"),
        wrong(dot_product(accelerator, 101, run="back")),
    ]
    second = measure(measurer, [*back[:4], disturbances[0], *back[4:8], disturbances[1], *back[8:]])
    assert second.pop(100).outcome is Outcome.TIMEOUT
    assert second.pop(101).outcome is Outcome.WRONG_ANSWER
    assert second == first


def test_a_hanging_program_ends_in_the_time_stated(measurer: Measurer) -> None:
    accelerator = measurer.description.accelerator
    results = measure(measurer, [hanging(accelerator, 0, "hang"), dot_product(accelerator, 1, rounds=100, run="hang")])
    assert results[0].outcome is Outcome.TIMEOUT
    assert "no FINISH within 1000000 cycles" in results[0].reason  # 0.01 s at 100 MHz
    assert results[1].outcome is Outcome.OK
