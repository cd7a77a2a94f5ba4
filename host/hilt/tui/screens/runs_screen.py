"""The list of runs, newest first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Static

from hilt.engine.run_files import RunFiles
from hilt.store import RunState, RunSummary, Store, StoreError, UnknownRunError
from hilt.tui import formatting
from hilt.tui.messages import RunChosen
from hilt.tui.widgets.key_bar import KeyBar
from hilt.tui.widgets.navigation_bar import NavigationBar

_MOST_RUNS = 100
# Widths are set: a table that is painted before it has measured its new rows keeps showing them cut.
_COLUMNS = {
    "run": 8,
    "state": 11,
    "trials": 11,
    "valid": 6,
    "best": 10,
    "workload": 20,
    "board": 20,
    "tuner": 8,
    "begun": 16,
}


@dataclass(frozen=True)
class _Row:
    summary: RunSummary
    live: bool

    @property
    def state(self) -> str:
        state = self.summary.run.state
        going = state in (RunState.RUNNING, RunState.PAUSED, RunState.CREATED)
        return "interrupted" if going and not self.live else str(state)


class RunsScreen(Screen[None]):
    """Enter shows a run."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("f5", "read", "Read again", tooltip="Reads the list again")]

    def __init__(self, home: Path, store: Store) -> None:
        super().__init__()
        self._home = home
        self._store = store

    def compose(self) -> ComposeResult:
        yield NavigationBar("runs")
        yield Static("reading the store ...", id="title", markup=False)
        table: DataTable[str] = DataTable(cursor_type="row", zebra_stripes=True)
        for column, width in _COLUMNS.items():
            table.add_column(column, width=width)
        yield table
        yield KeyBar()

    def on_screen_resume(self) -> None:
        self.action_read()

    @work(exclusive=True, exit_on_error=False)
    async def action_read(self) -> None:
        try:
            rows = await asyncio.to_thread(self._read)
        except (StoreError, UnknownRunError) as error:
            self.notify(str(error), title="The store cannot be read", severity="error", timeout=60, markup=False)
        else:
            self._show(rows)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        assert event.row_key.value
        self.post_message(RunChosen(event.row_key.value))

    def _read(self) -> list[_Row]:
        return [
            _Row(self._store.summary(run.uuid), RunFiles(self._home, run.uuid).is_running())
            for run in self._store.runs(_MOST_RUNS + 1)
        ]

    def _show(self, rows: Sequence[_Row]) -> None:
        self.query_one("#title", Static).update(_title(len(rows)))
        table = self.query_one(DataTable)
        cursor = table.cursor_row
        table.clear()
        for row in rows[:_MOST_RUNS]:
            run, best = row.summary.run, row.summary.best
            table.add_row(
                run.uuid[:8],
                row.state,
                f"{row.summary.trials}/{run.budget}",
                str(row.summary.valid),
                formatting.microseconds(best.microseconds if best else None),
                run.workload,
                run.board,
                run.tuner,
                time.strftime("%Y-%m-%d %H:%M", time.localtime(run.created)),
                key=run.uuid,
            )
        table.move_cursor(row=cursor)


def _title(runs: int) -> str:
    if not runs:
        return "no runs yet; n begins one, or `hilt tune`"
    if runs > _MOST_RUNS:
        return f"the newest {_MOST_RUNS} runs: Enter shows one, `hilt tui RUN` an older one"
    return "runs, newest first: Enter shows one"
