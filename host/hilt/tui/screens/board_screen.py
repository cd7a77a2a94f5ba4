"""The boards of a run: state, recovery, canary, heat and clock, power; and the keys that reach for the board itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.widgets import Static

from hilt.engine.events import BoardChanged, Logged
from hilt.link.quarantine import quarantine, release
from hilt.measure import board_names_of
from hilt.tui import board_work
from hilt.tui.background import in_background
from hilt.tui.event_lines import line_of, one_line
from hilt.tui.run_view import RunView
from hilt.tui.screens.dialogs import Confirm
from hilt.tui.screens.run_page import RunPage
from hilt.tui.watched_run import WatchedRun
from hilt.tui.widgets.board_facts import facts_of
from hilt.tui.widgets.line_view import Line, LineView


class BoardScreen(RunPage):
    """One board of the run at a time; B shows the next."""

    NAME = "board"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back", show=False, tooltip="From the check or the log back to the recoveries"),
        Binding("b", "next_board", "Next", show=False, tooltip="The next board of a run on several"),
        Binding("d", "check", "Check", tooltip="Looks at the board from SSH to the canary; heat, memory and disk too"),
        Binding("g", "agent_log", "Agent log", tooltip="The end of the log of the agent on the board"),
        Binding("x", "quarantine", "Quarantine", tooltip="Keeps the board apart, or lets it be used again; asks first"),
        Binding("w", "power_cycle", "Power", tooltip="Switches its power off and on again; asks first"),
        Binding("c", "copy", "Copy", show=False, tooltip="The line under the cursor, to the clipboard"),
    ]

    def __init__(self, watch: WatchedRun) -> None:
        super().__init__(watch)
        self._place = 0
        self._asked: dict[str, list[Line]] = {}
        """Requests made here, by board."""
        self._asking: set[str] = set()
        self._shown: tuple[object, ...] = ()

    @property
    def board(self) -> str:
        """The board that is shown."""
        names = board_names_of(self.view.run.board) if self.view is not None else [""]
        return names[self._place % len(names)]

    def body(self) -> ComposeResult:
        with Container(id="boards"):
            with VerticalScroll(id="board-facts", can_focus=False):
                yield Static(id="board-words")
            yield LineView(follow=True, id="recovery")
        yield LineView(id="asked")

    def on_mount(self) -> None:
        self.query_one("#recovery").border_title = "recovery and canary"
        self.query_one("#asked").border_title = "check and agent's log"

    def refresh_page(self, view: RunView) -> None:
        name = self.board
        state = view.boards.get(name)
        shown = (name, state, self.watched.arrived, len(self._asked.get(name, ())), view.link)
        if shown == self._shown:
            return
        self._shown = shown
        boards = len(board_names_of(view.run.board))
        title = f"board {self._place % boards + 1} of {boards}: b shows the next" if boards > 1 else "board"
        self.query_one("#board-facts").border_title = title
        self.query_one("#board-words", Static).update(facts_of(name, view, list(self.watched.history)))
        events = [event for event in self.watched.history if _is_of(name, event)]
        lines = [line for event in events if (line := line_of(event)) is not None]
        self.query_one("#recovery", LineView).set_lines(lines or [("no fault, no recovery yet", "muted")])
        hint: Line = ("d looks at the board from SSH to the canary; g reads its agent's log", "muted")
        self.query_one("#asked", LineView).set_lines(self._asked.get(name) or [hint])

    # keys

    def action_leave(self) -> None:
        self.remove_class("-asked")
        self.query_one("#recovery").focus()

    def action_next_board(self) -> None:
        self._place += 1
        self.take(())

    def action_check(self) -> None:
        self._ask("checking", board_work.check)

    def action_agent_log(self) -> None:
        self._ask("reading the log of", board_work.agent_log)

    @work(group="board", exit_on_error=False)
    async def _ask(self, doing: str, ask: Callable[[str, Callable[[Line], None]], None]) -> None:
        """Lines come as they are found."""
        name = self.board
        self.add_class("-asked")
        self.query_one("#asked", LineView).focus()
        if name in self._asking:  # it has one lease, and would call itself busy
            self.notify(f"{name} is being asked still", severity="warning", timeout=4, markup=False)
            return
        lines = self._asked[name] = [(f"{doing} {name} ...", "heading")]
        self._asking.add(name)
        self.take(())

        def tell(line: Line) -> None:
            lines.append(line)
            self.app.call_from_thread(self.take, ())

        try:
            await in_background(lambda: ask(name, tell))
            lines.append(("done", "muted"))
        except Exception as error:  # of link, board or simulator: each names the remedy in a line
            lines.append((one_line(str(error)), "error"))
        finally:
            self._asking.discard(name)
        self.take(())

    @work(group="board-command", exit_on_error=False)
    async def action_power_cycle(self) -> None:
        name = self.board
        question = Confirm(
            f"Switch the power of {name} off and on?",
            "The trial on it is lost; the engine recovers the board and asks for those trials again.",
            "Power-cycle",
            "Leave it on",
        )
        if not await self.app.push_screen_wait(question):
            return
        self.notify(f"switching the power of {name} ...", timeout=4, markup=False)
        await self._do(f"power of {name}: off and on", board_work.power_cycle, name)

    @work(group="board-command", exit_on_error=False)
    async def action_quarantine(self) -> None:
        name = self.board
        if name in await asyncio.to_thread(board_work.apart):
            question = Confirm(f"Release {name}?", "It may be used again. Have you seen to it?", "Release", "Keep it")
            if await self.app.push_screen_wait(question):
                await self._do(f"{name} is released", release, name)
            return
        question = Confirm(
            f"Quarantine {name}?",
            "It finishes its trials; no run uses it until it is released (x here, or `hilt boards release`).",
            "Quarantine",
            "Leave it",
        )
        if await self.app.push_screen_wait(question):
            await self._do(f"{name} is quarantined", quarantine, name, "kept apart by hand")

    async def _do(self, said: str, act: Callable[..., object], *arguments: str) -> None:
        try:
            await asyncio.to_thread(act, *arguments)
        except Exception as error:  # of link, power switch or disk: each names the remedy in a line
            self.notify(str(error), title="Not done", severity="error", timeout=20, markup=False)
        else:
            self.notify(said, timeout=5, markup=False)
        self._shown = ()
        self.take(())

    def action_copy(self) -> None:
        focused = self.focused
        line = focused.selected if isinstance(focused, LineView) else None
        if line is not None:
            self.app.copy_to_clipboard(line)
            self.notify(line, title="Copied", timeout=4, markup=False)


def _is_of(name: str, event: object) -> bool:
    match event:
        case BoardChanged(board=board):
            return board == name
        case Logged(text=text):
            return text.startswith(f"{name}:") or text.startswith(f"{name} is ")
    return False
