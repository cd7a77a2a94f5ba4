"""One board over the link: tensors once, trials two deep, results safe before the board forgets them, faults mended."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from hilt.link.agent import AgentConnection
from hilt.link.client import AgentClient
from hilt.link.deadline import Deadline
from hilt.link.errors import AgentError, LinkError, LinkLostError, QuarantinedError, RefusedError
from hilt.link.quarantine import check_free, quarantine
from hilt.measure.boards import Target
from hilt.measure.canary import make_canary
from hilt.measure.ladder import SECONDS, Climbed, Rung, RungSkippedError, reboot, restart_daemon
from hilt.measure.suspects import Suspects
from hilt.measure.trials import Blobs, Shipment, result_of, ship
from hilt.measure.types import BoardDescription, BoardEvent, BoardState, Listen, Report, Request
from hilt.measure.usage import Usage
from hilt.measure.work import Batch, PoolClosedError, Work
from hilt.trial import Outcome, Result
from hilt.virtual.errors import VirtualBoardError
from hilt_board.protocol import Measured, Programmed, Record

_LOG = logging.getLogger("hilt.measure")
PIPELINE_DEPTH = 2
"""Trials on their way at once: while one runs the next is on the board already."""
CONNECT_SECONDS = 120.0
"""For connecting, deploying and programming; the bitstream of a large part takes seconds, a slow boot more."""
SETTLE_SECONDS = 5.0
"""How long to try at first while a board is busy or does not answer."""
RECONNECT_SECONDS = 60.0
"""For one attempt of a recovery."""
SETBACKS_ALLOWED = 3
"""Losses in a row without a single result in between."""
_REPLY_MARGIN_SECONDS = 240.0
"""What the agent may take beside running: copying, replacing a worker, loading the bitstream again, its canary."""
_FAULTS = (LinkError, VirtualBoardError)
_FAULTS_OF_THE_AGENT = ("board_broken", "worker_failed", "internal")
"""Refusals after which connecting again is not enough."""
_FAILURES_WITH_PROGRAMS = ("worker_failed", "internal")
"""Of these it is known which trial they came with."""
_REFUSALS_OF_PROGRAMS = ("program_invalid", "out_of_memory")
_SHORTEST_SECONDS = 1.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 2.0


@dataclass(frozen=True)
class _InFlight:
    request: Request
    reply: Future[Record]
    sent: float
    seconds: dict[str, float]


class _Connected:
    """A programmed board on the line, with what is known of it as long as this connection lasts."""

    def __init__(
        self, agent: AgentConnection, bitstream: str, journal: list[Measured], agent_began: float
    ) -> None:
        self.client = agent.client
        self.agent_began = agent_began
        """When its daemon was started, by this process' monotonic clock."""
        self.agent = agent
        self.bitstream = bitstream
        self.journal = {each.key: each for each in journal}
        """Results of trials that we may not know of yet."""
        self.present: set[str] = set()
        self.acknowledge_through: dict[str, int] = {}
        """By run: up to which sequence number its results are safe."""

    def is_safe(self, measured: Measured) -> None:
        run = measured.key.partition("/")[0]
        self.acknowledge_through[run] = max(self.acknowledge_through.get(run, 0), measured.sequence)


