"""The board as the daemon sees it: which faults are the trial's, which steps mend a board, and when it is given up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from hilt_board import board as module
from hilt_board.board import Board
from hilt_board.protocol import (
    AgentFailure,
    BitstreamLoaded,
    LoadBitstream,
    Measure,
    Measured,
    NetworkRan,
    Ready,
    Record,
    Reset,
    ResetDone,
    RunNetwork,
    StopNetwork,
)
from hilt_board.worker_process import WorkerDiedError, WorkerError, WorkerSilentError

from .examples import CODE, DIGEST, MANIFEST, TRIAL

LOAD = LoadBitstream(DIGEST, MANIFEST, TRIAL, CODE)
LOADED = BitstreamLoaded(DIGEST, MANIFEST.clock_hz, 1.0)
MEASURE = Measure(TRIAL, CODE)
OK = Measured(TRIAL.key, "ok")
OF_ANOTHER = Measured("run/99/0", "ok")
TIMEOUT = Measured(TRIAL.key, "timeout", "no FINISH", seconds={"run": 0.5})
RUN = RunNetwork(DIGEST, "model.hilt", 2.0)
BROKEN = AgentFailure("board_broken", "registers are dead")
NO_MEMORY = AgentFailure("out_of_memory", "8 bytes are not free")
SILENCE = 3.0


def well(step: str) -> ResetDone:
    return ResetDone(step, True, 0.1)


def ill(step: str) -> ResetDone:
    return ResetDone(step, False, 0.1)


def died(taken: bool = True) -> WorkerDiedError:
    error = WorkerDiedError("worker was ended by signal 9 (SIGKILL)")
    error.taken = taken
    return error


class Worker:
    """A worker that gives these answers in turn, and notes each request and its time limit."""

    def __init__(self, *answers: Record | Exception, pynq: str = "3.0.1") -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.seconds: list[tuple[float, float]] = []
        self.told: list[Record] = []
        self.alive, self.working, self.pid = True, False, 4711
        self.ready = Ready("Pynq-Z2", "3.8.2", pynq, "1.21", 4.0)
        self.hangs: asyncio.Event | None = None

    async def request(self, message: Record, seconds: float, silence: float) -> Record:
        self.asked.append(message.step if isinstance(message, Reset) else type(message).__name__)
        self.seconds.append((seconds, silence))
        if self.hangs is not None:
            await self.hangs.wait()
        answer = self.answers.pop(0)
        if isinstance(answer, WorkerError):
            self.alive = False
        if isinstance(answer, Exception):
            raise answer
        return answer

    def tell(self, message: Record) -> None:
        self.told.append(message)

    def end(self) -> None:
        self.told.append(StopNetwork())
        if self.hangs is not None:
            self.hangs.set()

    async def kill(self) -> None:
        self.alive = False


class Bench:
    """A board whose workers are these, one after another."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *workers: Worker | Exception) -> None:
        self.left = list(workers)
        self.boots = 0
        monkeypatch.setattr(module.WorkerProcess, "start", self._start)
        monkeypatch.setattr(module, "wait_for_boot", self._boot)
        monkeypatch.setattr(module, "remove_firmware", lambda: None)

    async def _start(self) -> Worker:
        worker = self.left.pop(0)
        if isinstance(worker, Exception):
            raise worker
        return worker

    async def _boot(self) -> None:
        self.boots += 1

    def run(self, act: Callable[[Board], Awaitable[Any]], load: bool = True) -> Any:
        async def run() -> Any:
            board = Board(SILENCE)
            if load:
                assert await board.load(LOAD) == LOADED
            return await act(board)

        return asyncio.run(run())


Make = Callable[..., Bench]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Make:
    return lambda *workers: Bench(monkeypatch, *workers)


