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
    mine = [each for each in history if isinstance(each, BoardChanged) and each.board == name]
    spoken = [each.text for each in history if isinstance(each, Logged) and each.text.startswith(f"{name}:")]
    rows = [
        ("board", name),
        ("state", _state(name, view)),
        ("step", _recovery_step(view.boards.get(name) or (mine[-1] if mine else None))),
        ("recoveries", f"{sum(' took ' in text for text in spoken)} recovery steps"),
        ("canary", _canary(spoken, mine)),
        ("heat", _heat(mine)),
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
        return view.unheard
    past = "" if view.link is Link.ATTACHED else "last heard: "
    return f"{past}{state.state} since {formatting.clock(state.at)} {state.detail}".rstrip()


def _recovery_step(state: BoardChanged | None) -> str:
    """Return the current step of the recovery ladder."""
    if state is None or state.state != "recovering":
        return "none: it is not being recovered"
    step = state.detail.partition(":")[0]
    steps = [str(each) for each in RecoveryStep]
    return f"{steps.index(step) + 1} of {len(steps)}, {step}" if step in steps else step


def _canary(spoken: Sequence[str], mine: Sequence[BoardChanged]) -> str:
    """Return the canary's result. It runs when the bitstream is programmed, and after each recovery step."""
    well = sum("canary well" in text for text in spoken) + sum("programmed in" in each.detail for each in mine)
    failed = sum("canary failed" in text for text in spoken)
    return f"well {well}×, failed {failed}×" if well or failed else "not heard of yet"


def _heat(mine: Sequence[BoardChanged]) -> str:
    told = [(each.celsius, each.at) for each in mine if each.celsius is not None]
    if not told:
        return "the board does not say"
    celsius, at = told[-1]
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
        ("accelerator", f"ISA {accelerator.isa}, {accelerator.bus_bits} bit bus, hazards: {accelerator.hazards}"),
        ("bitstream", board.bitstream[:12]),
    ]
