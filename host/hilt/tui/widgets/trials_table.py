"""The trials as a table; only the visible rows are read and drawn."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from hilt.store import Run, RunState
from hilt.store.listing import Listing, Order, Which
from hilt.trial import Outcome, Trial
from hilt.tui import formatting
from hilt.tui.run_view import Link, RunView
from hilt.tui.trial_list import TrialList

_RESIZE_SECONDS = 2.0
"""Rows that are added out of sight are counted by the scroll bar so often: each time lays the screen out anew."""
_WIDE = 116
"""Cells from which the columns of a wide table have room."""


@dataclass(frozen=True)
class _Column:
    title: str
    width: int
    order: Order | None = None
    """The order that a click on the title sorts by."""
    right: bool = False
    wide: bool = False


_COLUMNS = (
    _Column("trial", 7, Order.NUMBER, right=True),
    _Column("µs", 11, Order.LATENCY, right=True),
    _Column("cycles", 12, Order.LATENCY, right=True, wide=True),
    _Column("% of bound", 10, Order.LATENCY, right=True, wide=True),
    _Column("outcome", 12, Order.OUTCOME),
    _Column("reason", 17, Order.OUTCOME),
    _Column("board", 16, wide=True),
    _Column("configuration", 120),
)


class TrialsTable(ScrollView, can_focus=True):
    """While the cursor is on the last trial it stays with the newest.

    Enter shows a trial's configuration, a click on a title sorts by its column.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False, tooltip="A page of trials back"),
        Binding("pagedown", "page(1)", "Page down", show=False, tooltip="A page of trials on"),
        Binding("home", "move_to(0)", "First", show=False, tooltip="The first trial"),
        Binding("end", "move_to(-1)", "Last", show=False, tooltip="The last trial; the cursor follows new ones there"),
        Binding("enter", "choose", "Configuration", show=False, tooltip="The selected trial's configuration in depth"),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "trials--header", "trials--cursor", "trials--odd", "trials--ok", "trials--rejected", "trials--fault",
    }  # fmt: skip

    @dataclass
    class Chosen(Message):
        """Enter, or a second click: the configuration of this trial is asked for."""

        index: int

    @dataclass
    class OrderAsked(Message):
        """A click on a title."""

        order: Order

    def __init__(self, trials: TrialList) -> None:
        super().__init__()
        self._trials = trials
        self._run: Run | None = None
        self._recorded = 0
        self._missing = ""
        self._cursor = 0
        self._following = True
        self._resized = 0.0

    # display

    def show(self, view: RunView) -> None:
        """Show the titles; rows come with the list and `changed`."""
        self._run = view.run
        self._recorded = view.progress.trials
        going = view.link is Link.ATTACHED and view.state is not RunState.PAUSED
        self._missing = "on its way" if going else "not measured yet"
        self.border_title = f"trials, of a space of {view.run.space_size:,}"
        self._describe()

    def changed(self) -> None:
        """Note that the list has more rows, or others."""
        last = max(len(self._trials) - 1, 0)
        self._cursor = last if self._following else min(self._cursor, last)
        if self._following or time.monotonic() - self._resized > _RESIZE_SECONDS:
            self._resize_rows()
        if self._following:
            self._show_cursor()
        self._describe()
        self.refresh()

    @property
    def cursor_row(self) -> int:
        return self._cursor

    @property
    def row_count(self) -> int:
        return len(self._trials)

    def selected_trial(self) -> Trial | None:
        return self._trials.trial(self._cursor) if len(self._trials) else None

    def selected(self) -> str | None:
        """Return the trial under the cursor as one JSON object."""
        trial = self.selected_trial()
        if trial is None:
            return None
        names = ("ordinal", "index", "knobs", "outcome", "reason", "cycles", "microseconds", "verified")
        return json.dumps({name: getattr(trial, name) for name in names} | {"knobs": dict(trial.knobs)})

    def move_to(self, row: int) -> None:
        """Put the cursor on a trial."""
        before = self._cursor
        if self.virtual_size.height != len(self._trials) + 1:
            self._resize_rows()
        self._cursor = min(max(row, 0), max(len(self._trials) - 1, 0))
        self._following = self._cursor == len(self._trials) - 1
        self._refresh_row(before)
        self._refresh_row(self._cursor)
        self._show_cursor()

    @property
    def held(self) -> int | None:
        """The trial that the cursor is on and stays on whatever comes before it.

        None at the first row, where the best is looked at, or where new ones are followed.
        """
        return self._trials.ordinal(self._cursor) if 0 < self._cursor < len(self._trials) - 1 else None

    def hold(self, row: int) -> None:
        """Keep the cursor on the held trial, which is in `row` now. A view scrolled away from it stays there."""
        top = self.scroll_offset.y
        seen = top <= self._cursor < top + self._page_rows
        self._cursor = row
        self._resize_rows()
        if seen:
            self._show_cursor()

    # keys and mouse

    def action_move(self, rows: int) -> None:
        self.move_to(self._cursor + rows)

    def action_page(self, pages: int) -> None:
        self.move_to(self._cursor + pages * max(self._page_rows, 1))

    def action_move_to(self, row: int) -> None:
        self.move_to(row if row >= 0 else len(self._trials) - 1)

    def action_choose(self) -> None:
        trial = self.selected_trial()
        if trial is not None:
            self.post_message(self.Chosen(trial.index))

    def on_click(self, event: Click) -> None:
        place = event.get_content_offset(self)
        if place is None:
            return
        if place.y == 0:
            self._ask_order(place.x)
            return
        row = self.scroll_offset.y + place.y - 1
        if row < len(self._trials):
            self.move_to(row)
            if event.chain == 2:
                self.action_choose()

    def _ask_order(self, x: int) -> None:
        left = 0
        for column in self._columns():
            left += column.width + 1
            if x < left:
                if column.order is not None:
                    self.post_message(self.OrderAsked(column.order))
                return

    # drawing

    def on_resize(self, event: Resize) -> None:
        self._resize_rows()
        self._show_cursor()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        if y == 0:
            style = self.get_component_rich_style("trials--header")
            return Strip([Segment(self._titles(), style)]).adjust_cell_length(width, style)
        row = self.scroll_offset.y + y - 1
        if row >= len(self._trials):
            return Strip.blank(width, self.rich_style)
        style, outcome_style = self._styles(row)
        before, outcome, after = self._cells(row)
        strip = Strip([Segment(before, style), Segment(outcome, outcome_style), Segment(after, style)])
        return strip.adjust_cell_length(width, style)

    def _styles(self, row: int) -> tuple[Style, Style]:
        if row == self._cursor:
            style = self.get_component_rich_style("trials--cursor")
            return style, style
        style = self.get_component_rich_style("trials--odd") if row % 2 else self.rich_style
        trial = self._trials.trial(row)
        if trial is None:
            return style, style
        names = {Outcome.OK: "trials--ok", Outcome.REJECTED: "trials--rejected"}
        return style, style + self.get_component_rich_style(names.get(trial.outcome, "trials--fault"), partial=True)

    def _cells(self, row: int) -> tuple[str, str, str]:
        """Return the row before, in and after the column of the outcome."""
        trial = self._trials.trial(row)
        if trial is None:
            missing = "cannot be read" if self._trials.is_unreadable(row) else self._missing
            return f"{self._trials.ordinal(row):>7} {formatting.NONE:>11} {missing}", "", ""
        texts = [_fit(column, _text(column.title, trial, self._run)) for column in self._columns()]
        place = next(ordinal for ordinal, column in enumerate(self._columns()) if column.title == "outcome")
        return " ".join(texts[:place]) + " ", texts[place], " " + " ".join(texts[place + 1 :])

    def _titles(self) -> str:
        listing = self._trials.listing
        arrow = "▼" if listing.descending else "▲"
        marked = {Order.NUMBER: "trial", Order.LATENCY: "µs", Order.OUTCOME: "outcome"}[listing.order]
        return " ".join(
            _fit(column, f"{column.title}{arrow}" if column.title == marked else column.title)
            for column in self._columns()
        )

    def _columns(self) -> Sequence[_Column]:
        wide = self.scrollable_content_region.width >= _WIDE
        return [column for column in _COLUMNS if wide or not column.wide]

    @property
    def _page_rows(self) -> int:
        return self.scrollable_content_region.height - 1

    def _resize_rows(self) -> None:
        self._resized = time.monotonic()
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._trials) + 1)

    def _show_cursor(self) -> None:
        top, rows = self.scroll_offset.y, self._page_rows
        y = self._cursor if self._cursor < top else self._cursor - rows + 1
        if rows > 0 and (self._cursor < top or self._cursor >= top + rows):
            # Forced: trials that have just come to be more than fit are to be scrolled before there is a scroll bar.
            self.scroll_to(y=y, animate=False, force=True, immediate=True)
            self.vertical_scrollbar.position = self.scroll_y  # it hears of scrolling only while it is shown

    def _refresh_row(self, row: int) -> None:
        self.refresh_line(row + 1)

    def refresh_line(self, y: int) -> None:
        """Return the region of a row of the whole table; the title's line stays where it is."""
        self.refresh(Region(0, y - self.scroll_offset.y, max(self.size.width, self.virtual_size.width), 1))

    def _describe(self) -> None:
        listing = self._trials.listing
        if not len(self._trials):
            self.border_subtitle = Content("none yet" if listing.is_plain else f"none: {format_listing(listing)}")
            return
        count = f"{self._recorded:,} recorded" if listing.is_plain else f"{len(self._trials):,}"
        self.border_subtitle = Content(f"{count}, {format_listing(listing)}")


