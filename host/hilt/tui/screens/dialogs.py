"""Small dialogs: a question before something that cannot be taken back at once, and a line of text."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label


class Confirm(ModalScreen[bool]):
    """True to do it. Escape and the focused button leave things alone."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "answer(True)", "Yes"),
        ("n,escape", "answer(False)", "No"),
        Binding("left,up", "app.focus_previous", "Previous", show=False),
        Binding("right,down", "app.focus_next", "Next", show=False),
    ]

    def __init__(self, question: str, consequence: str, yes: str, no: str) -> None:
        super().__init__()
        self._question, self._consequence, self._yes, self._no = question, consequence, yes, no

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(self._question, markup=False)
            yield Label(self._consequence, markup=False)
            with Horizontal():
                yield Button(f"{self._no} (n)", id="no")
                yield Button(f"{self._yes} (y)", id="yes", variant="error")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class Prompt(ModalScreen[str | None]):
    """Ask for a line of text. Return it, or None if it is left.

    A text that `check` refuses is kept, with the error below it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel"),
        Binding("up", "app.focus_previous", "Previous", show=False),
        Binding("down", "app.focus_next", "Next", show=False),
    ]

    def __init__(self, question: str, value: str, check: Callable[[str], object]) -> None:
        """Make a dialog; `check` raises ValueError for a text that cannot be taken."""
        super().__init__()
        self._question, self._value, self._check = question, value, check

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(self._question, markup=False)
            yield Input(self._value, select_on_focus=False)
            yield Label("", id="prompt-error", classes="field-error", markup=False)
            with Horizontal():
                yield Button("Cancel (Esc)", id="cancel")
                yield Button("Keep (Enter)", id="keep", variant="primary")

    def on_mount(self) -> None:
        self.query_one("#prompt-error").display = False
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._keep()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "keep":
            self._keep()
        else:
            self.dismiss(None)

    def _keep(self) -> None:
        text = self.query_one(Input).value
        try:
            self._check(text)
        except ValueError as error:
            line = self.query_one("#prompt-error", Label)
            line.update(Content(str(error)))
            line.display = True
            self.query_one(Input).focus()
        else:
            self.dismiss(text)
