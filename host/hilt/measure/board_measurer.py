"""One board over the link: tensors once, trials two deep, results safe before the board forgets them, faults mended."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from hilt.link.deadline import Deadline
from hilt.link.errors import (
    LinkLostError,
    OutOfMemoryError,
    ProtocolViolationError,
    QuarantinedError,
    RefusedError,
)
from hilt.link.quarantine import check_free
from hilt.measure.board_description import BoardTarget
from hilt.measure.connection import CONNECT_SECONDS, BoardConnection, Connected
from hilt.measure.interfaces import BoardDescription, BoardState, Listen, Report, Request
from hilt.measure.plausibility import ImpossibleLatencyError, impossibility
from hilt.measure.recovery import FAULTS, Recovery
from hilt.measure.request_queue import PoolClosedError, RequestBatch, Work
from hilt.measure.trial_encoding import EncodedTrial, WireBlobs, result_of, ship
from hilt.measure.usage import Usage
from hilt.trial import Outcome, Result
from hilt_board.protocol import Measured, MessageError, Record


class Suspects:
    """Trials that one board was lost with, which the board's thread adds: a poison trial may be among them.

    A lost board says nothing about its trials: cables, power and people take boards down too. So they go again, each
    alone. A trial that loses the board once more, alone, is answered, if the board comes back well.
    """

    def __init__(self) -> None:
        self.lost_at = 0.0
        """The time of the last loss of the board, by the monotonic clock."""
        self._trials: set[str] = set()
        self._accused: Request | None = None

    def has(self, request: Request) -> bool:
        """Return True if any attempt of the request's trial is a suspect."""
        return _trial(request) in self._trials

    def accuse(self, request: Request) -> None:
        """Record the request that the agent itself names as the one it failed with."""
        self._accused = request

    def after_loss(self, taken: Sequence[Request]) -> Request | None:
        """Return the trial that the loss came from, if that is known; `taken` have no answer."""
        self.lost_at = time.monotonic()
        accused, self._accused = self._accused, None
        if accused is not None:
            self._trials.add(_trial(accused))
            return accused
        if len(taken) == 1 and self.has(taken[0]):
            return taken[0]
        self._trials.update(_trial(request) for request in taken)
        return None


def _trial(request: Request) -> str:
    """Return "RUN/NUMBER" of "RUN/NUMBER/ATTEMPT": the part that stays the same when the trial is tried again."""
    return request.key.rpartition("/")[0]


_LOG = logging.getLogger("hilt.measure")
PIPELINE_DEPTH = 2
"""Trials on their way at once: while one runs the next is on the board already."""
SETBACKS_ALLOWED = 3
"""Losses in a row without a single result in between."""
_REPLY_MARGIN_SECONDS = 240.0
"""The agent's time beside running: copying, replacing a worker, loading the bitstream again, its canary."""
_FAILURES_WITH_PROGRAMS = ("worker_failed", "internal")
"""Refusals of which it is known which trial they came with."""
_REFUSALS_OF_PROGRAMS = ("program_invalid",)
_FAULTS_OF_NO_TRIAL = (OutOfMemoryError, ImpossibleLatencyError, ProtocolViolationError)
"""Faults of the board that no program can cause: no trial is blamed for them."""


@dataclass(frozen=True)
class _InFlight:
    request: Request
    reply: Future[Record]
    sent: float
    seconds: dict[str, float]