def format_listing(listing: Listing) -> str:
    """Return the selection as text, such as `failed on the board, by latency, with "acc"`."""
    parts = [str(listing.which)] if listing.which is not Which.ALL else []
    parts.append(f"by {listing.order}{', last first' if listing.descending else ''}")
    if listing.text:
        parts.append(f'with "{listing.text}"')
    return ", ".join(parts)


def _fit(column: _Column, text: str) -> str:
    cut = text if len(text) <= column.width else text[: column.width - 1] + "…"
    return cut.rjust(column.width) if column.right else cut.ljust(column.width)


def _text(title: str, trial: Trial, run: Run | None) -> str:
    match title:
        case "trial":
            return str(trial.ordinal)
        case "µs":
            return formatting.NONE if trial.microseconds is None else f"{trial.microseconds:,.1f}"
        case "cycles":
            return formatting.NONE if trial.cycles is None else f"{trial.cycles:,}"
        case "% of bound":
            known = run is not None and trial.microseconds is not None
            return f"{run.percent_of_bound(trial.microseconds):.1f}" if known else formatting.NONE  # type: ignore[union-attr,arg-type]
        case "outcome":
            return str(trial.outcome)
        case "reason":
            return trial.reason
        case "board":
            return trial.board
        case _:
            return formatting.knobs(trial.knobs)
