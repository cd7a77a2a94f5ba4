"""A board that answers nothing holds nobody up: closing ends every wait for it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from hilt.link.abandon import unless_closed
from hilt.link.board_registry import Endpoint
from hilt.link.errors import LinkLostError
from hilt.measure import BoardEvent, BoardState, describe_board
from hilt.measure.board_measurer import BoardMeasurer
from hilt.measure.ladder import SECONDS, RecoveryStep
from hilt.trial import Outcome, Result
from tests.e2e.small_programs import dot_product

BOARD = describe_board("virtual:pynq")
HEARD_SECONDS = 10.0
"""The longest of a close on a machine that is busy with others: the shortest of the waits that it ends has 20."""


@pytest.fixture
def stalled() -> Iterator[Endpoint]:
    """An SSH server that takes every connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield Endpoint("stalled", "127.0.0.1", listening.getsockname()[1], sudo=False)


class Stalled:
    """A target whose network, and power switch, never answer."""

    description = BOARD
    manifest = None
    virtual = False

    def __init__(self, endpoint: Endpoint, reached: threading.Event) -> None:
        self._endpoint = endpoint
        self._reached = reached
        self.switched = threading.Event()
        self.released = False

    def prepare(self, report: object) -> None:
        pass

    def bitstream(self) -> bytes:
        return b"bitstream"

    def endpoint(self) -> Endpoint:
        self._reached.set()
        return self._endpoint

    def power(self) -> SimpleNamespace:
        def cycle() -> None:
            self.switched.set()
            threading.Event().wait(60)

        return SimpleNamespace(cycle=cycle)

    def release(self) -> None:
        self.released = True


def closed_while(measurer: BoardMeasurer, reached: threading.Event) -> tuple[dict[int, Result], float]:
    """Measure two programs, close once `reached` is set; returns the results and the seconds from then to the end."""
    results: dict[int, Result] = {}
    asked = [dot_product(BOARD.accelerator, ordinal) for ordinal in range(2)]
    thread = threading.Thread(target=measurer.measure, args=(asked, results.__setitem__))
    thread.start()
    assert reached.wait(20)
    began = time.monotonic()
    measurer.close()
    thread.join(20)
    return results, time.monotonic() - began


def test_a_recovery_ends_when_the_board_is_closed(
    stalled: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    reached, events = threading.Event(), list[BoardEvent]()
    target = Stalled(stalled, reached)
    measurer = BoardMeasurer(target, events.append)  # type: ignore[arg-type]
    results, seconds = closed_while(measurer, reached)
    assert seconds < HEARD_SECONDS
    assert {result.outcome for result in results.values()} == {Outcome.BOARD_LOST} and len(results) == 2
    assert events[-1].state is BoardState.RELEASED and target.released


@pytest.mark.parametrize("step", [RecoveryStep.DAEMON, RecoveryStep.REBOOT, RecoveryStep.POWER])
def test_each_step_ends_when_the_board_is_closed(
    stalled: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: RecoveryStep
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    endpoint = stalled if step is not RecoveryStep.REBOOT else Endpoint("far", "localhost.", stalled.port, sudo=False)
    reached = threading.Event()
    target = Stalled(endpoint, reached)
    measurer = BoardMeasurer(target, lambda event: None)  # type: ignore[arg-type]
    act, wanted = measurer.recovery._act, target.switched if step is RecoveryStep.POWER else threading.Event()

    def only_that_step(climbed: RecoveryStep) -> None:
        if climbed is not step:
            raise LinkLostError("passed over")
        wanted.set()
        act(climbed)

    monkeypatch.setitem(SECONDS, RecoveryStep.RECONNECT, 0.0)
    monkeypatch.setattr(measurer.recovery, "_act", only_that_step)
    _, seconds = closed_while(measurer, wanted)
    assert seconds < HEARD_SECONDS


def test_results_after_an_abandoned_wait_are_given_back() -> None:
    closing, go_on, discarded = threading.Event(), threading.Event(), threading.Event()

    def slow() -> str:
        closing.set()
        go_on.wait(20)
        return "agent"

    def discard(value: str) -> None:
        assert value == "agent"
        discarded.set()

    with pytest.raises(LinkLostError, match="was closed"):
        unless_closed(closing, slow, discard)
    go_on.set()
    assert discarded.wait(20)


@pytest.mark.parametrize("work", [lambda: 7, lambda: int("x")])
def test_a_wait_that_ends_by_itself_gives_its_value_or_its_error(work: Callable[[], int]) -> None:
    kept: list[int] = []
    try:
        assert unless_closed(threading.Event(), work, kept.append) == 7
    except ValueError as error:
        assert "invalid literal" in str(error)
    assert kept == []
