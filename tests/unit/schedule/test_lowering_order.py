"""Programs drain, are free of races, and keep sums as far apart as the checks say."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.schedule import Conv2d, Rejected, hazard_distance, load_workload, lower, space_for, verdicts
from hilt.schedule.checks import NO_HAZARD
from hilt.vta.accelerator import Accelerator
from tests.unit.schedule.cases import BATCHED, PYNQ, RESNET18, ZCU102, accepted, describe, small_convolutions
from tests.unit.schedule.dependences import check_order, drains, least_sum_distance


def check(workload: Conv2d, knobs: dict[str, int], accelerator: Accelerator) -> None:
    program = lower(workload, knobs, accelerator)
    if len(program.instructions) > 2500:
        return
    check_order(program, accelerator)
    assert drains(program, accelerator, queue_depth=1), describe(knobs)
    assert drains(program, accelerator, queue_depth=512), describe(knobs)
    claimed = int(hazard_distance(workload, accelerator, {name: [value] for name, value in knobs.items()})[0])
    assert (least_sum_distance(program, accelerator) or NO_HAZARD) == claimed


@pytest.mark.slow
@pytest.mark.parametrize("name", RESNET18)
def test_resnet18(name: str) -> None:
    workload = load_workload(name)
    for knobs in accepted(workload, PYNQ, 8, seed=18):
        check(workload, knobs, PYNQ)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(small_convolutions(), st.sampled_from([PYNQ, BATCHED, ZCU102]), st.integers(0, 2**31))
def test_any_small_convolution(workload: Conv2d, accelerator: Accelerator, seed: int) -> None:
    space = space_for(workload, accelerator)
    knobs = space.knobs_at(int(np.random.default_rng(seed).integers(len(space))))
    try:
        check(workload, knobs, accelerator)
    except Rejected as rejected:
        assert rejected.reason  # test_checks.py tests the refusals


def test_a_tile_with_room_keeps_its_sums_three_apart() -> None:
    """A tile with room keeps its sums three apart.

    Only tiles of one or two output elements can lose sums on hardware without interlock.
    """
    for name in RESNET18:
        workload = load_workload(name)
        space = space_for(workload, PYNQ)
        columns = space.columns(np.arange(len(space)))
        distance = hazard_distance(workload, PYNQ, columns)
        outputs = columns["tile_b"] * columns["tile_h"] * columns["tile_w"] * columns["tile_co"]
        good = verdicts(workload, PYNQ, columns) == 0
        assert np.all(distance[good & (outputs >= 3)] >= 3)
        assert np.any(distance[good] < 3)


@pytest.mark.slow
@pytest.mark.parametrize("flag", ["pop_prev", "pop_next", "push_prev", "push_next"])
def test_a_program_without_a_token_is_found_out(flag: str) -> None:
    """The checker itself: every token of a program is needed."""
    workload = load_workload("resnet18.C9")
    knobs = {
        **{"tile_b": 1, "tile_h": 1, "tile_w": 7, "tile_ci": 4, "tile_co": 4},
        **{"oc_nthread": 2, "h_nthread": 1},
    }
    program = lower(workload, knobs, PYNQ)
    bit = np.uint64(1 << {"pop_prev": 3, "pop_next": 4, "push_prev": 5, "push_next": 6}[flag])
    having = np.flatnonzero(program.instructions[:, 0] & bit)
    for number in having[:: max(1, len(having) // 8)]:
        instructions = program.instructions.copy()
        instructions[number, 0] &= ~bit
        with pytest.raises(AssertionError):
            check_order(replace(program, instructions=instructions), PYNQ)
