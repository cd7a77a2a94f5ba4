"""Requests that were on a board at its loss come again, before the others and in their order."""

from __future__ import annotations

import threading

import pytest

from hilt.measure import Request
from hilt.measure.request_queue import Pool, PoolClosedError, RequestBatch
from hilt.trial import Outcome, Result


def requests(count: int) -> list[Request]:
    return [Request(ordinal, f"run/{ordinal}/0", None, None, 0.1) for ordinal in range(count)]  # type: ignore[arg-type]


def taken(work: RequestBatch | Pool, count: int) -> list[int]:
    found = [work.take("a", idle=True) for _ in range(count)]
    return [request.ordinal for request in found if request is not None]


def test_a_batch_gives_back_in_order_and_before_the_rest() -> None:
    asked = requests(5)
    batch = RequestBatch(asked, lambda ordinal, result: None)
    assert taken(batch, 3) == [0, 1, 2]
    batch.put_back(asked[1:3], "lost")
    assert taken(batch, 2) == [1, 2]
    assert [request.ordinal for request in batch.rest()] == [3, 4]
    assert batch.rest() == [] and batch.take("a", idle=True) is None


class Running:
    """A pool whose `run` goes on in a thread of its own."""

    def __init__(self, count: int, losses_allowed: int = 2, boards: tuple[str, ...] = ("a",)) -> None:
        self.asked = requests(count)
        self.pool = Pool(losses_allowed)
        for board in boards:
            self.pool.join(board)
        self.results: dict[int, Result] = {}
        self._thread = threading.Thread(target=self.pool.run, args=(self.asked, self.results.__setitem__))
        self._thread.start()

    def end(self) -> dict[int, Result]:
        self._thread.join(20)
        assert not self._thread.is_alive()
        return self.results


def test_a_pool_gives_back_in_order_and_before_the_rest() -> None:
    running = Running(5)
    pool = running.pool
    assert taken(pool, 3) == [0, 1, 2]
    pool.put_back(running.asked[0:3], "lost")
    assert taken(pool, 5) == [0, 1, 2, 3, 4]
    for request in running.asked:
        pool.answer(request, Result(Outcome.OK))
    assert list(running.end()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("losses_allowed", [0, 1, 3])
def test_a_request_is_lost_as_often_as_is_allowed(losses_allowed: int) -> None:
    running = Running(1, losses_allowed)
    for _ in range(losses_allowed + 1):
        assert taken(running.pool, 1) == [0]
        running.pool.put_back(running.asked, "lost")
    assert running.end() == {0: Result(Outcome.BOARD_LOST, "lost")}


def test_a_busy_board_takes_ahead_only_requests_that_no_other_needs() -> None:
    running = Running(3, boards=("a", "b"))
    pool = running.pool
    assert taken(pool, 1) == [0]
    ahead = pool.take("a", idle=False)
    assert ahead is not None and ahead.ordinal == 1  # two wait, and there are two boards
    assert pool.take("a", idle=False) is None  # one waits: it is for the other board
    last = pool.take("b", idle=True)
    assert last is not None and last.ordinal == 2
    for request in running.asked:
        pool.answer(request, Result(Outcome.OK))
    assert sorted(running.end()) == [0, 1, 2]


def test_an_answer_for_a_closed_pool_is_not_safe() -> None:
    running = Running(2)
    assert taken(running.pool, 1) == [0]
    running.pool.close()
    with pytest.raises(PoolClosedError):
        running.pool.answer(running.asked[0], Result(Outcome.OK))
    running.pool.put_back(running.asked[:1], "lost")
    assert {result.outcome for result in running.end().values()} == {Outcome.BOARD_LOST}


def test_the_last_board_that_leaves_says_why() -> None:
    running = Running(2, boards=("a", "b"))
    running.pool.leave("a", "unplugged")
    running.pool.leave("b", "frozen")
    assert running.end() == {ordinal: Result(Outcome.BOARD_LOST, "frozen") for ordinal in range(2)}
