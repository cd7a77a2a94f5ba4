"""Requests that were on a board at its loss come again, before the others and in their order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

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


def test_a_batch_reports_each_answer() -> None:
    reported: dict[int, Result] = {}
    batch = RequestBatch(requests(1), reported.__setitem__)
    batch.answer(requests(1)[0], Result(Outcome.CRASH, "stopped"))
    assert reported == {0: Result(Outcome.CRASH, "stopped")}


def in_thread(act: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


def test_an_idle_board_waits_for_the_next_batch_and_for_the_close() -> None:
    pool = Pool(2)
    pool.join("a")
    found: list[Request | None] = []

    def board() -> None:
        request = pool.take("a", idle=True)
        assert request is not None
        pool.answer(request, Result(Outcome.OK))
        found.extend([request, pool.take("a", idle=True)])

    waiting = in_thread(board)
    waiting.join(0.05)  # it waits: nothing was asked for yet
    assert waiting.is_alive()
    (asked,) = requests(1)
    pool.run([asked], lambda ordinal, result: None)
    waiting.join(0.05)
    assert waiting.is_alive()
    pool.close()
    waiting.join(20)
    assert found == [asked, None]


def test_a_report_that_fails_ends_the_batch_and_no_answer_is_safe() -> None:
    """An engine whose database is full: the board must keep its result, and the next batch begins anew."""
    pool, asked = Pool(2), requests(3)
    pool.join("a")
    refused: list[int] = []

    def board() -> None:
        for _ in range(2):
            request = pool.take("a", idle=True)
            assert request is not None
            try:
                pool.answer(request, Result(Outcome.OK))
            except PoolClosedError:
                refused.append(request.ordinal)

    def full(ordinal: int, result: Result) -> None:
        raise OSError(28, "No space left on device")

    answering = in_thread(board)
    with pytest.raises(OSError, match="No space left"):
        pool.run(asked[:1], full)
    with pytest.raises(OSError, match="No space left"):
        pool.run(asked[1:], full)
    answering.join(20)
    assert refused == [0, 1]
    pool.put_back(asked[1:], "lost")  # of batches that were given up
    pool.leave("a", "unplugged")
    results: dict[int, Result] = {}
    pool.run(requests(1), results.__setitem__)
    assert results == {0: Result(Outcome.BOARD_LOST, "unplugged")}


def test_losses_of_one_batch_do_not_count_in_the_next() -> None:
    pool = Pool(1)
    pool.join("a")
    for _ in range(2):
        asked, results = requests(1), dict[int, Result]()
        running = in_thread(lambda asked=asked, results=results: pool.run(asked, results.__setitem__))  # type: ignore[misc]
        assert taken(pool, 1) == [0]
        pool.put_back(asked, "lost")
        assert taken(pool, 1) == [0]
        pool.answer(asked[0], Result(Outcome.OK))
        running.join(20)
        assert results == {0: Result(Outcome.OK)}


def test_a_request_put_back_by_the_last_board_is_lost_with_it() -> None:
    running = Running(1)
    assert taken(running.pool, 1) == [0]
    running.pool.leave("a", "frozen")
    running.pool.put_back(running.asked, "silent")
    assert running.end() == {0: Result(Outcome.BOARD_LOST, "frozen")}


def test_a_request_for_a_board_goes_to_no_other() -> None:
    pool, asked = Pool(2), [replace(requests(2)[0], board="b"), requests(2)[1]]
    for board in ("a", "b"):
        pool.join(board)
    results: dict[int, Result] = {}
    running = in_thread(lambda: pool.run(asked, results.__setitem__))
    assert pool.take("a", idle=True) is asked[1]
    assert pool.take("b", idle=True) is asked[0]
    pool.put_back(asked[:1], "lost")
    pool.leave("b", "unplugged")
    pool.answer(asked[1], Result(Outcome.OK))
    running.join(20)
    assert results == {0: Result(Outcome.BOARD_LOST, "unplugged"), 1: Result(Outcome.OK)}


def test_a_report_that_fails_lets_every_board_go_that_waits_for_its_report() -> None:
    pool, asked, refused = Pool(2), requests(2), list[int]()
    for board in ("a", "b"):
        pool.join(board)

    def answer(board: str) -> None:
        request = pool.take(board, idle=True)
        assert request is not None
        try:
            pool.answer(request, Result(Outcome.OK))
        except PoolClosedError:
            refused.append(request.ordinal)

    def full(ordinal: int, result: Result) -> None:
        with pool._changed:
            assert pool._changed.wait_for(lambda: len(pool._answers) == 1, 20)
        raise OSError(28, "No space left on device")

    answering = [in_thread(lambda board=board: answer(board)) for board in ("a", "b")]  # type: ignore[misc]
    with pytest.raises(OSError, match="No space left"):
        pool.run(asked, full)
    for thread in answering:
        thread.join(20)
    assert sorted(refused) == [0, 1]


def test_a_request_whose_board_has_left_is_answered_once() -> None:
    pool, asked = Pool(2), [replace(requests(2)[0], board="b"), requests(2)[1]]
    for board in ("a", "b"):
        pool.join(board)
    reported: list[tuple[int, Outcome]] = []
    running = in_thread(lambda: pool.run(asked, lambda ordinal, result: reported.append((ordinal, result.outcome))))
    assert pool.take("a", idle=True) is asked[1]
    pool.leave("b", "unplugged")
    pool.put_back(asked[1:], "lost")  # looks at the deserted requests again
    assert pool.take("a", idle=True) is asked[1]
    pool.answer(asked[1], Result(Outcome.OK))
    running.join(20)
    assert reported == [(0, Outcome.BOARD_LOST), (1, Outcome.OK)]
