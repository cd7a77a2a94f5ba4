"""A fleet of boards that are threads: distribution of trials, lost trials on other boards, and no double reports."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from hilt.link.errors import UnreachableError
from hilt.measure import BoardDescription, FleetError, Request, describe_board
from hilt.measure.fleet import FleetMeasurer, describe_fleet
from hilt.measure.request_queue import Pool, PoolClosedError, Work
from hilt.trial import Outcome, Result


@dataclass
class Fake:
    """A board with scripted answers: `plan(request)` gives a result, or None if the board is lost with it."""

    name: str
    plan: object
    served: list[int] = field(default_factory=list)
    gave_up: str = "it broke"
    pause: object = None

    @property
    def description(self) -> BoardDescription:
        return replace(describe_board("virtual:pynq"), name=self.name)

    def serve(self, work: Work) -> str | None:
        while (request := work.take(self.name, idle=True)) is not None:
            if callable(self.pause):
                self.pause(request)
            result = self.plan(request)  # type: ignore[operator]
            if result is None:
                work.put_back([request], self.gave_up)
                return self.gave_up
            self.served.append(request.ordinal)
            try:
                work.answer(request, result)
            except PoolClosedError:
                continue
        return None

    def close(self) -> None:
        pass


def requests(count: int) -> list[Request]:
    return [Request(n, f"run/{n}/0", None, None, 0.1) for n in range(count)]  # type: ignore[arg-type]


def ok(request: Request) -> Result:
    return Result(Outcome.OK, cycles=request.ordinal)


def fleet(*boards: Fake) -> FleetMeasurer:
    return FleetMeasurer(boards[0].description, boards)  # type: ignore[arg-type]


def measure(measurer: FleetMeasurer, wanted: Sequence[Request]) -> dict[int, Result]:
    results: dict[int, Result] = {}
    thread = threading.current_thread()

    def report(ordinal: int, result: Result) -> None:
        assert threading.current_thread() is thread
        assert ordinal not in results, f"trial {ordinal} was reported twice"
        results[ordinal] = result

    measurer.measure(wanted, report)
    assert sorted(results) == [request.ordinal for request in wanted]
    return results


def test_a_slow_board_gets_less() -> None:
    """The slow board answers its one request only when the fast one has answered all others, which it begins with
    when the slow one has taken that."""
    taken, others_done = threading.Event(), threading.Event()
    slow = Fake("slow", ok, pause=lambda request: taken.set() or others_done.wait(30))
    fast = Fake("fast", ok, pause=lambda request: taken.wait(30))
    measurer = fleet(slow, fast)
    results: dict[int, Result] = {}

    def report(ordinal: int, result: Result) -> None:
        results[ordinal] = result
        if len(results) == 19:
            others_done.set()

    measurer.measure(requests(20), report)
    measurer.close()
    assert len(slow.served) == 1 and len(fast.served) == 19 and sorted(results) == list(range(20))


def test_a_request_that_one_board_loses_is_answered_by_another() -> None:
    lost = threading.Event()

    def breaks_at_its_fourth(request: Request) -> Result | None:
        if len(fragile.served) < 3:
            return ok(request)
        lost.set()
        return None

    fragile = Fake("fragile", breaks_at_its_fourth)
    steady = Fake("steady", ok, pause=lambda request: lost.wait(30))
    measurer = fleet(fragile, steady)
    results = measure(measurer, requests(30))
    assert {result.outcome for result in results.values()} == {Outcome.OK}
    assert sorted(fragile.served + steady.served) == list(range(30)) and len(fragile.served) == 3
    assert measure(measurer, requests(5))[4].cycles == 4
    measurer.close()


def test_without_any_board_the_rest_is_lost_at_once() -> None:
    measurer = fleet(Fake("one", lambda request: None), Fake("two", lambda request: None))
    results = measure(measurer, requests(6))
    assert {result.outcome for result in results.values()} == {Outcome.BOARD_LOST}
    assert results[5].reason == "it broke"
    assert measure(measurer, requests(2))[1].outcome is Outcome.BOARD_LOST
    measurer.close()


def test_a_report_that_fails_leaves_the_fleet_usable_and_no_answer_for_the_wrong_request() -> None:
    held, arrived = threading.Event(), threading.Event()

    def pause(request: Request) -> None:
        if request.ordinal == 1 and request.key == "run/1/0":
            arrived.set()
            held.wait(30)

    measurer = fleet(Fake("a", lambda request: Result(Outcome.OK, reason=request.key), pause=pause),
                     Fake("b", lambda request: Result(Outcome.OK, reason=request.key), pause=pause))  # fmt: skip

    def fail(ordinal: int, result: Result) -> None:
        arrived.wait(30)
        raise ValueError("the disk is full")

    with pytest.raises(ValueError, match="the disk is full"):
        measurer.measure(requests(4), fail)
    # Number 1 of the batch before is still on a board; this is another request of that number.
    again = [replace(request, key=f"run/{request.ordinal}/1") for request in requests(4)]
    held.set()
    assert {ordinal: result.reason for ordinal, result in measure(measurer, again).items()} == {
        ordinal: f"run/{ordinal}/1" for ordinal in range(4)
    }
    measurer.close()


def test_closing_in_the_middle_reports_the_rest_lost() -> None:
    measurer = fleet(Fake("a", ok), Fake("b", ok))
    seen: list[Outcome] = []

    def report(ordinal: int, result: Result) -> None:
        seen.append(result.outcome)
        if len(seen) == 3:
            threading.Thread(target=measurer.close).start()
            with measurer._pool._changed:
                assert measurer._pool._changed.wait_for(lambda: measurer._pool._closed, 30)

    measurer.measure(requests(200), report)
    assert len(seen) == 200 and seen[:3] == [Outcome.OK] * 3 and seen[-1] is Outcome.BOARD_LOST


def test_a_request_for_one_board_is_answered_by_no_other() -> None:
    measurer = fleet(*(Fake(name, lambda request, name=name: replace(ok(request), board=name)) for name in "ab"))
    wanted = [replace(request, board="ab"[request.ordinal % 3 == 0]) for request in requests(30)]
    results = measure(measurer, wanted)
    gone = measure(measurer, [replace(requests(1)[0], board="c")])
    measurer.close()
    assert {ordinal: result.board for ordinal, result in results.items()} == {
        each.ordinal: each.board for each in wanted
    }
    assert gone[0].outcome is Outcome.BOARD_LOST


def test_an_error_of_a_boards_thread_reaches_who_waits() -> None:
    def broken(request: Request) -> Result:
        raise KeyError("a bug")

    measurer = fleet(Fake("a", broken))
    with pytest.raises(KeyError):
        measurer.measure(requests(2), lambda ordinal, result: None)
    measurer.close()


def test_a_request_that_loses_every_board_is_given_back() -> None:
    pool = Pool(losses_allowed=2)
    pool.join("a")
    wanted = requests(1)
    losses: list[int] = []

    def board() -> None:
        while (request := pool.take("a", idle=True)) is not None:
            losses.append(request.ordinal)
            pool.put_back([request], "frozen")

    thread = threading.Thread(target=board)
    thread.start()
    results: dict[int, Result] = {}
    pool.run(wanted, results.__setitem__)
    pool.close()
    thread.join()
    assert len(losses) == 3 and results[0] == Result(Outcome.BOARD_LOST, "frozen")


def test_opening_goes_on_with_the_boards_that_are_there() -> None:
    class BoardTarget:
        def __init__(self, name: str) -> None:
            self.description = replace(describe_board("virtual:pynq"), name=name)

    def open_one(target: BoardTarget, listen: object) -> Fake:
        if target.description.name == "away":
            raise UnreachableError("away is not reachable")
        return Fake(target.description.name, ok)

    targets = [BoardTarget("away"), BoardTarget("here")]
    measurer = FleetMeasurer.open(targets, lambda event: None, open_one)  # type: ignore[arg-type]
    assert measurer.description.name == "away,here"
    assert len(measure(measurer, requests(3))) == 3
    measurer.close()
    with pytest.raises(UnreachableError):
        FleetMeasurer.open(targets[:1], lambda event: None, open_one)  # type: ignore[arg-type]


def test_boards_that_are_not_alike_are_refused_with_both_values() -> None:
    pynq = describe_board("virtual:pynq")
    assert describe_board("virtual:pynq@a, virtual:pynq@b").name == "virtual:pynq@a,virtual:pynq@b"
    with pytest.raises(FleetError, match=r"clock of virtual:pynq is 100 MHz, of faster 142 MHz"):
        describe_fleet([pynq, replace(pynq, name="faster", clock_hz=142_000_000)])
    with pytest.raises(FleetError, match="parameters of virtual:pynq@a is 1x16_.* of virtual:pynq_batched 4x8_"):
        describe_board("virtual:pynq@a,virtual:pynq_batched")
    with pytest.raises(FleetError, match="bitstream and memory"):
        describe_fleet([pynq, replace(pynq, name="other", bitstream="0" * 64)])
    with pytest.raises(FleetError, match="virtual:pynq is named twice"):
        describe_board("virtual:pynq,virtual:pynq")