class BoardMeasurer:
    """A Measurer on one board. `measure` (or `serve`) from one thread at a time; `close` from any."""

    def __init__(self, target: BoardTarget, listen: Listen) -> None:
        self.description: BoardDescription = target.description
        self.connection = BoardConnection(target, listen)
        self.recovery = Recovery(self.connection)
        self.usage = Usage(target.description.name)
        self._blobs = WireBlobs()
        self._suspects = Suspects()

    @classmethod
    def open(cls, target: BoardTarget, listen: Listen) -> BoardMeasurer:
        """Open the board. Raises the errors of hilt.measure.open_measurer."""
        check_free(target.description.name)
        measurer = cls(target, listen)
        try:
            measurer.recovery.connect_at_first()
        except BaseException as error:
            measurer.connection.tell(BoardState.LOST, str(error))
            target.release()
            raise
        return measurer

    def measure(self, requests: Sequence[Request], report: Report) -> None:
        """See Measurer."""
        batch = RequestBatch(requests, report)
        reason = self.serve(batch)
        if reason is not None:
            for request in batch.rest():
                report(request.ordinal, Result(Outcome.BOARD_LOST, reason, board=self.description.name))

    def serve(self, work: Work) -> str | None:
        """Answer requests until `work` has none, and recover from faults of the board.

        Return None, or the reason why the board is given up; its unanswered requests are then back in `work`. Only
        errors of `work.answer` pass through.
        """
        setbacks = 0
        try:
            check_free(self.description.name)
        except QuarantinedError as error:
            return str(error)
        while True:
            before = self.usage.trials
            taken: dict[int, Request] = {}
            try:
                self._run(work, taken)
                return None
            except PoolClosedError:  # nobody waits for the trials on the board now; its journal keeps them
                continue
            except FAULTS as error:
                _LOG.warning("%s: lost with trials %s: %s", self.description.name, sorted(taken), error)
                setbacks = 1 if self.usage.trials > before else setbacks + 1
                blameless = isinstance(error, _FAULTS_OF_NO_TRIAL)
                suspect = None if blameless else self._suspects.after_loss(list(taken.values()))
                # Another board may have the others at once; mending this one takes its time.
                work.put_back([request for request in taken.values() if request is not suspect], str(error))
                # The agent has tried a new worker before it says that memory is short: no step frees more of it.
                hopeless = setbacks > SETBACKS_ALLOWED or isinstance(error, OutOfMemoryError)
                reason = error if hopeless else self.recovery.recover_from(error)
                if suspect is not None and self._convict(suspect, error, reason, work):
                    setbacks = 0
            if reason is not None:
                return self._give_up(reason)

    def close(self) -> None:
        """See Measurer."""
        if not self.connection.closing.is_set():
            self.connection.close()
            self.connection.tell(BoardState.RELEASED, str(self.usage))

    def _convict(self, suspect: Request, error: Exception, reason: Exception | None, work: Work) -> bool:
        """Return True if the trial that the board was lost with is answered as a crash.

        It is answered if the board is well again, its canary included, and the agent that had taken the trial is
        gone. Otherwise it is tried again, for nothing is known of it.
        """
        connected = self.connection.connected
        if reason is not None or connected is None or connected.agent_began < self._suspects.lost_at:
            work.put_back([suspect], str(error))
            return False
        text = f"it took the board's agent or the board itself down, alone on a board that was well: {error}"
        with contextlib.suppress(PoolClosedError):
            work.answer(suspect, Result(Outcome.CRASH, text, board=self.description.name))
            self.usage.trials += 1
        return True

    def _run(self, work: Work, taken: dict[int, Request]) -> None:
        """Answer all requests; `taken` holds the unanswered ones.

        Raises one of FAULTS if the board fails on the way.
        """
        connected = self.connection.connected
        if connected is None:
            raise LinkLostError(f"{self.description.name} is not connected")
        in_flight: deque[_InFlight] = deque()
        running = False
        try:
            while True:
                self._fill(connected, in_flight, work, taken)
                if not in_flight:
                    break
                if not running:
                    self.connection.tell(BoardState.RUNNING, "")
                    running = True
                self._receive(connected, in_flight.popleft(), work, taken)
        finally:
            self.usage.idle()
        if running:
            self.connection.tell(BoardState.READY, "")

    def _fill(self, connected: Connected, in_flight: deque[_InFlight], work: Work, taken: dict[int, Request]) -> None:
        """Send requests ahead: while one trial runs the next is on the board already."""
        while len(in_flight) < PIPELINE_DEPTH:
            if not in_flight:
                self.usage.idle()
                self._acknowledge(connected)
            if in_flight and self._suspects.has(in_flight[-1].request):
                return  # it goes alone
            request = work.take(self.description.name, idle=not in_flight)
            if request is None:
                return
            taken[request.ordinal] = request
            self.usage.busy()
            known = connected.journal.pop(request.key, None)
            if known is not None:  # the board finished it while nobody was there to be told
                self._check_latency(connected, request, known)
                self._answer(request, result_of(known, self.description.name, {}), work, taken)
                connected.is_safe(known)
                continue
            sent = self._send(connected, request, work, taken)
            if sent is not None:
                in_flight.append(sent)

    def _acknowledge(self, connected: Connected) -> None:
        """Acknowledge results before more are waited for; the journal of a finished board would grow otherwise."""
        for run, through in connected.acknowledge_through.items():
            connected.client.acknowledge(through, Deadline(CONNECT_SECONDS), run)
        connected.acknowledge_through.clear()

    def _send(self, connected: Connected, request: Request, work: Work, taken: dict[int, Request]) -> _InFlight | None:
        """Send the request to the agent.

        Return None if the protocol cannot carry the request; it is answered then.
        """
        started = time.monotonic()
        try:
            shipment = ship(request, self._blobs.digests(request.tensors), connected.bitstream)
        except (ValueError, MessageError) as error:
            self._answer(request, self._refused("program_invalid", str(error)), work, taken)
            return None
        self._put_missing(connected, shipment)
        reply = connected.client.measure(shipment.trial, shipment.code)
        now = time.monotonic()
        return _InFlight(request, reply, now, {"send": now - started})

    def _put_missing(self, connected: Connected, shipment: EncodedTrial) -> None:
        unknown = set(shipment.blobs) - connected.present
        if not unknown:
            return
        deadline = Deadline(CONNECT_SECONDS)
        for digest in sorted(connected.client.missing_blobs(sorted(unknown), deadline)):
            connected.client.upload_blob(digest, self._blobs.contents(digest), deadline)
        connected.present |= unknown

    def _receive(self, connected: Connected, flying: _InFlight, work: Work, taken: dict[int, Request]) -> None:
        request = flying.request
        try:
            measured = connected.client.reply(flying.reply, Measured, Deadline(self._patience(connected, request)))
        except RefusedError as error:
            if error.code in _FAILURES_WITH_PROGRAMS:
                self._suspects.accuse(request)
            if error.code not in _REFUSALS_OF_PROGRAMS:
                raise
            self._answer(request, self._refused(error.code, str(error)), work, taken)
            return
        if measured.key != request.key:
            raise ProtocolViolationError(
                f"agent on {self.description.name} answered trial {request.key} with the result of {measured.key}"
            )
        self._check_latency(connected, request, measured)
        if measured.canary is not None:
            self._log_resets(request, measured)
        host = {**flying.seconds, "answer": time.monotonic() - flying.sent}
        self._answer(request, result_of(measured, self.description.name, host), work, taken)
        connected.is_safe(measured)

    def _check_latency(self, connected: Connected, request: Request, measured: Measured) -> None:
        """Raise ImpossibleLatencyError for a latency that cannot be.

        The board forgets it and measures again, under a new agent that has loaded the bitstream anew.
        """
        why = impossibility(measured, request, self.description.accelerator, connected.agent.welcome.time_scale)
        if why:
            _LOG.warning("%s: latency of trial %d is suspect: %s", self.description.name, request.ordinal, why)
            connected.is_safe(measured)
            self._acknowledge(connected)
            raise ImpossibleLatencyError(f"latency of trial {request.ordinal} is impossible: {why}")

    def _log_resets(self, request: Request, measured: Measured) -> None:
        """Log the steps by which the agent made the board sane again, with their cost."""
        costs = {name: cost for name, cost in measured.seconds.items() if name.startswith("reset_")}
        steps = ", ".join(f"{name} {cost:.2f} s" for name, cost in costs.items()) or "no recovery step"
        well = "well" if measured.canary else "failed"
        name = self.description.name
        _LOG.warning("%s: %s after trial %d: %s; canary %s", name, measured.outcome, request.ordinal, steps, well)

    def _answer(self, request: Request, result: Result, work: Work, taken: dict[int, Request]) -> None:
        work.answer(request, result)
        del taken[request.ordinal]
        self.usage.trials += 1

    def _refused(self, code: str, message: str) -> Result:
        """Return the result of a program that this board cannot run: a fact about the program."""
        return Result(Outcome.REJECTED, f"{code}: {message}", board=self.description.name)

    def _patience(self, connected: Connected, request: Request) -> float:
        """Return wall seconds for this trial and one before it.

        The agent's own limits are tighter and end both earlier.
        """
        runs = 1 + request.number * request.repeat
        running = runs * request.limit_seconds * connected.agent.welcome.time_scale
        return PIPELINE_DEPTH * (running + _REPLY_MARGIN_SECONDS)

    def _give_up(self, error: Exception) -> str:
        self.connection.disconnect()
        if self.connection.closing.is_set():
            self.connection.target.release()  # a connection that was being made may have switched it on again
            return "measurer was closed"
        kept_apart = isinstance(error, QuarantinedError)
        self.connection.tell(BoardState.QUARANTINED if kept_apart else BoardState.LOST, str(error))
        return str(error)
