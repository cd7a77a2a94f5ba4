"""The dialog for an export: the kind, and the file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, RadioButton, RadioSet

from hilt.tui.export import WORDS, ExportKind, export
from hilt.tui.watched_run import WatchedRun


class ExportScreen(ModalScreen[None]):
    """Enter writes; a file that is there already is replaced."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Cancel"),
        Binding("up", "kind(-1)", "Previous kind", priority=True),
        Binding("down", "kind(1)", "Next kind", priority=True),
    ]

    def __init__(self, watch: WatchedRun, screenshot: str) -> None:
        super().__init__()
        self._watch = watch
        self._screenshot = screenshot

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(f"Export of run {self._watch.short_id}: ↑ ↓ choose, Enter writes")
            with RadioSet():
                for place, kind in enumerate(ExportKind):
                    yield RadioButton(WORDS[kind], value=place == 0)
            yield Input(self._path(ExportKind.TRIALS), select_on_focus=False)
            with Horizontal():
                yield Button("Cancel (Esc)", id="cancel")
                yield Button("Write (Enter)", id="write", variant="primary")

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_radio_set_changed(self, event: RadioSet.Changed) -> None:
        self.query_one(Input).value = self._path(self._kind)

    def action_kind(self, step: int) -> None:
        """Choose the kind before or after, from wherever the focus is."""
        buttons = list(self.query(RadioButton))
        place = (max(self.query_one(RadioSet).pressed_index, 0) + step) % len(buttons)
        buttons[place].value = True

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._write()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "write":
            self._write()
        else:
            self.dismiss()

    @property
    def _kind(self) -> ExportKind:
        return list(ExportKind)[max(self.query_one(RadioSet).pressed_index, 0)]

    def _path(self, kind: ExportKind) -> str:
        return f"{self._watch.short_id}-{kind}"

    @work(exclusive=True, exit_on_error=False)
    async def _write(self) -> None:
        watch, name = self._watch, self.query_one(Input).value
        try:
            path = Path(name).expanduser().absolute()
            said = await asyncio.to_thread(export, watch.store, watch.uuid, self._kind, path, self._screenshot)
        except Exception as error:  # of disk, store or format: each names the fault in a line
            self.notify(str(error), title="Could not export", severity="error", timeout=20, markup=False)
        else:
            self.notify(said, title="Written", timeout=8, markup=False)
            self.dismiss()
