"""The lease of a board: a client that has ended loses it."""

from __future__ import annotations

import json
import os
import re
import socket

from hilt.link.agent import AgentConnection, run_agent
from hilt.link.deadline import Deadline
from hilt.link.errors import BoardBusyError
from hilt.measure.board_description import BoardTarget
from hilt.measure.connection import CONNECT_SECONDS, who

_STATUS_SECONDS = 60.0
_PROCESS = re.compile(r"hilt of .*@(?P<computer>[^@]*), process (?P<process>\d+)")
"""The form of `hilt.measure.connection.who`."""


def end_lease(target: BoardTarget) -> str | None:
    """Take the lease from a client that has ended.

    Args:
        target: The board. It is released by the caller.

    Returns:
        The name of the client that had it; None if there was none.

    Raises:
        BoardBusyError: A client has it that is alive, or runs on another computer and is heard from.
        LinkError: The board does not answer.
    """
    endpoint = target.endpoint()
    try:
        AgentConnection.open(endpoint, who(), Deadline(CONNECT_SECONDS)).close()
        return None
    except BoardBusyError:
        holder = json.loads(run_agent(endpoint, ("status",), Deadline(_STATUS_SECONDS)))["holder"]
        if holder is None or not _has_ended(holder):
            raise
    # A second session of a client replaces its first.
    AgentConnection.open(endpoint, holder, Deadline(CONNECT_SECONDS)).close()
    return str(holder)


def _has_ended(client: str) -> bool:
    """Return whether a client was a process of this computer that is no more."""
    named = _PROCESS.fullmatch(client)
    if named is None or named["computer"] != socket.gethostname():
        return False
    try:
        os.kill(int(named["process"]), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False
