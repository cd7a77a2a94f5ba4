"""Recovering a board: up the ladder's steps until its canary is well, or the last one was in vain."""

from __future__ import annotations

import logging
import time

from hilt.link.abandon import unless_closed
from hilt.link.deadline import Deadline
from hilt.link.errors import (
    BoardBusyError,
    LinkError,
    LinkLostError,
    ProtocolViolationError,
    QuarantinedError,
    RefusedError,
    UnreachableError,
)
from hilt.link.quarantine import quarantine
from hilt.measure.connection import CONNECT_SECONDS, BoardConnection
from hilt.measure.interfaces import BoardState
from hilt.measure.ladder import SECONDS, RecoveryAttempt, RecoveryStep, StepSkippedError, reboot, restart_daemon
from hilt.measure.plausibility import ImpossibleLatencyError
from hilt.virtual.errors import VirtualBoardError

_LOG = logging.getLogger("hilt.measure")
FAULTS = (LinkError, VirtualBoardError)
"""Faults of a board, of the way to it, or of a virtual board's supervisor."""
SETTLE_SECONDS = 5.0
"""Seconds to try at first while a board is busy or does not answer."""
RECONNECT_SECONDS = 60.0
"""Seconds for one attempt of a recovery."""
_FAULTS_OF_THE_AGENT = ("board_broken", "worker_failed", "internal")
"""Refusals after which connecting again is not enough: the agent has taken its own steps before it says so."""
_VIOLATIONS_ALLOWED = 3
"""Protocol violations allowed within one step.

An agent that lies or babbles is not asked until the step's time is over.
"""
_SHORTEST_SECONDS = 1.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 2.0


class Recovery:
    """The recovery of the board of one connection, from the thread that uses it."""

    def __init__(self, connection: BoardConnection) -> None:
        self.attempts: list[RecoveryAttempt] = []
        """Every recovery step taken, in order."""
        self._connection = connection

    def connect_at_first(self) -> None:
        """Connect for the first time, with patience.

        A client that has just died may still hold the lease for a moment, and a service may be starting again. A board
        that no SSH server answers on is used by nobody: its power is cycled, if hilt knows its switch.

        Raises one of FAULTS.
        """
        deadline = Deadline(SETTLE_SECONDS)
        while True:
            try:
                return self._connection.connect(CONNECT_SECONDS)
            except LinkError as error:
                if self._is_broken(error):
                    reason = self.recover_from(error)
                    if reason is None:
                        return None
                    raise reason from None
                if self._is_permanent(error):
                    raise
                if deadline.passed:
                    if not self._cycled_power_of_dead_board(error):
                        raise
                    return None
            self._connection.closing.wait(_FIRST_PAUSE_SECONDS)

    def recover_from(self, error: Exception) -> Exception | None:
        """Climb until the board is programmed and its canary well, and return None; or return the last step's error.

        A board whose last step was in vain is quarantined; one that another client has by now is left to it.
        """
        connection = self._connection
        connection.disconnect()
        steps = list(RecoveryStep)
        tried_all = True
        for step in steps[steps.index(RecoveryStep.DAEMON if self._is_broken(error) else RecoveryStep.RECONNECT) :]:
            if connection.closing.is_set() or self._is_permanent(error):
                return error
            fault = self._attempt(step, error)
            if fault is None:
                return None
            if isinstance(fault, StepSkippedError):
                tried_all = False
                continue
            if isinstance(fault, BoardBusyError):
                return fault  # it is well, and somebody else's: no step may take it from under them
            error = fault
        if (tried_all or self._is_broken(error)) and not connection.closing.is_set() and not self._is_permanent(error):
            return self._quarantine(error)
        return error

    def _cycled_power_of_dead_board(self, error: LinkError) -> bool:
        """Return True if no SSH server answered, and the board is well after a power cycle."""
        return isinstance(error, UnreachableError) and self._attempt(RecoveryStep.POWER, error) is None

    def _attempt(self, step: RecoveryStep, error: Exception) -> Exception | None:
        """Take a step because of an error, and note it. Return None if the board is well, else the step's fault."""
        connection = self._connection
        connection.tell(BoardState.RECOVERING, f"{step}: {error}")
        started = time.monotonic()
        fault = self._take_step(step)
        if isinstance(fault, StepSkippedError):
            _LOG.warning("%s: no %s: %s", connection.name, step, fault)
            return fault
        attempt = RecoveryAttempt(step, fault is None, time.monotonic() - started, "" if fault is None else str(fault))
        self.attempts.append(attempt)
        if not connection.closing.is_set():
            _LOG.warning("%s: %s", connection.name, attempt)
        return fault

    def _take_step(self, step: RecoveryStep) -> Exception | None:
        """Climb one step, within its time. Return None if the board is programmed and its canary well afterwards."""
        connection = self._connection
        deadline = Deadline(SECONDS[step])
        before = connection.boot_id if step is RecoveryStep.REBOOT else None
        try:
            unless_closed(connection.closing, lambda: self._act(step), lambda done: None)
        except FAULTS as fault:
            return fault
        pause = _FIRST_PAUSE_SECONDS
        violations = 0
        while True:
            try:
                connection.connect(max(_SHORTEST_SECONDS, min(RECONNECT_SECONDS, deadline.left)), before)
                self._prove_sane()
                return None
            except FAULTS as fault:
                violations += isinstance(fault, ProtocolViolationError)
                hopeless = self._is_broken(fault) or self._is_permanent(fault) or violations >= _VIOLATIONS_ALLOWED
                if hopeless or deadline.passed or connection.closing.is_set():
                    return fault
            connection.closing.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _act(self, step: RecoveryStep) -> None:
        target = self._connection.target
        if step is RecoveryStep.DAEMON:
            restart_daemon(target.endpoint())
        elif step is RecoveryStep.REBOOT:
            reboot(target.endpoint(), virtual=target.virtual)
        elif step is RecoveryStep.POWER:
            switch = target.power()
            if switch is None:
                raise StepSkippedError("it has no power switch that hilt knows of (docs/boards.md)")
            switch.cycle()

    def _prove_sane(self) -> None:
        """Reset the board softly, which runs its canary. Raises LinkError.

        Connecting to a board that was programmed all the time does not run the canary.
        """
        connected = self._connection.connected
        if connected is None:
            raise LinkLostError(f"{self._connection.name} was closed")
        if not connected.client.reset("soft", Deadline(RECONNECT_SECONDS)).canary:
            self._connection.disconnect()
            raise RefusedError("board_broken", "canary failed after a soft reset")

    def _quarantine(self, error: Exception) -> QuarantinedError:
        name = self._connection.name
        quarantine(name, f"nothing on the recovery ladder helped; at last: {error}")
        _LOG.error("%s is quarantined: %s; see to it, then `hilt boards release %s`", name, error, name)
        return QuarantinedError(f"{name} is quarantined: {error}; see to it, then `hilt boards release {name}`")

    def _is_broken(self, error: Exception) -> bool:
        """Return True if the error means a broken board.

        Registers of another accelerator are a wrong bitstream at first, a broken board once they were right.
        """
        if isinstance(error, ImpossibleLatencyError):
            return True
        if not isinstance(error, RefusedError):
            return False
        was_well = self._connection.boot_id is not None
        return error.code in _FAULTS_OF_THE_AGENT or (was_well and error.code == "identity_mismatch")

    def _is_permanent(self, error: Exception) -> bool:
        return isinstance(error, LinkError) and error.permanent and not self._is_broken(error)
