"""Print an SVG of a run as the TUI shows it, for tests and for people.

python -m tests.unit.tui.screenshot HOME RUN COLUMNS LINES [light]
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from hilt.tui.screens.run_screen import RunScreen

from .live import app_of, text_of, until


async def main(home: str, uuid: str, columns: str, lines: str, theme: str = "dark") -> None:
    with app_of(Path(home), uuid) as app:
        async with app.run_test(size=(int(columns), int(lines))) as pilot:
            app.theme = f"textual-{theme}"
            await until(pilot, lambda: isinstance(app.screen, RunScreen) and app.screen.view is not None)
            await until(pilot, lambda: "reading the store" not in text_of(pilot))
            await pilot.pause(0.5)  # events that came with the attachment, and their repaint
            print(app.export_screenshot())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
