"""Asks before a run is stopped."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Label


class ConfirmStop(ModalScreen[bool]):
    """True to stop. Escape and the focused button leave the run alone."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "answer(True)", "Stop"),
        ("n,escape", "answer(False)", "Keep running"),
    ]

    def __init__(self, run: str) -> None:
        super().__init__()
        self._run = run

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(f"Stop run {self._run}?")
            yield Label(f"What is on the board is finished and recorded; `hilt resume {self._run}` goes on with it.")
            with Horizontal():
                yield Button("Keep running (n)", id="keep")
                yield Button("Stop (y)", id="stop", variant="error")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "stop")

    def action_answer(self, stop: bool) -> None:
        self.dismiss(stop)