class BoardMeasurer:
    """A Measurer on one board. `measure` (or `serve`) from one thread at a time; `close` from any."""

    def __init__(self, target: Target, listen: Listen) -> None:
        self._target = target
        self._listen = listen
        self._blobs = Blobs()
        self._bitstream: bytes | None = None
        self._connection: _Connected | None = None
        self._boot_id: str | None = None
        self._closing = threading.Event()
        self.usage = Usage(target.description.name)
        self._suspects = Suspects()
        self.climbed: list[Climbed] = []
        """Every rung of the recovery ladder that was climbed, in order."""

    @classmethod
    def open(cls, target: Target, listen: Listen) -> BoardMeasurer:
        """Raises as hilt.measure.open_measurer."""
        check_free(target.description.name)
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
        batch = Batch(requests, report)
        reason = self.serve(batch)
        if reason is not None:
            for request in batch.rest():
                report(request.number, Result(Outcome.BOARD_LOST, reason, board=self.description.name))

    def serve(self, work: Work) -> str | None:
        """Answers requests until `work` has none; recovers from faults of the board. None, or why it is given up: what
        it had taken is back in `work` then. Only what `work.answer` raises passes through."""
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
            except PoolClosedError:  # what is on the board is for nobody now; its journal keeps it
                continue
            except _FAULTS as error:
                setbacks = 1 if self.usage.trials > before else setbacks + 1
                suspect = self._suspects.after_loss(list(taken.values()))
                # Another board may have the others at once; mending this one takes its time.
                work.put_back([each for each in taken.values() if each is not suspect], str(error))
                reason = error if setbacks > SETBACKS_ALLOWED else self._recover(error, _first_rung(error))
                if suspect is not None and self._convict(suspect, error, reason, work):
                    setbacks = 0
            if reason is not None:
                return self._give_up(reason)

    def close(self) -> None:
        """See Measurer."""
        if not self._closing.is_set():
            self._closing.set()
            self._disconnect()
            self._target.release()
            self._tell(BoardState.RELEASED, str(self.usage))

    def _convict(self, suspect: Request, error: Exception, reason: Exception | None, work: Work) -> bool:
        """Whether a trial that the board was lost with is answered: it is where the board is well again, its canary
        included, and the agent that had taken the trial is gone. Else it is tried again, for nothing is known of it."""
        connected = self._connection
        if reason is not None or connected is None or connected.agent_began < self._suspects.lost_at:
            work.put_back([suspect], str(error))
            return False
        text = f"it took the board's agent or the board itself down, alone on a board that was well: {error}"
        with contextlib.suppress(PoolClosedError):
            work.answer(suspect, Result(Outcome.CRASH, text, board=self.description.name))
            self.usage.trials += 1
        return True

    # --- running ---

    def _run(self, work: Work, taken: dict[int, Request]) -> None:
        """Answers all that there is; `taken` holds what is not answered yet. Raises one of _FAULTS where the board
        fails on the way."""
        connected = self._connection
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
                    self._tell(BoardState.RUNNING, "")
                    running = True
                self._receive(connected, in_flight.popleft(), work, taken)
        finally:
            self.usage.idle()
        for run, through in connected.acknowledge_through.items():
            connected.client.acknowledge(through, Deadline(CONNECT_SECONDS), run)
        connected.acknowledge_through.clear()
        if running:
            self._tell(BoardState.READY, "")

    def _fill(
        self, connected: _Connected, in_flight: deque[_InFlight], work: Work, taken: dict[int, Request]
    ) -> None:
        """Sends ahead: while one trial runs the next is on the board already."""
        while len(in_flight) < PIPELINE_DEPTH:
            if not in_flight:
                self.usage.idle()
            if in_flight and self._suspects.has(in_flight[-1].request):
                return  # it goes alone
            request = work.take(self.description.name, idle=not in_flight)
            if request is None:
                return
            taken[request.number] = request
            self.usage.busy()
            known = connected.journal.pop(request.key, None)
            if known is not None:  # the board finished it while nobody was there to be told
                self._answer(request, result_of(known, self.description.name, {}), work, taken)
                connected.is_safe(known)
                continue
            sent = self._send(connected, request, work, taken)
            if sent is not None:
                in_flight.append(sent)

    def _send(
        self, connected: _Connected, request: Request, work: Work, taken: dict[int, Request]
    ) -> _InFlight | None:
        """None where the request cannot be put into words of the protocol; it is answered then."""
        started = time.monotonic()
        try:
            shipment = ship(request, self._blobs.digests(request.tensors), connected.bitstream)
        except ValueError as error:
            self._answer(request, self._refused("program_invalid", str(error)), work, taken)
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
        self, connected: _Connected, flying: _InFlight, work: Work, taken: dict[int, Request]
    ) -> None:
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
        if measured.canary is not None:
            self._log_resets(request, measured)
        host = {**flying.seconds, "answer": time.monotonic() - flying.sent}
        self._answer(request, result_of(measured, self.description.name, host), work, taken)
        connected.is_safe(measured)

    def _log_resets(self, request: Request, measured: Measured) -> None:
        """What the agent did to have the board sane again, with its cost."""
        costs = {name: cost for name, cost in measured.seconds.items() if name.startswith("reset_")}
        rungs = ", ".join(f"{name} {cost:.2f} s" for name, cost in costs.items()) or "nothing to climb"
        well = "well" if measured.canary else "failed"
        name = self.description.name
        _LOG.warning("%s: %s after trial %d: %s; canary %s", name, measured.outcome, request.number, rungs, well)

    def _answer(self, request: Request, result: Result, work: Work, taken: dict[int, Request]) -> None:
        work.answer(request, result)
        del taken[request.number]
        self.usage.trials += 1

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
                if isinstance(error, RefusedError) and error.code in _FAULTS_OF_THE_AGENT:
                    reason = self._recover(error, Rung.DAEMON)
                    if reason is None:
                        return None
                    raise reason from None
                if error.permanent or deadline.passed:
                    raise
            self._closing.wait(_FIRST_PAUSE_SECONDS)

    def _connect(self, seconds: float, rebooted_from: str | None = None) -> None:
        """`rebooted_from`: the boot id that must be over."""
        if self._bitstream is None:
            self._tell(BoardState.CONNECTING, "preparing its bitstream")
            self._bitstream = self._target.bitstream()  # a model may be built, which takes its own time
        self._tell(BoardState.CONNECTING, "")
        deadline = Deadline(seconds)
        agent = AgentConnection.open(self._target.endpoint(), _who(), deadline)
        try:
            if agent.welcome.boot_id == rebooted_from:
                raise AgentError(f"{self.description.name} has not rebooted yet")
            connected = self._program(agent, self._bitstream, deadline)
        except BaseException:
            agent.close()
            raise
        self._boot_id = agent.welcome.boot_id
        self._connection = connected
        if self._closing.is_set():
            self._disconnect()

    def _program(self, agent: AgentConnection, bitstream: bytes, deadline: Deadline) -> _Connected:
        how = "sent to the board" if agent.uploaded else "was there"
        self._tell(BoardState.LOADED, f"agent {agent.welcome.agent[:12]} {how}, pynq {agent.welcome.pynq}")
        digest = hashlib.sha256(bitstream).hexdigest()
        programmed = program_board(agent.client, self._target, bitstream, deadline)
        journal = agent.client.results(0, deadline)
        status = agent.client.status(deadline)
        celsius = status.temperature
        heat = "" if celsius is None else f", chip at {celsius:.0f} °C"
        what = f"{self._target.manifest.parameters} at {programmed.clock_hz / 1e6:g} MHz"
        self._tell(BoardState.READY, f"{what} programmed in {programmed.seconds:.1f} s{heat}", celsius)
        return _Connected(agent, digest, journal, time.monotonic() - status.uptime_seconds)

    def _recover(self, error: Exception, first: Rung) -> Exception | None:
        """Climbs from a rung until the board is programmed and its canary well, and returns None; or what was in the
        way at the last rung. A board whose last rung was in vain is quarantined."""
        self._disconnect()
        rungs = list(Rung)
        tried_all = True
        for rung in rungs[rungs.index(first) :]:
            if self._closing.is_set() or getattr(error, "permanent", False):
                return error
            self._tell(BoardState.RECOVERING, f"{rung}: {error}")
            started = time.monotonic()
            fault = self._climb(rung)
            if isinstance(fault, RungSkippedError):
                _LOG.warning("%s: no %s: %s", self.description.name, rung, fault)
                tried_all = False
                continue
            climbed = Climbed(rung, fault is None, time.monotonic() - started, "" if fault is None else str(fault))
            self.climbed.append(climbed)
            if not self._closing.is_set():
                _LOG.warning("%s: %s", self.description.name, climbed)
            if fault is None:
                return None
            error = fault
        is_broken = isinstance(error, RefusedError) and error.code in _FAULTS_OF_THE_AGENT
        if (tried_all or is_broken) and not self._closing.is_set() and not getattr(error, "permanent", False):
            return self._quarantine(error)
        return error

    def _climb(self, rung: Rung) -> Exception | None:
        """One rung, within its time. None where the board is programmed and its canary well afterwards."""
        deadline = Deadline(SECONDS[rung])
        before = self._boot_id if rung is Rung.REBOOT else None
        try:
            self._act(rung)
        except _FAULTS as fault:
            return fault
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                self._connect(max(_SHORTEST_SECONDS, min(RECONNECT_SECONDS, deadline.left)), before)
                self._prove_sane()
                return None
            except _FAULTS as fault:
                broken = isinstance(fault, RefusedError) and fault.code in _FAULTS_OF_THE_AGENT
                if broken or deadline.passed or self._closing.is_set() or getattr(fault, "permanent", False):
                    return fault
            self._closing.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _prove_sane(self) -> None:
        """A board that was programmed all the time has not run its canary by connecting. Raises LinkError."""
        connected = self._connection
        if connected is not None and not connected.client.reset("soft", Deadline(RECONNECT_SECONDS)).canary:
            self._disconnect()
            raise RefusedError("board_broken", "canary failed after a soft reset")

    def _act(self, rung: Rung) -> None:
        if rung is Rung.DAEMON:
            restart_daemon(self._target.endpoint())
        elif rung is Rung.REBOOT:
            reboot(self._target.endpoint(), virtual=self._target.virtual)
        elif rung is Rung.POWER:
            switch = self._target.power()
            if switch is None:
                raise RungSkippedError("it has no power switch that hilt knows of (docs/boards.md)")
            switch.cycle()

    def _quarantine(self, error: Exception) -> QuarantinedError:
        name = self.description.name
        quarantine(name, f"nothing on the recovery ladder helped; at last: {error}")
        _LOG.error("%s is quarantined: %s; see to it, then `hilt boards release %s`", name, error, name)
        return QuarantinedError(f"{name} is quarantined: {error}; see to it, then `hilt boards release {name}`")

    def _give_up(self, error: Exception) -> str:
        self._disconnect()
        if self._closing.is_set():
            self._target.release()  # a connection that was being made may have switched it on again
            return "measurer was closed"
        kept_apart = isinstance(error, QuarantinedError)
        self._tell(BoardState.QUARANTINED if kept_apart else BoardState.LOST, str(error))
        return str(error)

    def _disconnect(self) -> None:
        connected, self._connection = self._connection, None
        if connected is not None:
            connected.agent.close()

    def _tell(self, state: BoardState, detail: str, celsius: float | None = None) -> None:
        self._listen(BoardEvent(self.description.name, state, detail, time.time(), celsius))


def program_board(client: AgentClient, target: Target, bitstream: bytes, deadline: Deadline) -> Programmed:
    """Loads the bitstream, with the canary that decides from now on whether the board is sane; it has run when this
    returns. Raises LinkError: BitstreamRefusedError, or RefusedError `board_broken` where the canary failed."""
    digest = hashlib.sha256(bitstream).hexdigest()
    canary = make_canary(target.description.accelerator, digest)
    contents = {digest: bitstream, **canary.blobs}
    for name in sorted(client.missing(sorted(contents), deadline)):
        client.put_as(name, contents[name], deadline)
    return client.program(digest, target.manifest, deadline, canary.trial, canary.code)


def _first_rung(error: Exception) -> Rung:
    """The agent has climbed its own rungs before it says that the board is broken: connecting again changes nothing."""
    is_broken = isinstance(error, RefusedError) and error.code in _FAULTS_OF_THE_AGENT
    return Rung.DAEMON if is_broken else Rung.RECONNECT


def _who() -> str:
    """For whoever is told that the board is busy."""
    return f"hilt of {getpass.getuser()}@{socket.gethostname()}, process {os.getpid()}"[:200]
