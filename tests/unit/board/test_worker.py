"""The blame for a bitstream that could not be loaded: the ladder is climbed for the board's faults alone."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hilt_board.bitfile import WrongPartError
from hilt_board.protocol import Reset


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.setitem(sys.modules, "pynq", ModuleType("pynq"))
    yield importlib.import_module("hilt_board.worker")
    for name in ("worker", "execution", "memory", "driver"):
        del sys.modules[f"hilt_board.{name}"]


def test_a_bitstream_that_cannot_be_loaded_again_is_the_boards_fault(worker: ModuleType) -> None:
    """A bitstream that cannot be loaded again is the board's fault.

    It is loaded again after a wrong answer, to clear the tokens; the trial is not accused.
    """
    assert worker._failure(worker.NotLoadedError("Connection timed out")).code == "board_broken"


def test_every_error_of_the_driver_has_its_word_in_the_protocol(worker: ModuleType) -> None:
    kinds = worker.DriverError.__subclasses__()
    assert len(kinds) >= 8
    for kind in kinds:
        assert worker._failure(kind("why")).message == "why", kind


def of_the_kernel(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (WrongPartError("vta.bit is for part 7z010, this board has 7z020"), "bitstream_refused"),
        (ValueError("Unknown field"), "bitstream_refused"),
        (OSError("Root permissions required."), "bitstream_refused"),
        (of_the_kernel(errno.EACCES), "bitstream_refused"),
        (of_the_kernel(errno.ENOENT), "bitstream_refused"),
        (of_the_kernel(errno.ENOSPC), "disk_full"),
        (of_the_kernel(errno.ETIMEDOUT), "board_broken"),
        (of_the_kernel(errno.EIO), "board_broken"),
        (RuntimeError("Programming Device failed: EBUSY (16) Device or resource busy"), "board_broken"),
    ],
)
def test_only_faults_that_a_reset_may_mend_are_the_boards(worker: ModuleType, error: Exception, code: str) -> None:
    failure = worker._not_loaded(error)
    assert failure.code == code
    assert str(error) in failure.message


def test_a_full_card_is_said_where_the_bitstream_gets_its_name_too(worker: ModuleType) -> None:
    def full(sha256: str) -> None:
        raise of_the_kernel(errno.ENOSPC)

    memory, driver = SimpleNamespace(give_back=lambda: None), SimpleNamespace(program=None)
    loading = SimpleNamespace(_memory=memory, _program=None, _loaded=None, _driver=driver, _bitstream_path=full)
    loading._networks = SimpleNamespace(forget=lambda: None)
    assert worker.Worker._load(loading, SimpleNamespace(bitstream="b" * 64, manifest=None)).code == "disk_full"


class Bench:
    """A worker without a board: its driver and memory note their requests."""

    def __init__(self, worker: ModuleType, monkeypatch: pytest.MonkeyPatch, **answers: Any) -> None:
        self.did: list[str] = []
        self._answers = answers
        note = self._note
        self.worker = SimpleNamespace(
            _networks=SimpleNamespace(forget=note("forget")),
            _memory=SimpleNamespace(clear=note("clear")),
            _driver=SimpleNamespace(soft_reset=note("soft"), reload=note("reload")),
            _program=SimpleNamespace(canary=answers.get("canary", "canary"), code=b"code"),
        )
        self.worker._canary = lambda: worker.Worker._canary(self.worker)
        monkeypatch.setattr(worker, "finish_only", note("finish"))
        monkeypatch.setattr(worker, "run_trial", note("trial"))

    def _note(self, name: str) -> Callable[..., Any]:
        def asked(*arguments: object) -> Any:
            self.did.append(name)
            answer = self._answers.get(name, SimpleNamespace(outcome="ok", reason=""))
            if isinstance(answer, Exception):
                raise answer
            return answer

        return asked


@pytest.mark.parametrize(("step", "acts"), [("soft", ["soft"]), ("reload", ["clear", "reload"])])
def test_a_reset_ends_with_the_canary(
    worker: ModuleType, monkeypatch: pytest.MonkeyPatch, step: str, acts: list[str]
) -> None:
    bench = Bench(worker, monkeypatch)
    done = worker.Worker._reset(bench.worker, Reset(step))
    assert bench.did == ["forget", *acts, "finish", "trial"]
    assert (done.step, done.canary) == (step, True) and 0 <= done.seconds < 60


@pytest.mark.parametrize(
    ("answers", "reason", "last"),
    [
        ({}, "", "trial"),
        ({"canary": None}, "", "finish"),
        ({"finish": SimpleNamespace(outcome="timeout", reason="no FINISH")}, "no FINISH", "finish"),
        ({"trial": SimpleNamespace(outcome="wrong_answer", reason="2 differ")}, "wrong_answer: 2 differ", "trial"),
    ],
    ids=["well", "none", "no-finish", "wrong"],
)
def test_the_canary_names_its_fault(
    worker: ModuleType, monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any], reason: str, last: str
) -> None:
    bench = Bench(worker, monkeypatch, **answers)
    assert bench.worker._canary() == reason
    assert bench.did[-1] == last
    assert worker.Worker._reset(bench.worker, Reset("soft")).canary is (reason == "")


@pytest.mark.parametrize("at", ["soft", "finish", "trial"])
def test_a_driver_that_fails_is_no_well_board(worker: ModuleType, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    bench = Bench(worker, monkeypatch, **{at: worker.NotLoadedError("gone")})
    assert not worker.Worker._reset(bench.worker, Reset("soft")).canary
    assert bench.did[-1] == at


def test_memory_that_a_canary_lacks_is_no_fault_of_the_board(
    worker: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(worker, monkeypatch, trial=worker.OutOfContiguousMemoryError("none left"))
    with pytest.raises(worker.OutOfContiguousMemoryError):
        bench.worker._canary()
