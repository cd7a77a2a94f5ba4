"""Plain tables: on a terminal as wide as it is, elsewhere as wide as they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod
    from rich.table import Table

_WIDTH_IN_FILES = 240


def console() -> Console:
    from hilt.cli.plain_console import PlainConsole

    made = PlainConsole(highlight=False, markup=False)
    if not made.is_terminal:
        made.width = _WIDTH_IN_FILES
    return made


def table(*columns: str, header: bool = True) -> Table:
    """Columns whose name begins with > are numbers; the first, which names the row, is never cut."""
    from rich.table import Table

    made = Table(box=None, show_header=header, pad_edge=False, header_style="bold")
    for place, column in enumerate(columns):
        justify: JustifyMethod = "right" if column.startswith(">") else "left"
        made.add_column(column.removeprefix(">"), justify=justify, overflow="fold", no_wrap=place == 0)
    return made
