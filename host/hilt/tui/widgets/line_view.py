"""Very many lines of text, of which only those that are seen are drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

Line = tuple[str, str]
"""A line and the component class of its style; an empty one is plain."""


class LineView(ScrollView, can_focus=True):
    """A line under the cursor can be copied. With `follow` it stays at the end while lines are added there."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("left", "shift(-8)", "Left", show=False),
        Binding("right", "shift(8)", "Right", show=False, tooltip="The rest of long lines; left goes back"),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "move_to(0)", "First", show=False, tooltip="The first line"),
        Binding("end", "move_to(-1)", "Last", show=False, tooltip="The last line; new ones are followed there"),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "lines--cursor", "lines--heading", "lines--good", "lines--warning", "lines--error", "lines--muted",
    }  # fmt: skip

    @dataclass
    class Highlighted(Message):
        """The line that the cursor is on now."""

        line: str

    def __init__(self, *, follow: bool = False, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[Line] = []
        self._cursor = 0
        self._following = follow

    @property
    def lines(self) -> list[str]:
        """Return the lines it holds."""
        return [text for text, _ in self._lines]

    @property
    def selected(self) -> str | None:
        """The line under the cursor."""
        return self._lines[self._cursor][0] if self._lines else None

    @property
    def cursor_row(self) -> int:
        return self._cursor

    def set_lines(self, lines: Iterable[Line | str]) -> None:
        self._lines = [(line, "") if isinstance(line, str) else line for line in lines]
        last = max(len(self._lines) - 1, 0)
        self._cursor = last if self._following else min(self._cursor, last)
        width = max((len(text) for text, _ in self._lines), default=0)
        self.virtual_size = Size(width, len(self._lines))
        self._show_cursor()
        self.refresh()
        self._tell()

    def move_to(self, row: int) -> None:
        last = max(len(self._lines) - 1, 0)
        self._cursor = min(max(row, 0), last)
        self._following = self._cursor == last
        self._show_cursor()
        self.refresh()
        self._tell()

    def _tell(self) -> None:
        if self._lines:
            self.post_message(self.Highlighted(self._lines[self._cursor][0]))

    def action_move(self, rows: int) -> None:
        self.move_to(self._cursor + rows)

    def action_shift(self, cells: int) -> None:
        self.scroll_to(x=self.scroll_offset.x + cells, animate=False, immediate=True)

    def action_page(self, pages: int) -> None:
        self.move_to(self._cursor + pages * max(self.scrollable_content_region.height, 1))

    def action_move_to(self, row: int) -> None:
        self.move_to(row if row >= 0 else len(self._lines) - 1)

    def on_resize(self, event: Resize) -> None:
        self._show_cursor()

    def on_click(self, event: Click) -> None:
        place = event.get_content_offset(self)
        if place is not None and self.scroll_offset.y + place.y < len(self._lines):
            self.move_to(self.scroll_offset.y + place.y)

    def render_line(self, y: int) -> Strip:
        left, top = self.scroll_offset
        width = self.scrollable_content_region.width
        if top + y >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        text, kind = self._lines[top + y]
        style = self.get_component_rich_style(f"lines--{kind}") if kind else self.rich_style
        if top + y == self._cursor and self.has_focus:
            style = self.get_component_rich_style("lines--cursor")
        return Strip([Segment(text, style)]).extend_cell_length(left + width, style).crop(left, left + width)

    def _show_cursor(self) -> None:
        top, rows = self.scroll_offset.y, self.scrollable_content_region.height
        y = self._cursor if self._cursor < top else self._cursor - rows + 1
        if rows > 0 and (self._cursor < top or self._cursor >= top + rows):
            # Forced: lines that have just come to be more than fit are to be scrolled before there is a scroll bar.
            self.scroll_to(y=y, animate=False, force=True, immediate=True)
