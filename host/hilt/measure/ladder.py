"""The recovery steps that a host can take, above those that the agent takes by itself.

The agent's steps are a soft reset, a reload of the bitstream and a new worker. Each of the host's steps ends in the
bitstream being programmed, and so in the canary.
"""

from __future__ import annotations

import contextlib
import ipaddress
from dataclasses import dataclass
from enum import StrEnum

from hilt.link.agent import archive_for, command
from hilt.link.board_registry import Endpoint
from hilt.link.deadline import Deadline
from hilt.link.errors import LinkError, LinkLostError, LinkTimeoutError
from hilt.link.host_keys import HostKeys
from hilt.link.session import SshSession


class RecoveryStep(StrEnum):
    RECONNECT = "reconnect"
    DAEMON = "restart of the daemon"
    REBOOT = "reboot over SSH"
    POWER = "power cycle"


SECONDS = {
    RecoveryStep.RECONNECT: 45.0,
    RecoveryStep.DAEMON: 90.0,
    RecoveryStep.REBOOT: 240.0,
    RecoveryStep.POWER: 300.0,
}
"""Seconds that each step may take, until the canary is well.

Importing pynq alone takes a small board half a minute, booting it a minute and more.
"""
ACT_SECONDS = 20.0
"""Seconds for an SSH session with a board that was just waited for, and one command on it."""


class StepSkippedError(LinkError):
    """A recovery step for which this board lacks the equipment."""


@dataclass(frozen=True)
class RecoveryAttempt:
    """The result of a recovery step, for the log and for a table of recoveries. `well`: the canary passed."""

    step: RecoveryStep
    well: bool
    seconds: float
    reason: str
    """Why it did not help."""

    def __str__(self) -> str:
        return f"{self.step} took {self.seconds:.1f} s, {'canary well' if self.well else f'in vain: {self.reason}'}"


def restart_daemon(endpoint: Endpoint) -> None:
    """Kill the agent's daemon, and its worker with it; connecting starts another. Raises LinkError."""
    deadline = Deadline(ACT_SECONDS)
    with SshSession.connect(endpoint, HostKeys(), deadline) as session:
        archive = archive_for(session, deadline)
        session.execute([*command(endpoint, archive.remote_path), "kill"], deadline)


def reboot(endpoint: Endpoint, *, virtual: bool) -> None:
    """Ask the board to reboot; its boot id shows whether it does. Raises LinkError, StepSkippedError."""
    if not virtual and _is_this_machine(endpoint.host):
        raise StepSkippedError(f"{endpoint.host} is this machine: it is not rebooted")
    deadline = Deadline(ACT_SECONDS)
    words = [*(["sudo", "-n"] if endpoint.sudo else []), "reboot"]
    ended = (LinkLostError, LinkTimeoutError)  # the session may well end before the command has
    with SshSession.connect(endpoint, HostKeys(), deadline) as session, contextlib.suppress(*ended):
        rebooted = session.execute(words, deadline)
        if rebooted.status != 0:
            raise StepSkippedError(f"it cannot be rebooted: {rebooted.last_line}")


def _is_this_machine(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"
