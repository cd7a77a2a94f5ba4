"""The list of runs and campaigns, newest first: folded, filtered and sorted by any column."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Input, Static

from hilt.engine.deletion import delete
from hilt.store import Store, StoreError, UnknownRunError
from hilt.store.identifiers import run_or_campaign
from hilt.store.labels import Labels, set_labels
from hilt.tui.messages import CampaignChosen, RunChosen
from hilt.tui.run_list import COLUMNS, MOST_RUNS, RunRow, arrange, read_rows
from hilt.tui.screens.dialogs import Confirm, Prompt
from hilt.tui.widgets.command_lines import CommandLines
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
        Binding("g", "tags", "Tags", tooltip="Tags of the run or campaign, with spaces between; / finds them"),
        Binding("m", "note", "Note", tooltip="A note on the run or campaign"),
        Binding("a", "archive", "Archive", tooltip="Leaves it out of the list, or lists it again; nothing is lost"),
        Binding("v", "archived", "Archived", show=False, tooltip="Shows archived ones too, or hides them"),
        Binding("d", "delete", "Delete", tooltip="Deletes the run or campaign with its trials; asks first"),
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
        self._archived = False

    @property
    def selected_run(self) -> str | None:
        """Return the selected run; None if the row is a campaign or the list is empty."""
        row = self._selected()
        return row.uuid if row is not None and not row.is_campaign else None

    def compose(self) -> ComposeResult:
        yield NavigationBar("runs")
        yield Static("reading the store ...", id="title", markup=False)
        yield CommandLines(self._home)
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

    def on_command_lines_ended(self, message: CommandLines.Ended) -> None:
        """Read the store again: the command may have written to it."""
        self.action_read()

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

    def action_archived(self) -> None:
        """Show archived rows too, or hide them."""
        self._archived = not self._archived
        self._show()

    def action_archive(self) -> None:
        """Archive the row, or list it again."""
        row = self._own_row()
        if row is not None:
            self._label(row, row.labels.put_away(not row.labels.archived))
            if not row.labels.archived:
                self.notify(f"{row.uuid[:8]} is archived: v shows archived ones", timeout=4)

    @work(group="labels", exit_on_error=False)
    async def action_tags(self) -> None:
        """Ask for the row's tags."""
        row = self._own_row()
        if row is None:
            return
        labels = replace(row.labels, tags=())
        question = Prompt(f"Tags of {row.uuid[:8]}, with spaces between", " ".join(row.labels.tags),
                          lambda text: labels.tagged(add=text.split()))  # fmt: skip
        text = await self.app.push_screen_wait(question)
        if text is not None:
            self._label(row, labels.tagged(add=text.split()))

    @work(group="labels", exit_on_error=False)
    async def action_note(self) -> None:
        """Ask for the row's note."""
        row = self._own_row()
        if row is None:
            return
        text = await self.app.push_screen_wait(Prompt(f"Note on {row.uuid[:8]}", row.labels.note, row.labels.noted))
        if text is not None:
            self._label(row, row.labels.noted(text))

    @work(group="labels", exit_on_error=False)
    async def action_delete(self) -> None:
        """Delete the row's run or campaign after a question."""
        row = self._own_row()
        if row is None:
            return
        kind = "campaign" if row.is_campaign else "run"
        trials = row.cells["trials"].partition("/")[0]
        question = Confirm(
            f"Delete {kind} {row.uuid[:8]} of {row.cells['workload']} for good?",
            f"Its {trials} trials, its log and its report are gone; a only archives it.",
            "Delete",
            "Keep it",
        )
        if not await self.app.push_screen_wait(question):
            return
        try:
            await asyncio.to_thread(self._delete, row.uuid)
        except Exception as error:  # of engine or store: each names the remedy in a line
            self.notify(str(error), title="Not deleted", severity="warning", timeout=15, markup=False)
        else:
            self.notify(f"{kind} {row.uuid[:8]} is deleted", timeout=4)
        self.action_read()

    def _delete(self, uuid: str) -> None:
        delete(self._store, self._home, run_or_campaign(self._store, uuid))

    def _own_row(self) -> RunRow | None:
        """Return the row that is selected, if it is no layer: a layer goes with its campaign."""
        place = self.query_one(DataTable).cursor_row
        if not 0 <= place < len(self._shown):
            return None
        row, depth = self._shown[place]
        if depth:
            self.notify("this is a layer of a campaign: choose the campaign's row", severity="warning", timeout=4)
            return None
        return row

    def _label(self, row: RunRow, labels: Labels) -> None:
        try:
            set_labels(self._store, row.uuid, labels)
        except StoreError as error:
            self.notify(str(error), title="Not kept", severity="error", timeout=20, markup=False)
        self.action_read()

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
        self._shown = arrange(self._rows, text, self._column, self._reverse, self._unfolded, self._archived)
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
        hidden = sum(row.labels.archived for row in self._rows)
        held += "" if self._archived or not hidden else f", {hidden} archived"
        most = f" (of the newest {MOST_RUNS})" if len(self._rows) >= MOST_RUNS else ""
        counted = "1 row" if len(self._shown) == 1 else f"{len(self._shown)} rows"
        return f"{counted}{held}, {order}{most}: Enter shows one, Space folds a campaign"