def test_a_board_is_loaded_once_for_the_same_bitstream(bench: Make) -> None:
    worker = Worker(LOADED, LOADED)

    async def act(board: Board) -> list[Any]:
        again = await board.load(LOAD)
        other = await board.load(replace(LOAD, canary=None, code=b""))
        return [again, other, board.state, board.program, board.worker_pid]

    made = bench(worker)
    again, other, state, program, pid = made.run(act)
    assert again == BitstreamLoaded(DIGEST, MANIFEST.clock_hz, 0.0) and other == LOADED
    assert worker.asked == ["LoadBitstream"] * 2 and worker.seconds == [(60.0, 60.0)] * 2
    assert (state, program.canary, pid, made.boots) == ("ready", None, 4711, 1)


def test_a_bitstream_that_is_refused_leaves_the_board_unprogrammed(bench: Make) -> None:
    refused = AgentFailure("bitstream_refused", "for part 7z010")

    async def act(board: Board) -> list[Any]:
        answers = [await board.load(LOAD), await board.measure(MEASURE), await board.reset(Reset("soft"))]
        return [*answers, await board.run_network(RUN, asyncio.Event()), board.state]

    loading, measuring, resetting, running, state = bench(Worker(refused)).run(act, load=False)
    assert loading == refused and state == "unprogrammed"
    assert {measuring.code, resetting.code, running.code} == {"not_programmed"}
    assert "loaded is nothing: program it first" in measuring.message


def test_a_trial_of_another_bitstream_is_not_run(bench: Make) -> None:
    trial = replace(TRIAL, bitstream="e" * 64)
    failure = bench(Worker(LOADED)).run(lambda board: board.measure(Measure(trial, CODE)))
    assert failure.code == "not_programmed" and f"{'e' * 12}, loaded is {DIGEST[:12]}" in failure.message


def test_a_trial_has_the_time_of_all_its_runs(bench: Make) -> None:
    worker = Worker(LOADED, OK)
    assert bench(worker).run(lambda board: board.measure(MEASURE)) == OK
    runs = 2 + TRIAL.number * TRIAL.repeat
    assert worker.seconds[1] == (runs * TRIAL.limit_seconds * 4.0 + 30.0, SILENCE)


@pytest.mark.parametrize(
    ("answers", "steps", "canary", "state"),
    [
        ([well("soft")], ["soft"], True, "ready"),
        ([ill("soft"), well("reload")], ["soft", "reload"], True, "ready"),
        ([BROKEN, WorkerSilentError("late")], ["soft", "reload"], True, "ready"),
    ],
)
def test_a_trial_that_does_not_end_is_followed_by_the_first_step_that_helps(
    bench: Make, answers: list[Any], steps: list[str], canary: bool, state: str
) -> None:
    first, second = Worker(LOADED, TIMEOUT, *answers), Worker(LOADED)

    async def act(board: Board) -> list[Any]:
        return [await board.measure(MEASURE), board.state, board.worker_restarts, board.trials]

    measured, found, restarts, trials = bench(first, second).run(act)
    assert first.asked == ["LoadBitstream", "Measure", *steps] and trials == 1
    assert (measured.outcome, measured.canary, found) == ("timeout", canary, state)
    replaced = isinstance(answers[-1], Exception)
    assert measured.worker_restarts == restarts == int(replaced) and second.asked == ["LoadBitstream"] * replaced
    assert set(measured.seconds) == {
        "run",
        *(f"reset_{step}" for step in steps),
        *(["reset_worker"] if replaced else []),
    }
    assert first.seconds[2] == (30.0, 30.0)


def test_a_board_that_no_step_helps_is_broken_until_it_is_loaded_or_reset(bench: Make) -> None:
    workers = [Worker(LOADED, TIMEOUT, ill("soft"), ill("reload")), Worker(BROKEN, LOADED, ill("soft"), well("soft"))]

    async def act(board: Board) -> list[Any]:
        measured = await board.measure(MEASURE)
        said = [board.state, (await board.measure(MEASURE)).code, (await board.run_network(RUN, asyncio.Event())).code]
        said += [await board.load(LOAD), board.state]
        for _ in range(2):
            done = await board.reset(Reset("soft"))
            assert done.step == "soft" and 0 <= done.seconds < 60
            said += [done.canary, board.state]
        return [measured.canary, *said]

    assert bench(*workers).run(act) == [
        *(False, "broken", "board_broken", "board_broken", LOADED, "ready", False, "broken", True, "ready")
    ]


