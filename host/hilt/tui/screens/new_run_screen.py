"""The form that starts a run or a campaign."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widgets import Button, Input, Label

from hilt.link.errors import BoardFileError
from hilt.measure.board_description import board_names
from hilt.schedule import workload_names
from hilt.schedule.networks import network_names
from hilt.store import Run
from hilt.tui import new_work
from hilt.tui.messages import CampaignChosen, RunChosen
from hilt.tune import tuner_names

_FIELDS = ("workload", "board", "tuner", "trials", "seed")
_NUMBERS = ("trials", "seed")


class NewRunScreen(ModalScreen[None]):
    """The form, filled with the settings of the run that is watched and the next seed. Enter in any field starts."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel"),
        Binding("up", "app.focus_previous", "Previous field", show=False),
        Binding("down", "app.focus_next", "Next field", show=False),
    ]

    def __init__(self, home: Path, like: Run | None) -> None:
        super().__init__()
        self._home = home
        self._like = like
        self._starting = False

    def compose(self) -> ComposeResult:
        like = self._like
        values = {
            "workload": like.workload if like else "resnet18.C5",
            "board": like.board if like else "virtual:pynq",
            "tuner": like.tuner if like else "hilt",
            "trials": str(like.budget) if like else "64",
            "seed": str(like.seed + 1) if like else "0",
        }
        known = {"workload": [*workload_names(), *network_names()], "board": self._boards(), "tuner": tuner_names()}
        with VerticalScroll():
            yield Label("Start a run, or a network's campaign (resnet18, model.onnx): → completes a name")
            for name in _FIELDS:
                with Horizontal():
                    yield Label(f"{name:9}")
                    yield Input(
                        values[name],
                        id=name,
                        type="integer" if name in _NUMBERS else "text",
                        suggester=SuggestFromList(known[name]) if name in known else None,
                        select_on_focus=False,
                        compact=True,
                    )
                yield _error_line(name)
            yield Label(Content(new_work.taken_over(like)), id="taken-over")
            yield _error_line("form")
            with Horizontal(id="buttons"):
                yield Button("Cancel (Esc)", id="cancel")
                yield Button("Start (Enter)", id="start", variant="primary")

    def _boards(self) -> list[str]:
        try:
            return board_names()
        except BoardFileError as error:
            self.notify(str(error), title="No board's name is completed", severity="warning", timeout=20, markup=False)
            return []

    def on_mount(self) -> None:
        self.query_one("#workload").focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._start()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "start":
            self._start()
        else:
            self.action_cancel()

    def action_cancel(self) -> None:
        if self._starting:
            self.notify("an engine is being started: wait until it has started", timeout=4)
        else:
            self.dismiss()

    @work(exit_on_error=False)
    async def _start(self) -> None:
        if self._starting:  # a second Enter is no second run
            return
        self._starting = True
        values = {name: self.query_one(f"#{name}", Input).value.strip() for name in _FIELDS}
        self._say("", "")
        self.notify("starting an engine ...", timeout=3)
        try:
            started = await asyncio.to_thread(new_work.start, values, self._like, self._home)
        except new_work.FieldError as error:
            self._say(error.field, error.message)
        except Exception as error:  # of board, engine or store: each names the fault in a line
            self._say("", str(error))
        else:
            self._show(started)
            self.dismiss()
        finally:
            self._starting = False

    def _show(self, started: new_work.Started) -> None:
        if started.is_campaign:
            self.app.post_message(CampaignChosen(started.uuid, show=True))
        else:
            self.app.post_message(RunChosen(started.uuid))

    def _say(self, field: str, message: str) -> None:
        """Show the message under its field, which is focused, or above the buttons; empty: show none."""
        for name in (*_FIELDS, ""):
            line = self.query_one(f"#{name or 'form'}-error", Label)
            line.update(Content(message if name == field else ""))
            line.display = bool(message) and name == field
        if field:
            self.query_one(f"#{field}", Input).focus()


def _error_line(name: str) -> Label:
    line = Label(id=f"{name}-error", classes="field-error")
    line.display = False
    return line
