"""Queues of tokens, as a program's check reads them: each token is pushed before it is popped, and few wait at once."""

from __future__ import annotations

import numpy as np
import pytest

from hilt_runtime import isa, program_check
from hilt_runtime.program_check import ProgramCheckError

DEPTH = isa.TOKEN_QUEUE_DEPTH


def check(pushes: list[int], pops: list[int]) -> None:
    program_check._check_queue("load to compute", np.array(pushes, np.int64), np.array(pops, np.int64))


@pytest.mark.parametrize(
    ("pushes", "pops"),
    [
        ([], []),
        ([0], [1]),
        ([0, 1, 2], [3, 4, 5]),
        ([0, 2, 4], [1, 3, 5]),
        (list(range(DEPTH)), list(range(DEPTH, 2 * DEPTH))),
        ([*range(DEPTH), DEPTH + 1], list(range(DEPTH, 2 * DEPTH + 2))[:1] + list(range(DEPTH + 2, 2 * DEPTH + 2))),
    ],
    ids=["none", "one", "behind all", "in turn", "as many as fit", "one more, as soon as there is room"],
)
def test_a_queue_that_never_blocks_is_right(pushes: list[int], pops: list[int]) -> None:
    check(pushes, pops)


@pytest.mark.parametrize(("pushes", "pops"), [([0], []), ([], [0]), ([0, 1], [2]), ([0], [1, 2])])
def test_each_token_is_pushed_and_popped(pushes: list[int], pops: list[int]) -> None:
    text = f"{len(pushes)} tokens from load to compute are pushed and {len(pops)} popped"
    with pytest.raises(ProgramCheckError, match=text):
        check(pushes, pops)


@pytest.mark.parametrize(
    ("pushes", "pops", "wrong"), [([1], [0], 0), ([0, 3], [1, 2], 2), ([0, 5, 6], [3, 4, 7], 4), ([2], [2], 2)]
)
def test_a_token_is_pushed_before_it_is_popped(pushes: list[int], pops: list[int], wrong: int) -> None:
    with pytest.raises(
        ProgramCheckError, match=f"instruction {wrong} waits for a token from load to compute that comes"
    ):
        check(pushes, pops)


def test_no_more_tokens_wait_than_a_queue_holds() -> None:
    pushes = list(range(DEPTH + 1))
    with pytest.raises(ProgramCheckError, match=f"more than {DEPTH} tokens from load to compute wait at once"):
        check(pushes, [each + DEPTH + 1 for each in pushes])