def test_a_worker_that_dies_of_a_trial_is_its_crash(bench: Make) -> None:
    first, second = Worker(LOADED, died()), Worker(LOADED)
    measured = bench(first, second).run(lambda board: board.measure(MEASURE))
    assert (measured.outcome, measured.canary, measured.worker_restarts) == ("crash", True, 1)
    assert measured.reason == "worker was ended by signal 9 (SIGKILL)" and set(measured.seconds) == {"reset_worker"}


def test_a_worker_that_is_late_is_a_timeout(bench: Make) -> None:
    late = WorkerSilentError("no answer in time from the worker; it was killed")
    late.taken = True
    assert bench(Worker(LOADED, late), Worker(LOADED)).run(lambda board: board.measure(MEASURE)).outcome == "timeout"


def test_a_worker_that_died_before_it_began_is_no_fault_of_the_trial(bench: Make) -> None:
    measured = bench(Worker(LOADED, died(taken=False)), Worker(LOADED, OK)).run(lambda board: board.measure(MEASURE))
    assert measured == OK, "another worker has run it"
    twice = [Worker(LOADED, died(taken=False)), Worker(LOADED, died(taken=False)), Worker(LOADED)]
    assert bench(*twice).run(lambda board: board.measure(MEASURE)).outcome == "crash"


def test_a_fault_that_is_older_than_the_trial_is_repaired_first(bench: Make) -> None:
    worker = Worker(LOADED, BROKEN, well("soft"), OK)
    assert bench(worker).run(lambda board: board.measure(MEASURE)) == OK
    assert worker.asked[1:] == ["Measure", "soft", "Measure"]
    first, second = Worker(LOADED, NO_MEMORY), Worker(LOADED, NO_MEMORY)
    assert bench(first, second).run(lambda board: board.measure(MEASURE)) == NO_MEMORY, "a new worker says the same"
    assert not first.alive and second.alive
    hopeless = [Worker(LOADED, BROKEN, ill("soft"), ill("reload")), Worker(BROKEN)]
    failure = bench(*hopeless).run(lambda board: board.measure(MEASURE))
    assert failure.code == "board_broken" and "soft reset, reload and a new worker" in failure.message


def test_a_result_of_another_trial_is_not_taken(bench: Make) -> None:
    first, second = Worker(LOADED, OF_ANOTHER), Worker(LOADED, OK)
    assert bench(first, second).run(lambda board: board.measure(MEASURE)) == OK and not first.alive
    failure = bench(Worker(LOADED, OF_ANOTHER), Worker(LOADED, OF_ANOTHER)).run(lambda board: board.measure(MEASURE))
    assert failure.code == "board_broken" and "results of other trials" in failure.message


def test_memory_that_the_canary_lacks_is_had_by_a_new_worker(bench: Make) -> None:
    first, second = Worker(NO_MEMORY), Worker(LOADED)
    assert bench(first, second).run(lambda board: board.load(LOAD), load=False) == LOADED and not first.alive


@pytest.mark.parametrize(("pynq", "ends"), [("2.7.0", True), ("3.0.1", False)])
def test_a_pynq_that_frees_no_buffer_ends_with_its_bitstream(bench: Make, pynq: str, ends: bool) -> None:
    other = replace(LOAD, bitstream="e" * 64)
    first, second = Worker(LOADED, LOADED, pynq=pynq), Worker(LOADED, pynq=pynq)
    assert bench(first, second).run(lambda board: board.load(other)) == LOADED
    assert first.alive is not ends and len(second.asked) == int(ends)
    same = Worker(LOADED, LOADED, pynq=pynq)
    bench(same).run(lambda board: board.load(replace(LOAD, canary=None, code=b"")))
    assert same.alive


