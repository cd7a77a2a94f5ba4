"""One configuration in depth, without running it: loops, buffers, program, timeline, disassembly."""

from __future__ import annotations

import asyncio
import json
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input

from hilt.report.explanation import Explanation
from hilt.report.explanation_text import explanation_text
from hilt.tui.event_lines import one_line
from hilt.tui.run_context import RunContext
from hilt.tui.run_view import RunView
from hilt.tui.screens.run_page import RunPage
from hilt.tui.watched_run import WatchedRun
from hilt.tui.widgets.line_view import Line, LineView
from hilt.vta.isa import disassemble


class ConfigurationScreen(RunPage):
    """The screen of one configuration: the chosen trial's or cell's, else the best one's."""

    NAME = "configuration"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "assembly", "Assembly", tooltip="The program's instructions instead of its explanation, and back"),
        Binding("left_square_bracket", "step(-1)", "Previous", show=False, tooltip="The configuration before this one"),
        Binding("right_square_bracket", "step(1)", "Next", show=False, tooltip="The configuration after this one"),
        Binding("b", "best", "Best", tooltip="The best configuration of the run"),
        Binding("i", "index", "Index", tooltip="A configuration by its number in the space"),
        Binding("c", "copy", "Copy", tooltip="Its knobs, as JSON, to the clipboard"),
    ]

    def __init__(self, watch: WatchedRun) -> None:
        super().__init__(watch)
        self._subject: RunContext | None = None
        self._explained: Explanation | None = None
        self._asked: int | None = None

    @property
    def explained(self) -> Explanation | None:
        """Return the explanation that is shown; None until it is made."""
        return self._explained

    def body(self) -> ComposeResult:
        yield Input(placeholder="number in the space; Enter shows it, Escape leaves", id="index", type="integer")
        with Horizontal(id="explanation"):
            yield LineView(id="explained")
            yield LineView(id="assembly")

    def on_mount(self) -> None:
        self.query_one("#index").display = False
        self.query_one("#assembly").border_title = "instructions"

    def refresh_page(self, view: RunView) -> None:
        wanted = self.watched.explained_configuration()
        if wanted is None:
            self._say("no trial yet: choose a configuration in Space (4), or by its number (i)")
        elif wanted != self._asked:
            self._asked = wanted
            self._explain(wanted)

    @work(group="explain", exclusive=True, exit_on_error=False)
    async def _explain(self, index: int) -> None:
        self.query_one("#explained").border_title = f"configuration {index}: being explained ..."
        try:
            explained, lines, assembly = await asyncio.to_thread(self._explanation, index)
        except Exception as error:  # of board, space or simulator: each names the fault in a line
            self._say(one_line(str(error)))
            return
        self._explained = explained
        shown = self.query_one("#explained", LineView)
        shown.border_title = f"configuration {explained.index} of {len(self._ready.space):,}"
        shown.set_lines(lines)
        shown.move_to(0)
        self.query_one("#assembly", LineView).border_subtitle = f"{len(assembly):,}"
        self.query_one("#assembly", LineView).set_lines(assembly or [("it does not compile", "error")])

    def _explanation(self, index: int) -> tuple[Explanation, list[Line], list[str]]:
        watch = self.watched
        self._subject = self._subject or RunContext(watch.store.run(watch.uuid))
        explained = self._subject.explain(index)
        lines = [_styled(line) for line in explanation_text(explained).splitlines()]
        code = explained.code
        return explained, lines, [] if code is None else disassemble(code.instructions, explained.accelerator)

    @property
    def _ready(self) -> RunContext:
        assert self._subject is not None
        return self._subject

    def _say(self, text: str) -> None:
        self._explained = None  # the earlier configuration is neither copied nor stepped on from
        self.query_one("#assembly", LineView).set_lines([])
        self.query_one("#assembly", LineView).border_subtitle = ""
        self.remove_class("-assembly")
        self.query_one("#explained").border_title = "configuration"
        self.query_one("#explained", LineView).set_lines([(text, "warning")])

    # keys

    def action_assembly(self) -> None:
        self.set_class(not self.has_class("-assembly"), "-assembly")
        self.query_one("#assembly" if self.has_class("-assembly") else "#explained").focus()

    def action_step(self, step: int) -> None:
        if self._explained is not None:
            self._show((self._explained.index + step) % len(self._ready.space))

    def action_best(self) -> None:
        self.watched.index = None
        self.take(())

    def action_index(self) -> None:
        index = self.query_one("#index", Input)
        index.display = True
        index.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.value.isdecimal():
            self._show(int(event.value))
        self.key_escape()

    def key_escape(self) -> None:
        index = self.query_one("#index", Input)
        index.value = ""
        index.display = False
        self.query_one("#explained").focus()

    def _show(self, index: int) -> None:
        self.watched.index = index
        self.take(())

    def action_copy(self) -> None:
        if self._explained is not None:
            text = json.dumps(dict(self._explained.knobs))
            self.app.copy_to_clipboard(text)
            self.notify(text, title="Copied", timeout=4, markup=False)


def _styled(line: str) -> Line:
    if line and not line.startswith(" "):
        return line, "heading"
    if "rejected, " in line or "does not fit" in line:
        return line, "error"
    return line, "good" if "accepted" in line else ""
