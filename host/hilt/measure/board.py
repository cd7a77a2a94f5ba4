"""One board over the link: tensors once, trials two deep, results safe before the board forgets them, faults mended."""

from __future__ import annotations

import getpass
import hashlib
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from hilt.link.agent import AgentConnection
from hilt.link.deadline import Deadline
from hilt.link.errors import LinkError, LinkLostError, RefusedError
from hilt.measure.boards import Target
from hilt.measure.trials import Blobs, Shipment, result_of, ship
from hilt.measure.types import BoardDescription, BoardEvent, BoardState, Listen, Report, Request
from hilt.trial import Outcome, Result
from hilt.virtual.errors import VirtualBoardError
from hilt_board.protocol import Measured, Record

PIPELINE_DEPTH = 2
"""Trials on their way at once: while one runs the next is on the board already."""
CONNECT_SECONDS = 120.0
"""For connecting, deploying and programming; the bitstream of a large part takes seconds, a slow boot more."""
SETTLE_SECONDS = 5.0
"""How long to try at first while a board is busy or does not answer."""
RECONNECT_SECONDS = 60.0
"""For one attempt of a recovery; importing pynq alone takes a small board half a minute."""
RECOVERY_SECONDS = 300.0
"""After this long without a connection the board is lost."""
POWER_CYCLE_SECONDS = 45.0
"""How long a board may try to come back by itself; a service that was killed starts again in seconds."""
SETBACKS_ALLOWED = 3
"""Losses in a row without a single result in between."""
_REPLY_MARGIN_SECONDS = 240.0
"""What the agent may take beside running: copying, replacing a worker, loading the bitstream again, its canary."""
_FAULTS = (LinkError, VirtualBoardError)
_REFUSALS_OF_PROGRAMS = ("program_invalid", "out_of_memory")
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 2.0


@dataclass(frozen=True)
class _InFlight:
    request: Request
    reply: Future[Record]
    sent: float
    seconds: dict[str, float]


class _Connected:
    """A programmed board on the line, with what is known of it as long as this connection lasts."""

    def __init__(self, agent: AgentConnection, bitstream: str, journal: list[Measured]) -> None:
        self.client = agent.client
        self.agent = agent
        self.bitstream = bitstream
        self.journal = {each.key: each for each in journal}
        """Results of trials that we may not know of yet."""
        self.present: set[str] = set()
        self.acknowledge_through = 0


