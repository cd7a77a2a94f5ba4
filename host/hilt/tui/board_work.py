"""Requests to a board itself, over SSH or at its power switch. They take long: for threads."""

from __future__ import annotations

from collections.abc import Callable

from hilt.link.agent import run_agent
from hilt.link.deadline import Deadline
from hilt.link.errors import PowerError
from hilt.link.quarantine import Quarantine, quarantined
from hilt.measure import DATASET_PREFIX
from hilt.measure.board_description import BoardTarget, resolve
from hilt.measure.doctor import check_board
from hilt.tui.event_lines import one_line
from hilt.tui.widgets.line_view import Line

_SECONDS = 60.0
_MOST_LINES = 2000

Tell = Callable[[Line], None]


class NoBoardError(ValueError):
    """A name that is of no board that could be reached for."""


def check(name: str, tell: Tell) -> None:
    """Report each finding as it is made. Raises the errors of hilt.measure.board_description.resolve."""
    target = _target(name)
    try:
        for finding in check_board(target):
            tell((f"{'well' if finding.well else 'NOT WELL':9}{finding.what}: {one_line(finding.found)}",
                  "good" if finding.well else "error"))  # fmt: skip
            if not finding.well and finding.mend:
                tell((f"         {one_line(finding.mend)}", "warning"))
    finally:
        target.release()


def agent_log(name: str, tell: Tell) -> None:
    """Report the end of the agent's log. Raises LinkError."""
    target = _target(name)
    try:
        lines = run_agent(target.endpoint(), ("log",), Deadline(_SECONDS)).splitlines()
    finally:
        target.release()
    for line in lines[-_MOST_LINES:] or ["the agent's log is empty"]:
        tell((line, ""))


def power_cycle(name: str) -> None:
    """Switch the board off and on. Raises PowerError if it has no switch, or the switch fails."""
    switch = _target(name).power()
    if switch is None:
        raise PowerError(f"board {name} has no power switch: give it a table `power` in boards.toml (docs/boards.md)")
    switch.cycle()


def apart() -> dict[str, Quarantine]:
    """Return the boards that are quarantined."""
    return quarantined()


def _target(name: str) -> BoardTarget:
    if name.startswith(DATASET_PREFIX):
        raise NoBoardError(f"{name} is a recording, not a board")
    return resolve(name)
