"""The list of runs and campaigns, newest first: folded, filtered and sorted by any column."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Input, Static

from hilt.store import Store, StoreError, UnknownRunError
from hilt.tui.messages import CampaignChosen, RunChosen
from hilt.tui.run_list import COLUMNS, MOST_RUNS, RunRow, arrange, read_rows
from hilt.tui.widgets.key_bar import KeyBar
from hilt.tui.widgets.navigation_bar import NavigationBar

_NEWEST_FIRST = "begun"


class RunsScreen(Screen[None]):
    """Enter shows a run or a campaign; Space folds a campaign's layers out and in."""

    AUTO_FOCUS = "DataTable"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "fold", "Fold", tooltip="A campaign's layers, out or in"),
        Binding("slash", "filter", "Filter", key_display="/", tooltip="Only rows that hold a text; Escape shows all"),
        Binding("o", "order", "Order", tooltip="By the next column; a click on a title sorts by it"),
        Binding("e", "export", "Export", show=False, tooltip="Written from the run itself: Enter shows it"),
        Binding("f5", "read", "Read again", show=False, tooltip="Reads the list again"),
    ]

    def __init__(self, home: Path, store: Store) -> None:
        super().__init__()
        self._home = home
        self._store = store
        self._rows: Sequence[RunRow] = ()
        self._shown: list[tuple[RunRow, int]] = []
        self._unfolded: set[str] = set()
        self._column = _NEWEST_FIRST
        self._reverse = False

    def compose(self) -> ComposeResult:
        yield NavigationBar("runs")
        yield Static("reading the store ...", id="title", markup=False)
        yield Input(placeholder="text in any column; Enter keeps it, Escape shows all", id="filter")
        table: DataTable[str] = DataTable(cursor_type="row", zebra_stripes=True)
        for name, width in COLUMNS.items():
            table.add_column(name, width=width, key=name)
        yield table
        yield KeyBar()

    def on_screen_resume(self) -> None:
        self.action_read()

    @work(exclusive=True, exit_on_error=False)
    async def action_read(self) -> None:
        """Read the store again."""
        try:
            self._rows = await asyncio.to_thread(read_rows, self._store, self._home)
        except (StoreError, UnknownRunError) as error:
            self.notify(str(error), title="The store cannot be read", severity="error", timeout=60, markup=False)
        else:
            self._show()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Show the run or the campaign of the row."""
        row = self._selected()
        if row is not None and row.is_campaign:
            self.post_message(CampaignChosen(row.uuid, show=True))
        elif row is not None:
            self.post_message(RunChosen(row.uuid))

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """Sort by the column; by the one that is sorted by, the other way round."""
        column = str(event.column_key.value)
        self._reverse = column == self._column and not self._reverse
        self._column = column
        self._show()

    def action_order(self) -> None:
        """Sort by the next column."""
        columns = list(COLUMNS)
        self._column = columns[(columns.index(self._column) + 1) % len(columns)]
        self._reverse = False
        self._show()

    def action_fold(self) -> None:
        """Fold the campaign's layers out or in."""
        row = self._selected()
        if row is None or not row.is_campaign:
            self.notify("this run has no layers: Space is for campaigns, Enter shows the run", timeout=4)
            return
        self._unfolded ^= {row.uuid}
        self._show()

    def action_export(self) -> None:
        """Say where exports are made."""
        self.notify("Enter shows a run; e exports it there", timeout=4)

    def action_filter(self) -> None:
        """Ask for a text that rows must hold."""
        line = self.query_one("#filter", Input)
        line.display = True
        line.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.input.display = bool(event.value)
        self.query_one(DataTable).focus()

    def key_escape(self) -> None:
        """Show all rows again."""
        line = self.query_one("#filter", Input)
        line.value = ""
        line.display = False
        self.query_one(DataTable).focus()

    def _selected(self) -> RunRow | None:
        place = self.query_one(DataTable).cursor_row
        return self._shown[place][0] if 0 <= place < len(self._shown) else None

    def _show(self) -> None:
        text = self.query_one("#filter", Input).value
        before = self._selected()
        self._shown = arrange(self._rows, text, self._column, self._reverse, self._unfolded)
        self.query_one("#title", Static).update(self._title(text))
        table = self.query_one(DataTable)
        cursor = table.cursor_row
        table.clear()
        for row, depth in self._shown:
            mark = ("▾ " if row.uuid in self._unfolded else "▸ ") if row.is_campaign else "  " * depth
            cells = row.cells | {"run": f"{mark}{row.cells['run']}"}
            table.add_row(*(cells[name] for name in COLUMNS), key=f"{depth} {row.uuid}")
        same = [place for place, (row, _) in enumerate(self._shown) if before is not None and row.uuid == before.uuid]
        table.move_cursor(row=same[0] if same else cursor)

    def _title(self, text: str) -> str:
        if not self._rows:
            return "no runs yet; n begins one, or `hilt tune`"
        arrow = "" if self._column == _NEWEST_FIRST and not self._reverse else " ↑" if self._reverse else " ↓"
        order = "newest first" if not arrow else f"by {self._column}{arrow}"
        held = f", with {text!r}" if text else ""
        most = f" (of the newest {MOST_RUNS})" if len(self._rows) >= MOST_RUNS else ""
        counted = "1 row" if len(self._shown) == 1 else f"{len(self._shown)} rows"
        return f"{counted}{held}, {order}{most}: Enter shows one, Space folds a campaign"