class BoardMeasurer:
    """A Measurer on one board. `measure` from one thread at a time; `close` from any."""

    def __init__(self, target: Target, listen: Listen) -> None:
        self._target = target
        self._listen = listen
        self._blobs = Blobs()
        self._bitstream: bytes | None = None
        self._connection: _Connected | None = None
        self._closing = threading.Event()

    @classmethod
    def open(cls, target: Target, listen: Listen) -> BoardMeasurer:
        """Raises as hilt.measure.open_measurer."""
        measurer = cls(target, listen)
        try:
            measurer._connect_at_first()
        except BaseException as error:
            measurer._tell(BoardState.LOST, str(error))
            target.release()
            raise
        return measurer

    @property
    def description(self) -> BoardDescription:
        return self._target.description

    def measure(self, requests: Sequence[Request], report: Report) -> None:
        """See Measurer."""
        unanswered = {request.number: request for request in requests}
        setbacks = 0
        while unanswered:
            before = len(unanswered)
            try:
                self._run(unanswered, report)
            except _FAULTS as error:
                setbacks = 1 if len(unanswered) < before else setbacks + 1
                reason = error if setbacks > SETBACKS_ALLOWED else self._recover(error)
                if reason is not None:
                    self._give_up(unanswered, report, reason)

    def close(self) -> None:
        """See Measurer."""
        self._closing.set()
        self._disconnect()
        self._target.release()

    # --- running ---

    def _run(self, unanswered: dict[int, Request], report: Report) -> None:
        """Answers all that is unanswered. Raises one of _FAULTS where the board fails on the way."""
        connected = self._connection
        if connected is None:
            raise LinkLostError(f"{self.description.name} is not connected")
        self._tell(BoardState.RUNNING, f"{len(unanswered)} trials")
        self._answer_from_journal(connected, unanswered, report)
        waiting = deque(unanswered.values())
        in_flight: deque[_InFlight] = deque()
        while waiting or in_flight:
            while waiting and len(in_flight) < PIPELINE_DEPTH:
                request = waiting.popleft()
                sent = self._send(connected, request, unanswered, report)
                if sent is not None:
                    in_flight.append(sent)
            if in_flight:
                self._receive(connected, in_flight.popleft(), unanswered, report)
        if connected.acknowledge_through:
            connected.client.acknowledge(connected.acknowledge_through, Deadline(CONNECT_SECONDS))
        self._tell(BoardState.READY, "")

    def _answer_from_journal(self, connected: _Connected, unanswered: dict[int, Request], report: Report) -> None:
        """What the board finished while nobody was there to be told."""
        for request in list(unanswered.values()):
            measured = connected.journal.pop(request.key, None)
            if measured is not None:
                self._answer(request, result_of(measured, self.description.name, {}), unanswered, report)
                connected.acknowledge_through = max(connected.acknowledge_through, measured.sequence)

    def _send(
        self, connected: _Connected, request: Request, unanswered: dict[int, Request], report: Report
    ) -> _InFlight | None:
        """None where the request cannot be put into words of the protocol; it is answered then."""
        started = time.monotonic()
        try:
            shipment = ship(request, self._blobs.digests(request.tensors), connected.bitstream)
        except ValueError as error:
            self._answer(request, self._refused("program_invalid", str(error)), unanswered, report)
            return None
        self._put_missing(connected, shipment)
        reply = connected.client.measure(shipment.trial, shipment.code)
        now = time.monotonic()
        return _InFlight(request, reply, now, {"send": now - started})

    def _put_missing(self, connected: _Connected, shipment: Shipment) -> None:
        unknown = set(shipment.blobs) - connected.present
        if not unknown:
            return
        deadline = Deadline(CONNECT_SECONDS)
        for digest in sorted(connected.client.missing(sorted(unknown), deadline)):
            connected.client.put_as(digest, self._blobs.contents(digest), deadline)
        connected.present |= unknown

    def _receive(
        self, connected: _Connected, flying: _InFlight, unanswered: dict[int, Request], report: Report
    ) -> None:
        request = flying.request
        try:
            measured = connected.client.reply(flying.reply, Measured, Deadline(self._patience(connected, request)))
        except RefusedError as error:
            if error.code not in _REFUSALS_OF_PROGRAMS:
                raise
            result = self._refused(error.code, str(error))
        else:
            host = {**flying.seconds, "answer": time.monotonic() - flying.sent}
            result = result_of(measured, self.description.name, host)
            connected.acknowledge_through = max(connected.acknowledge_through, measured.sequence)
        self._answer(request, result, unanswered, report)

    def _answer(self, request: Request, result: Result, unanswered: dict[int, Request], report: Report) -> None:
        report(request.number, result)
        del unanswered[request.number]

    def _refused(self, code: str, message: str) -> Result:
        """A fact about the program: this board cannot run it."""
        return Result(Outcome.REJECTED, f"{code}: {message}", board=self.description.name)

    def _patience(self, connected: _Connected, request: Request) -> float:
        """Wall seconds for this trial and one before it; the agent's own limits are tighter and end both earlier."""
        runs = 1 + request.average * request.repeat
        running = runs * request.limit_seconds * connected.agent.welcome.time_scale
        return PIPELINE_DEPTH * (running + _REPLY_MARGIN_SECONDS)

    # --- connecting and recovering ---

    def _connect_at_first(self) -> None:
        """A client that has just died may still hold the lease for a moment, a service be starting again."""
        deadline = Deadline(SETTLE_SECONDS)
        while True:
            try:
                return self._connect(CONNECT_SECONDS)
            except LinkError as error:
                if error.permanent or deadline.passed:
                    raise
            self._closing.wait(_FIRST_PAUSE_SECONDS)

    def _connect(self, seconds: float) -> None:
        if self._bitstream is None:
            self._tell(BoardState.CONNECTING, "preparing its bitstream")
            self._bitstream = self._target.bitstream()  # a model may be built, which takes its own time
        self._tell(BoardState.CONNECTING, "")
        deadline = Deadline(seconds)
        agent = AgentConnection.open(self._target.endpoint(), _who(), deadline)
        try:
            connected = self._program(agent, self._bitstream, deadline)
        except BaseException:
            agent.close()
            raise
        self._connection = connected
        if self._closing.is_set():
            self._disconnect()

    def _program(self, agent: AgentConnection, bitstream: bytes, deadline: Deadline) -> _Connected:
        how = "sent to the board" if agent.uploaded else "was there"
        self._tell(BoardState.LOADED, f"agent {agent.welcome.agent[:12]} {how}, pynq {agent.welcome.pynq}")
        digest = hashlib.sha256(bitstream).hexdigest()
        if agent.client.missing([digest], deadline):
            agent.client.put_as(digest, bitstream, deadline)
        programmed = agent.client.program(digest, self._target.manifest, deadline)
        journal = agent.client.results(0, deadline)
        self._tell(BoardState.READY, f"{self._target.manifest.parameters} programmed in {programmed.seconds:.1f} s")
        return _Connected(agent, digest, journal)

    def _recover(self, error: Exception) -> Exception | None:
        """Connects and programs the board again, and returns None; or what still was in the way at the limit."""
        self._disconnect()
        deadline = Deadline(RECOVERY_SECONDS)
        by_itself = Deadline(POWER_CYCLE_SECONDS)
        power_cycled = False
        pause = _FIRST_PAUSE_SECONDS
        while not self._closing.is_set() and not deadline.passed and not getattr(error, "permanent", False):
            self._tell(BoardState.RECOVERING, str(error))
            try:
                if by_itself.passed and not power_cycled:
                    power_cycled = True
                    self._target.power_cycle()
                self._connect(RECONNECT_SECONDS)
                return None
            except _FAULTS as fault:
                error = fault
            self._closing.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        return error

    def _give_up(self, unanswered: dict[int, Request], report: Report, error: Exception) -> None:
        self._disconnect()
        reason = "measurer was closed" if self._closing.is_set() else str(error)
        self._tell(BoardState.LOST, reason)
        lost = Result(Outcome.BOARD_LOST, reason, board=self.description.name)
        for request in list(unanswered.values()):
            self._answer(request, lost, unanswered, report)

    def _disconnect(self) -> None:
        connected, self._connection = self._connection, None
        if connected is not None:
            connected.agent.close()

    def _tell(self, state: BoardState, detail: str) -> None:
        self._listen(BoardEvent(self.description.name, state, detail, time.time()))


def _who() -> str:
    """For whoever is told that the board is busy."""
    return f"hilt of {getpass.getuser()}@{socket.gethostname()}, process {os.getpid()}"[:200]
