"""The facts of a board that need no question to it: state, accelerator, heat, recoveries, trials."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from hilt.bitstreams import BitstreamError
from hilt.engine.events import BoardChanged, Event, Logged
from hilt.link.errors import LinkError
from hilt.link.quarantine import quarantined
from hilt.measure import describe_board
from hilt.measure.ladder import RecoveryStep
from hilt.tui import formatting
from hilt.tui.run_view import Link, RunView
from hilt.virtual.errors import VirtualBoardError


def facts_of(name: str, view: RunView, history: Sequence[Event]) -> Content:
    """Label and value, a line each."""
    changes = [event for event in history if isinstance(event, BoardChanged) and event.board == name]
    log_lines = [event.text for event in history if isinstance(event, Logged) and event.text.startswith(f"{name}:")]
    rows = [
        ("board", name),
        ("state", _state(name, view)),
        ("step", _recovery_step(view.boards.get(name) or (changes[-1] if changes else None))),
        ("recoveries", f"{sum(' took ' in text for text in log_lines)} recovery steps"),
        ("canary", _canary(log_lines, changes)),
        ("heat", _heat(changes)),
        *_accelerator(name),
    ]
    kept = quarantined().get(name)
    if kept is not None:
        rows.insert(2, ("quarantined", kept.reason))
    lines = [Content.assemble((f"{label:11} ", "dim"), value) for label, value in rows if value]
    return Content("\n").join(lines)


def _state(name: str, view: RunView) -> str:
    state = view.boards.get(name)
    if state is None:
        return view.text_without_events
    past = "" if view.link is Link.ATTACHED else "last known: "
    return f"{past}{state.state} since {formatting.clock(state.at)} {state.detail}".rstrip()


def _recovery_step(state: BoardChanged | None) -> str:
    """Return the current step of the recovery ladder."""
    if state is None or state.state != "recovering":
        return "none: it is not being recovered"
    step = state.detail.partition(":")[0]
    steps = [str(step) for step in RecoveryStep]
    return f"{steps.index(step) + 1} of {len(steps)}, {step}" if step in steps else step


def _canary(log_lines: Sequence[str], changes: Sequence[BoardChanged]) -> str:
    """Return the canary's result. It runs when the bitstream is programmed, and after each recovery step."""
    well = sum("canary well" in text for text in log_lines) + sum("programmed in" in event.detail for event in changes)
    failed = sum("canary failed" in text for text in log_lines)
    return f"well {well}×, failed {failed}×" if well or failed else "not run yet"


def _heat(changes: Sequence[BoardChanged]) -> str:
    readings = [(event.celsius, event.at) for event in changes if event.celsius is not None]
    if not readings:
        return "the board does not report it"
    celsius, at = readings[-1]
    return f"{celsius:.0f} °C at {formatting.clock(at)}"


def _accelerator(name: str) -> list[tuple[str, str]]:
    try:
        board = describe_board(name)
    except (LinkError, VirtualBoardError, BitstreamError, ValueError, OSError) as error:
        return [("accelerator", f"not known here: {error}")]
    accelerator = board.accelerator
    return [
        ("clock", f"{board.clock_hz / 1e6:g} MHz"),
        ("parameters", accelerator.parameters.name),
        ("accelerator", f"ISA {accelerator.isa}, {accelerator.bus} bus, hazards: {accelerator.hazards}"),
        ("bitstream", board.bitstream[:12]),
    ]
