"""The board as the daemon sees it: a worker that is replaced when it dies, a ladder of resets, a canary after each."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import Any, Dict, List, Optional, Tuple

from .boot import wait_for_boot
from .leftovers import frees_buffers, remove_firmware
from .protocol import (
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
    TrialRequest,
)
from .worker_process import WorkerDiedError, WorkerError, WorkerProcess

_LOG = logging.getLogger("hilt.board")
_MARGIN_SECONDS = 30.0
"""Wall seconds of a request besides the device's own time: copying, loading a bitstream."""
_VERIFICATIONS = 2
"""Runs of a trial besides those that are timed: a wrong output is run again once, on clean inputs."""
_STARTS = 2
_MENDED_BY_RESETS = ("board_broken", "out_of_memory")
"""Refusals of a worker that say nothing of the trial before a new worker has said the same."""
_STOP_SECONDS = 5.0
"""Seconds that the image of a client that is gone may still take."""
_PROCESSOR_SECONDS = 1800.0
"""Longest wall seconds of the processor's share of a network."""


class BoardBrokenError(Exception):
    """Not even a new worker passes the canary."""


class Board:
    """One device: unprogrammed, ready, busy, recovering or broken. One request at a time (the daemon sees to it)."""

    def __init__(self, silence_seconds: float) -> None:
        """`silence_seconds`: a worker that gives no sign of life for so long is killed."""
        self._silence = silence_seconds
        self._worker: Optional[WorkerProcess] = None
        self._programmed: Optional[WorkerProcess] = None
        """The worker that has loaded `_program`. A new worker, as a hello may start, has loaded nothing."""
        self._loaded: Optional[Tuple[WorkerProcess, str]] = None
        """The worker that was told last to load a bitstream, and which one."""
        self._starting = asyncio.Lock()
        self._program: Optional[LoadBitstream] = None
        self._broken = ""
        self._recovering = False
        self._booted = False
        self.worker_restarts = 0
        self.trials = 0

    @property
    def state(self) -> str:
        """The state, as in StatusReport."""
        if self._recovering:
            return "recovering"
        if self._worker is not None and self._worker.working:
            return "busy"
        if self._broken:
            return "broken"
        return "ready" if self._program else "unprogrammed"

    @property
    def program(self) -> Optional[LoadBitstream]:
        """The bitstream that is loaded, if any."""
        return self._program

    @property
    def worker_pid(self) -> Optional[int]:
        return self._worker.pid if self._worker is not None and self._worker.alive else None

    async def ready(self) -> Ready:
        """Return the worker's description of the device; start the worker if necessary. Raises WorkerError, OSError."""
        worker = await self._alive_worker()
        assert worker.ready is not None
        return worker.ready

    async def close(self) -> None:
        if self._worker is not None:
            await self._worker.kill()
        remove_firmware()

    async def load(self, message: LoadBitstream) -> Record:
        """Program the device. Returns BitstreamLoaded or AgentFailure."""
        loaded = self._program
        if not self._broken and loaded == message and self._is_programmed():
            return BitstreamLoaded(bitstream=message.bitstream, clock_hz=message.manifest.clock_hz, seconds=0.0)
        self._program = None
        try:
            await self._end_worker_that_holds_memory(message.bitstream)
            reply = await self._load(message)
            if isinstance(reply, AgentFailure) and reply.code == "out_of_memory":
                _LOG.warning("no memory for the canary: %s; a new worker loads the bitstream", reply.message)
                await self._end_worker()
                reply = await self._load(message)
        except (WorkerError, OSError) as error:
            return AgentFailure(code="worker_failed", message="worker gave up while loading: {}".format(error)[:4096])
        if isinstance(reply, BitstreamLoaded):
            self._program, self._broken = message, ""
        return reply

    async def measure(self, message: Measure) -> Record:
        """Run a trial. Returns Measured, or Failure if it could not be run."""
        program = self._program
        if self._broken:
            return AgentFailure(code="board_broken", message=self._broken[:4096])
        if program is None or program.bitstream != message.trial.bitstream:
            return AgentFailure(code="not_programmed", message=_not_programmed(program, message))
        try:
            return await self._measure(message)
        except BoardBrokenError as error:
            return AgentFailure(code="board_broken", message=str(error)[:4096])

    async def run_network(self, message: RunNetwork, gone: asyncio.Event) -> Record:
        """Run a network, until `gone` is set: nobody waits for the answer then.

        Returns NetworkRan, or Failure if it could not be run.
        """
        program = self._program
        if self._broken:
            return AgentFailure(code="board_broken", message=self._broken[:4096])
        if program is None:
            return AgentFailure(code="not_programmed", message="no bitstream is loaded: program it first")
        if not self._is_programmed() and not await self._recover():
            return AgentFailure(code="board_broken", message=self._broken[:4096])
        worker = await self._alive_worker()
        assert worker.ready is not None
        seconds = message.limit_seconds * worker.ready.time_scale + _PROCESSOR_SECONDS
        try:
            answer = asyncio.ensure_future(worker.request(message, seconds, self._silence))
            await self._stop_when_gone(answer, worker, gone)
            reply = await answer
        except WorkerError as error:
            outcome = "crash" if isinstance(error, WorkerDiedError) else "timeout"
            reply = NetworkRan(outcome=outcome, reason=str(error)[:4096])
        if not isinstance(reply, NetworkRan) or reply.outcome == "ok":
            return reply
        _LOG.warning("network %s: %s: %s", message.name, reply.outcome, reply.reason)
        return replace(reply, canary=await self._recover())

    async def _stop_when_gone(
        self, answer: "asyncio.Future[Record]", worker: WorkerProcess, gone: asyncio.Event
    ) -> None:
        """Wait for an answer, or for the client's end and then a while for that of the image."""
        left = asyncio.ensure_future(gone.wait())
        both: List["asyncio.Future[Any]"] = [answer, left]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        left.cancel()
        if answer.done():
            return
        _LOG.info("the client is gone: its network ends with this image")
        worker.tell(StopNetwork())
        await asyncio.wait([answer], timeout=_STOP_SECONDS)
        if not answer.done():
            _LOG.warning("the image takes longer than %g s: the worker is ended", _STOP_SECONDS)
            worker.end()

    async def reset(self, message: Reset) -> Record:
        """Take the requested recovery step. Returns ResetDone or AgentFailure."""
        if self._program is None:
            return AgentFailure(code="not_programmed", message="no bitstream is loaded: nothing to reset")
        started = time.monotonic()
        sane = await self._take_step(message.step)
        self._broken = "" if sane else "canary failed after reset ({})".format(message.step)
        return ResetDone(step=message.step, canary=sane, seconds=time.monotonic() - started)

    async def _measure(self, message: Measure) -> Record:
        trial = message.trial
        restarts = self.worker_restarts
        self.trials += 1
        try:
            reply = await self._on_worker(message)
        except WorkerError as error:
            outcome = "crash" if isinstance(error, WorkerDiedError) else "timeout"
            reply = Measured(key=trial.key, outcome=outcome, reason=str(error)[:4096])
        if not isinstance(reply, Measured) or reply.outcome in ("ok", "wrong_answer"):
            return reply
        _LOG.warning("trial %s: %s: %s", trial.key, reply.outcome, reply.reason)
        costs: Dict[str, float] = {}
        sane = await self._recover(costs)
        seconds = {**reply.seconds, **costs}
        return replace(reply, canary=sane, worker_restarts=self.worker_restarts - restarts, seconds=seconds)

    async def _on_worker(self, message: Measure) -> Record:
        """Return the worker's answer.

        A fault that is present before the trial begins is repaired first: the trial did not cause it. Raises
        WorkerError, BoardBrokenError.
        """
        trial = message.trial
        for first in (True, False):
            worker = await self._worker_of_sane_board()
            try:
                reply = await self._ask(worker, message)
            except WorkerError as error:
                if error.taken or not first:
                    raise
                _LOG.warning("%s, before it began with trial %s", error, trial.key)
                continue
            if not first and _is_of_another(reply, trial):
                raise BoardBrokenError("a new worker too answers with the results of other trials")
            if not first or not await self._repaired(reply, trial):
                return reply
        raise AssertionError("unreachable")

    async def _worker_of_sane_board(self) -> WorkerProcess:
        if not self._is_programmed() and not await self._recover():
            raise BoardBrokenError(self._broken)
        return await self._alive_worker()

    async def _ask(self, worker: WorkerProcess, message: Measure) -> Record:
        """Return a worker's answer; a worker that answers for another trial is ended."""
        trial = message.trial
        assert worker.ready is not None
        device_seconds = (_VERIFICATIONS + trial.number * trial.repeat) * trial.limit_seconds
        reply = await worker.request(message, device_seconds * worker.ready.time_scale + _MARGIN_SECONDS, self._silence)
        if _is_of_another(reply, trial):
            await worker.kill()
        return reply

    async def _repaired(self, reply: Record, trial: TrialRequest) -> bool:
        """Repair the fault that an answer shows to be older than its trial. Returns whether there was one."""
        if _is_of_another(reply, trial):
            _LOG.error("trial %s was answered with the result of %s", trial.key, getattr(reply, "key", ""))
            return True
        if not isinstance(reply, AgentFailure) or reply.code not in _MENDED_BY_RESETS:
            return False
        _LOG.warning("before trial %s: %s", trial.key, reply.message)
        if reply.code == "out_of_memory":
            await self._end_worker()  # with it go all buffers that it held, by whatever leak
        elif not await self._recover():
            raise BoardBrokenError(self._broken)
        return True

    async def _recover(self, costs: Optional[Dict[str, float]] = None) -> bool:
        """Take recovery steps until the canary is well, from the first one that makes sense.

        If none helps, the board is broken. `costs` is filled with the seconds of each step, by "reset_" and its name.
        """
        self._recovering = True
        try:
            for step in ("soft", "reload", "worker") if self._is_programmed() else ("worker",):
                started = time.monotonic()
                sane = await self._take_step(step)
                cost = time.monotonic() - started
                if costs is not None:
                    costs["reset_" + step] = cost
                _LOG.info("reset (%s) took %.3f s, canary %s", step, cost, "well" if sane else "failed")
                if sane:
                    return True
        finally:
            self._recovering = False
        self._broken = "canary failed after soft reset, reload and a new worker"
        _LOG.error("board is broken: %s", self._broken)
        return False

    async def _take_step(self, step: str) -> bool:
        """Take one recovery step and run the canary. Returns whether the board is sane."""
        try:
            if step == "worker":
                return await self._replace_worker()
            worker = self._worker
            if worker is None or not worker.alive:
                return False
            reply = await worker.request(Reset(step=step), _MARGIN_SECONDS, _MARGIN_SECONDS)
        except (WorkerError, OSError) as error:
            _LOG.warning("step %s: %s", step, error)
            return False
        return isinstance(reply, ResetDone) and reply.canary

    async def _replace_worker(self) -> bool:
        program = self._program
        assert program is not None
        await self._end_worker()
        self.worker_restarts += 1
        reply = await self._load(program)
        if isinstance(reply, AgentFailure):
            _LOG.warning("new worker: %s: %s", reply.code, reply.message)
        return isinstance(reply, BitstreamLoaded)

    async def _end_worker(self) -> None:
        if self._worker is not None:
            await self._worker.kill()
            self._worker = None

    async def _end_worker_that_holds_memory(self, bitstream: str) -> None:
        """End a worker whose pynq frees no buffer before it loads another bitstream: their memory would be lost."""
        worker, loaded = self._worker, self._loaded
        if worker is None or worker.ready is None or loaded is None or loaded == (worker, bitstream):
            return
        if loaded[0] is worker and not frees_buffers(worker.ready.pynq):
            _LOG.info("a new worker loads the other bitstream: pynq %s frees no buffer", worker.ready.pynq)
            await self._end_worker()

    async def _load(self, message: LoadBitstream) -> Record:
        if not self._booted:
            await wait_for_boot()
            self._booted = True
        worker = await self._alive_worker()
        self._loaded = (worker, message.bitstream)
        reply = await worker.request(message, 2 * _MARGIN_SECONDS, 2 * _MARGIN_SECONDS)
        self._programmed = worker if isinstance(reply, BitstreamLoaded) else None
        return reply

    def _is_programmed(self) -> bool:
        return self._programmed is not None and self._programmed is self._worker and self._programmed.alive

    async def _alive_worker(self) -> WorkerProcess:
        async with self._starting:
            if self._worker is None or not self._worker.alive:
                self._worker = await self._start_worker()
            return self._worker

    async def _start_worker(self) -> WorkerProcess:
        for attempt in range(1, _STARTS + 1):
            try:
                worker = await WorkerProcess.start()
                _LOG.info("worker %d has the device", worker.pid)
                return worker
            except WorkerError as error:
                _LOG.warning("worker did not start (%d of %d): %s", attempt, _STARTS, error)
                if attempt == _STARTS:
                    raise
        raise AssertionError("unreachable")


def _is_of_another(reply: Record, trial: TrialRequest) -> bool:
    return isinstance(reply, Measured) and reply.key != trial.key


def _not_programmed(program: Optional[LoadBitstream], message: Measure) -> str:
    loaded = "nothing" if program is None else program.bitstream[:12]
    return "trial is for bitstream {}, loaded is {}: program it first".format(message.trial.bitstream[:12], loaded)
