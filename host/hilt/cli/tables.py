"""Tables that fit the terminal: columns leave by priority, and no number or id is ever folded or cut.

A table is built with `table("run", ">trials", column("begun", drop=2))` and printed with `console().print(table)`. On a
terminal it takes the width there is; in a file or a pipe it has every column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table as RichTable

_WIDTH_IN_FILES = 240
_GAP, _WIDE_GAP = 1, 2
_LEAST_WRAPPED = 28
_LEAST_CUT = 10


@dataclass(frozen=True)
class Column:
    """One column: its title, and how it shrinks on a narrow terminal.

    Attributes:
        title: The header.
        number: Whether it is right-aligned.
        drop: 0 stays always; of the others the highest leaves first, and of equals the rightmost.
        wraps: Whether its text may go on in the next line, at spaces only.
        cuts: Whether a long text may end in an ellipsis. Never for a number or an id.
    """

    title: str
    number: bool = False
    drop: int = 0
    wraps: bool = False
    cuts: bool = False


def column(title: str, *, drop: int = 0, wraps: bool = False, cuts: bool = False) -> Column:
    """Return a column; a title that begins with > holds numbers."""
    return Column(title.removeprefix(">"), title.startswith(">"), drop, wraps, cuts)


class Table:
    """Rows of text under columns, laid out when it is printed."""

    def __init__(self, columns: Iterable[Column], header: bool = True) -> None:
        self._columns = tuple(columns)
        self._header = header
        self._rows: list[tuple[str, ...]] = []

    def add_row(self, *cells: str) -> None:
        """Add a row with one cell for each column; cells that are missing at the end are empty."""
        assert len(cells) <= len(self._columns), f"{len(cells)} cells for {len(self._columns)} columns"
        self._rows.append((*cells, *[""] * (len(self._columns) - len(cells))))

    @property
    def row_count(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def shown(self, width: int) -> list[int]:
        """Return the places of the columns that fit in `width` characters, in order."""
        shown = list(range(len(self._columns)))
        while self._least_width(shown) > width:
            can_leave = [place for place in shown if self._columns[place].drop]
            if not can_leave:
                break
            shown.remove(max(can_leave, key=lambda place: (self._columns[place].drop, place)))
        return shown

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[RichTable | str]:
        """Yield the table at the console's width, and the names of the columns that did not fit."""
        shown = self.shown(options.max_width)
        yield self._laid_out(shown, options.max_width)
        left_out = [self._columns[place].title for place in range(len(self._columns)) if place not in shown]
        if left_out and self._rows:
            yield f"(no room for: {', '.join(left_out)}; a wider terminal, a pipe or --json has them)"

    def _laid_out(self, shown: list[int], width: int) -> RichTable:
        from rich.table import Table as RichTable

        natural = sum(map(self._natural, shown))
        gap = _WIDE_GAP if natural + _WIDE_GAP * (len(shown) - 1) <= width else _GAP
        made = RichTable(box=None, show_header=self._header, pad_edge=False, padding=(0, gap, 0, 0))
        made.header_style = "bold"
        widths = self._widths(shown, width)
        for place in shown:
            info = self._columns[place]
            made.add_column(
                info.title,
                justify="right" if info.number else "left",
                no_wrap=not info.wraps,
                overflow="ellipsis" if info.cuts else "fold",
                min_width=None if info.wraps or info.cuts else widths[place],
                max_width=widths[place] if info.wraps or info.cuts else None,
            )
        for row in self._rows:
            made.add_row(*(row[place] for place in shown))
        return made

    def _widths(self, shown: list[int], width: int) -> dict[int, int]:
        """Return each shown column's width; columns that can shrink share the rest of the width."""
        widths = {place: self._natural(place) for place in shown}
        over = sum(widths.values()) + _GAP * (len(shown) - 1) - width
        for place in sorted(shown, key=lambda place: -widths[place]):
            if over > 0 and self._shrinks(place):
                taken = min(over, widths[place] - self._least(place))
                widths[place] -= taken
                over -= taken
        return widths

    def _least_width(self, shown: list[int]) -> int:
        return sum(self._least(place) for place in shown) + _GAP * (len(shown) - 1)

    def _shrinks(self, place: int) -> bool:
        return self._columns[place].wraps or self._columns[place].cuts

    def _least(self, place: int) -> int:
        natural = self._natural(place)
        if self._columns[place].wraps:
            return min(natural, max([_LEAST_WRAPPED, *(self._width(word) for word in self._words(place))]))
        return min(natural, _LEAST_CUT) if self._columns[place].cuts else natural

    def _words(self, place: int) -> list[str]:
        return [word for row in self._rows for word in row[place].split()]

    def _natural(self, place: int) -> int:
        title = [self._columns[place].title] if self._header else []
        return max((self._width(text) for text in [*title, *(row[place] for row in self._rows)]), default=0)

    @staticmethod
    def _width(text: str) -> int:
        from rich.cells import cell_len

        return cell_len(text)


def console() -> Console:
    """Return a console on standard output: as wide as the terminal, or wide enough for any table in a file."""
    from hilt.cli.plain_console import PlainConsole

    made = PlainConsole(highlight=False, markup=False)
    if not made.is_terminal:
        made.width = _WIDTH_IN_FILES
    return made


def table(*columns: str | Column, header: bool = True) -> Table:
    """Return an empty table.

    Of columns named by text alone the first stays, and the others leave from the right. Without columns it holds
    facts: a name, and a value that wraps.
    """
    columns = columns or ("", column("", wraps=True))
    return Table(
        (
            info if isinstance(info, Column) else column(info, drop=1 if place else 0)
            for place, info in enumerate(columns)
        ),
        header,
    )
