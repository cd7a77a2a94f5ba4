"""The screens by number, to be clicked on; the one that is shown stands out."""

from __future__ import annotations

from textual.content import Content
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
    """One line, narrower than 80 cells."""

    def __init__(self, shown: str) -> None:
        parts = []
        for place, (name, title) in enumerate(PAGES.items(), start=1):
            style = "reverse bold" if name == shown else ""
            words = Content.from_markup(f"[@click=app.page('{name}')]{place} {title}[/]")
            parts.append(words.stylize(style) if style else words)
        super().__init__(Content(" ").join([Content.styled("hilt", "bold"), *parts]))
