"""Asks what to tune, on which board, and starts it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widgets import Button, Input, Label

from hilt.engine import launch
from hilt.engine.run_spec import RunSpec, spec_of
from hilt.link.errors import BoardFileError
from hilt.measure.board_description import board_names
from hilt.schedule import workload_names
from hilt.store import Run
from hilt.tui.messages import RunChosen
from hilt.tune import tuner_names

_FIELDS = ("workload", "board", "tuner", "trials", "seed")
_NUMBERS = ("trials", "seed")


class NewRunScreen(ModalScreen[None]):
    """Begins with what the run that is watched was asked for, and the next seed. Enter in any field starts."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "cancel", "Cancel")]

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
        known = {"workload": workload_names(), "board": self._boards(), "tuner": tuner_names()}
        with VerticalScroll():
            yield Label("Start a run: names are completed with →")
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
            self.notify("an engine is being started: nobody would hear what became of it", timeout=4)
        else:
            self.dismiss()

    def _settings(self, values: dict[str, str]) -> RunSpec:
        """What the fields say; all else as of the run that is watched, but what is of another tuner, layer or board."""
        trials, seed = _number("trials", values), _number("seed", values)
        asked = RunSpec(values["workload"], values["board"], values["tuner"], trials, seed)
        if self._like is None:
            return asked
        like = spec_of(self._like)
        return replace(
            like,
            workload=asked.workload,
            board=asked.board,
            tuner=asked.tuner,
            trials=trials,
            seed=seed,
            limit_seconds=like.limit_seconds if (asked.workload, asked.board) == (like.workload, like.board) else None,
            tuner_options=like.tuner_options if asked.tuner == like.tuner else {},
        )

    @work(exit_on_error=False)
    async def _start(self) -> None:
        if self._starting:  # a second Enter is no second run
            return
        self._starting = True
        values = {name: self.query_one(f"#{name}", Input).value.strip() for name in _FIELDS}
        self.notify("starting an engine ...", timeout=3)
        try:
            settings = self._settings(values)
            run = await asyncio.to_thread(launch.start, settings, self._home)
        except Exception as error:  # of workload, board, tuner or engine: each says in a line what is wrong
            self.notify(str(error), title="Not started", severity="error", timeout=20, markup=False)
        else:
            self.app.post_message(RunChosen(run.uuid))
            self.dismiss()
        finally:
            self._starting = False


def _number(name: str, values: dict[str, str]) -> int:
    try:
        return int(values[name])
    except ValueError:
        raise ValueError(f"{name} is {values[name]!r}; it must be a whole number") from None
