"""The screens by number, to be clicked on; the one that is shown stands out."""

from __future__ import annotations

from textual.content import Content
from textual.events import Resize
from textual.widgets import Static

PAGES = {
    "campaign": "Campaign",
    "run": "Run",
    "board": "Board",
    "space": "Space",
    "configuration": "Config",
    "log": "Log",
    "runs": "Runs",
    "network": "Network",
}
"""Name and title of each screen; its place, from 1, is its key."""


class NavigationBar(Static):
    """One line, narrower than 80 cells. Where it does not fit, only the shown screen has its title."""

    def __init__(self, shown: str) -> None:
        self._of = shown
        super().__init__(_line(shown, whole=True))

    def on_resize(self, event: Resize) -> None:
        whole = _line(self._of, whole=True)
        self.update(whole if whole.cell_length <= event.size.width else _line(self._of, whole=False))


def _line(shown: str, *, whole: bool) -> Content:
    """Return the screens with their titles, or but for the shown one their numbers."""
    parts = []
    for place, (name, title) in enumerate(PAGES.items(), start=1):
        text = f"{place} {title}" if whole or name == shown else f" {place} "
        words = Content.from_markup(f"[@click=app.page('{name}')]{text}[/]")
        parts.append(words.stylize("reverse bold") if name == shown else words)
    return Content(" ").join([Content.styled("hilt", "bold"), *parts])