def test_a_worker_is_started_twice_before_it_is_given_up(bench: Make) -> None:
    assert bench(WorkerDiedError("no device"), Worker(LOADED)).run(lambda board: board.load(LOAD), load=False) == LOADED
    failure = bench(*[WorkerDiedError("no device")] * 2).run(lambda board: board.load(LOAD), load=False)
    assert (failure.code, failure.message) == ("worker_failed", "worker gave up while loading: no device")
    failure = bench(OSError("no process")).run(lambda board: board.load(LOAD), load=False)
    assert failure.message == "worker gave up while loading: no process"


def test_its_state_names_what_it_does(bench: Make) -> None:
    worker = Worker(LOADED, TIMEOUT, well("soft"))

    async def act(board: Board) -> list[str]:
        states = [board.state]
        worker.hangs = asyncio.Event()
        measuring = asyncio.ensure_future(board.measure(MEASURE))
        for _ in range(9):
            await asyncio.sleep(0)
        worker.working = True
        states.append(board.state)
        worker.working = False
        worker.hangs.set()
        while board.state == "ready" and not measuring.done():
            await asyncio.sleep(0)
        await measuring
        await board.close()
        return [*states, board.state, str(board.worker_pid)]

    assert bench(worker).run(act) == ["ready", "busy", "ready", "None"]


def test_a_network_that_does_not_end_is_followed_by_a_recovery(bench: Make) -> None:
    ran = NetworkRan("timeout", "no FINISH")
    worker = Worker(LOADED, NetworkRan("ok"), ran, well("soft"), NO_MEMORY)

    async def act(board: Board) -> list[Any]:
        return [await board.run_network(RUN, asyncio.Event()) for _ in range(3)]

    assert bench(worker).run(act) == [NetworkRan("ok"), replace(ran, canary=True), NO_MEMORY]
    assert worker.seconds[1] == (2.0 * 4.0 + 1800.0, SILENCE)


@pytest.mark.parametrize(("error", "outcome"), [(died(), "crash"), (WorkerSilentError("late"), "timeout")])
def test_a_worker_that_ends_in_a_network_is_replaced(bench: Make, error: WorkerError, outcome: str) -> None:
    second = Worker(LOADED)
    ran = bench(Worker(LOADED, error), second).run(lambda board: board.run_network(RUN, asyncio.Event()))
    assert (ran.outcome, ran.canary, ran.reason) == (outcome, True, str(error)) and second.asked == ["LoadBitstream"]


@pytest.mark.parametrize("ends", [True, False])
def test_a_client_that_goes_ends_its_network(bench: Make, monkeypatch: pytest.MonkeyPatch, ends: bool) -> None:
    monkeypatch.setattr(module, "_STOP_SECONDS", 60.0 if ends else 0.01)
    stopped = AgentFailure("network_refused", "the client is gone")
    worker = Worker(LOADED, stopped if ends else died(), pynq="3.0.1")

    async def act(board: Board) -> Any:
        gone, worker.hangs = asyncio.Event(), asyncio.Event()
        running = asyncio.ensure_future(board.run_network(RUN, gone))
        await asyncio.sleep(0)
        gone.set()
        while not worker.told:
            await asyncio.sleep(0)
        if ends:
            worker.hangs.set()
        return await asyncio.wait_for(running, 60)

    answer = bench(worker, Worker(LOADED)).run(act)
    assert worker.told == [StopNetwork()] * (1 if ends else 2)
    assert answer == stopped if ends else answer.outcome == "crash"


def test_it_is_ready_once_a_worker_has_the_device(bench: Make) -> None:
    assert bench(Worker()).run(lambda board: board.ready(), load=False) == Worker().ready
