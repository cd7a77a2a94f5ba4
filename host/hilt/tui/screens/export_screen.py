"""The export of a run: the dialog for kind and file, and the files, written whole or not at all."""

from __future__ import annotations

import asyncio
import csv
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, RadioButton, RadioSet

from hilt.atomic_write import atomic_write
from hilt.store import Store
from hilt.store.autotvm_exchange import export_run
from hilt.store.autotvm_log import write_log
from hilt.store.autotvm_targets import target_of
from hilt.tui.watched_run import WatchedRun
from hilt.vta.parameters import VTAParameters


class ExportKind(StrEnum):
    TRIALS = "trials.csv"
    REPORT = "report.html"
    AUTOTVM = "autotvm.log"
    SCREEN = "screen.svg"


WORDS = {
    ExportKind.TRIALS: "all trials as CSV",
    ExportKind.REPORT: "the report, as one HTML page",
    ExportKind.AUTOTVM: "AutoTVM's log, for TVM v0.9's apply_history_best",
    ExportKind.SCREEN: "the screen behind this one, as SVG",
}
_COLUMNS = ("ordinal", "index", "outcome", "reason", "cycles", "microseconds", "verified", "board", "attempt")


def export(store: Store, uuid: str, kind: ExportKind, path: Path, screen: str) -> str:
    """Write the file and return a line about it. `screen` is an SVG.

    Raises StoreError, UnwritableFileError, OSError, MissingLibraryError without the extra `report`, and ValueError
    for a parameter set that TVM has no name for.
    """
    if kind is ExportKind.SCREEN:
        with atomic_write(path) as file:
            file.write(screen)
        return f"the screen, to {path}"
    if kind is ExportKind.REPORT:
        from hilt.report.html import write_run_report  # loads the drawing code, which nothing else here needs

        write_run_report(path, store, store.run(uuid))
        return f"the report, to {path}"
    run, trials = store.run(uuid), store.reported(uuid)
    if kind is ExportKind.AUTOTVM:
        target = target_of(run.board)
        exported = export_run(run, trials, VTAParameters.from_name(run.parameters), target)
        write_log(path, exported.records)
        left_out = sum(exported.left_out.values())
        written = (
            f"{len(exported.records)} trials for TVM's target {target} ({left_out} left out that it could not use)"
        )
        return f"{written}, to {path}"
    with atomic_write(path) as file:
        writer = csv.writer(file)
        knobs = list(trials[0].knobs) if trials else []
        writer.writerow([*_COLUMNS, *knobs])
        for trial in trials:
            writer.writerow([*(getattr(trial, name) for name in _COLUMNS), *(trial.knobs[name] for name in knobs)])
    return f"{len(trials)} trials, to {path}"


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
            message = await asyncio.to_thread(export, watch.store, watch.uuid, self._kind, path, self._screenshot)
        except Exception as error:  # of disk, store or format: each names the fault in a line
            self.notify(str(error), title="Could not export", severity="error", timeout=20, markup=False)
        else:
            self.notify(message, title="Written", timeout=8, markup=False)
            self.dismiss()
