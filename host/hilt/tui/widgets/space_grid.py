"""The grid of a space; only the visible part is drawn. A cursor says which configuration a cell is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from hilt.tui.space_picture import FIRST_LEVEL, GLYPHS, LEVELS, Unfolding

_PAGE = 10


class SpaceGrid(ScrollView, can_focus=True):
    """Arrows move by a cell, Page Up and Page Down by ten rows, Home and End along the row.

    Enter and a second click choose.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(0,-1)", "Up", show=False),
        Binding("down", "move(0,1)", "Down", show=False),
        Binding("left", "move(-1,0)", "Left", show=False),
        Binding("right", "move(1,0)", "Right", show=False),
        Binding("pageup", f"move(0,-{_PAGE})", "Page up", show=False),
        Binding("pagedown", f"move(0,{_PAGE})", "Page down", show=False),
        Binding("home", "move(-1000000,0)", "Row's begin", show=False),
        Binding("end", "move(1000000,0)", "Row's end", show=False),
        Binding("enter", "choose", "Configuration", show=False, tooltip="The configuration under the cursor in depth"),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "space--cursor", "space--accepted", "space--failed", "space--best",
        *(f"space--level{level}" for level in range(LEVELS)),
    }  # fmt: skip

    @dataclass
    class Moved(Message):
        """The cursor is on this configuration now."""

        index: int

    @dataclass
    class Chosen(Message):
        index: int

    def __init__(self) -> None:
        super().__init__()
        self._unfolding: Unfolding | None = None
        self._grid: NDArray[np.int8] = np.zeros((0, 0), dtype=np.int8)
        self._column = self._row = 0

    def show(self, unfolding: Unfolding, cells: NDArray[np.int8]) -> None:
        """Set the kind of each configuration (configurations,)."""
        self._unfolding = unfolding
        self._grid = unfolding.grid(cells)
        self.virtual_size = Size(unfolding.width, unfolding.height)
        self.refresh()

    @property
    def index(self) -> int | None:
        """The one under the cursor."""
        return None if self._unfolding is None else self._unfolding.index(self._column, self._row)

    def go_to(self, index: int) -> None:
        if self._unfolding is not None:
            self._move_to(*self._unfolding.place(index))

    def action_move(self, columns: int, rows: int) -> None:
        self._move_to(self._column + columns, self._row + rows)

    def action_choose(self) -> None:
        if self.index is not None:
            self.post_message(self.Chosen(self.index))

    def on_click(self, event: Click) -> None:
        place = event.get_content_offset(self)
        if place is None:
            return
        column, row = place.x + self.scroll_offset.x, place.y + self.scroll_offset.y
        if row < self._grid.shape[0] and column < self._grid.shape[1]:
            self._move_to(column, row)
            if event.chain == 2:
                self.action_choose()

    def _move_to(self, column: int, row: int) -> None:
        if self._unfolding is None:
            return
        self._column = min(max(column, 0), self._unfolding.width - 1)
        self._row = min(max(row, 0), self._unfolding.height - 1)
        self.scroll_to_region(Region(self._column, self._row, 1, 1), animate=False, immediate=True)
        self.refresh()
        self.post_message(self.Moved(self._unfolding.index(self._column, self._row)))

    def render_line(self, y: int) -> Strip:
        left, top = self.scroll_offset
        width = self.scrollable_content_region.width
        row = top + y
        if row >= self._grid.shape[0]:
            return Strip.blank(width, self.rich_style)
        kinds = self._grid[row, left : left + width]
        segments = []
        for run in np.split(kinds, np.flatnonzero(np.diff(kinds)) + 1):
            if len(run):
                segments.append(Segment(GLYPHS[int(run[0])] * len(run), self._style(int(run[0]))))
        strip = Strip(segments, len(kinds))
        if row == self._row and left <= self._column < left + len(kinds):
            strip = self._with_cursor(strip, self._column - left, GLYPHS[int(self._grid[row, self._column])])
        return strip.adjust_cell_length(width, self.rich_style)

    def _with_cursor(self, strip: Strip, x: int, glyph: str) -> Strip:
        style = self.get_component_rich_style("space--cursor")
        cursor = Strip([Segment(glyph if glyph != " " else "□", style)], 1)
        return Strip.join([strip.crop(0, x), cursor, strip.crop(x + 1)])

    def _style(self, kind: int) -> Style:
        names = ["", "space--accepted", "space--failed", "space--best"]
        if kind >= FIRST_LEVEL:
            return self.get_component_rich_style(f"space--level{kind - FIRST_LEVEL}")
        return self.get_component_rich_style(names[kind]) if names[kind] else self.rich_style
