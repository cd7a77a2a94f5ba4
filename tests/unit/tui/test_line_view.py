"""Lines that are seen: the cursor's moves, scrolling, and the style of each line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Input

from hilt.tui.widgets.line_view import LineView

LINES = [f"line {number}" for number in range(50)]
HEIGHT = 10


class Lines(App[None]):
    CSS = """
    LineView { height: 1fr; scrollbar-size: 0 0; background: black; color: white; }
    LineView > .lines--cursor { background: blue; }
    LineView > .lines--error { color: red; }
    Input { dock: bottom; height: 1; border: none; }
    """

    def __init__(self, *, follow: bool = False) -> None:
        super().__init__()
        self.view = LineView(follow=follow, id="lines")
        self.told: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.view
        yield Input()

    def on_line_view_highlighted(self, message: LineView.Highlighted) -> None:
        self.told.append(message.line)


@asynccontextmanager
async def shown(lines: list[str] = LINES, *, follow: bool = False) -> AsyncIterator[tuple[Lines, Pilot[None]]]:
    app = Lines(follow=follow)
    async with app.run_test(size=(20, HEIGHT + 1)) as pilot:
        app.view.set_lines(lines)
        app.view.focus()
        await pilot.pause()
        yield app, pilot


def seen(app: Lines) -> list[str]:
    return [app.view.render_line(row).text.rstrip() for row in range(HEIGHT)]


@pytest.mark.parametrize(
    ("keys", "cursor", "first"),
    [
        ("", 0, 0),
        ("down", 1, 0),
        ("j j k", 1, 0),
        ("up", 0, 0),
        ("down " * 9, 9, 0),
        ("down " * 10, 10, 1),
        ("down " * 12 + "up " * 8, 4, 3),
        ("down " * 12 + "up " * 11, 1, 1),
        ("pagedown", 10, 1),
        ("pagedown pagedown pageup", 10, 10),
        ("end", 49, 40),
        ("end down", 49, 40),
        ("end home", 0, 0),
        ("end pageup", 39, 39),
    ],
)
async def test_the_cursor_moves_within_the_lines_and_is_seen(keys: str, cursor: int, first: int) -> None:
    async with shown() as (app, pilot):
        await pilot.press(*keys.split())
        await pilot.pause()
        assert app.view.cursor_row == cursor and app.view.selected == LINES[cursor]
        assert seen(app) == LINES[first : first + HEIGHT]
        assert app.told[-1] == LINES[cursor]


async def test_long_lines_are_moved_sideways() -> None:
    async with shown(["0123456789" * 4, "short"]) as (app, pilot):
        assert seen(app)[:2] == ["0123456789" * 2, "short"]
        await pilot.press("right")
        assert seen(app)[:2] == ["89" + "0123456789" + "01234567", ""]
        await pilot.press("right", "right", "right")
        assert seen(app)[0] == "0123456789" * 2, "the end of the longest line is the last to be seen"
        await pilot.press("left")
        assert seen(app)[0] == "23456789" + "0123456789" + "01"


@pytest.mark.parametrize("follow", [True, False])
async def test_only_a_view_that_follows_stays_at_the_end_when_lines_are_added(follow: bool) -> None:
    async with shown(LINES[:30], follow=follow) as (app, pilot):
        assert app.view.cursor_row == (29 if follow else 0)
        app.view.set_lines(LINES)
        assert app.view.cursor_row == (49 if follow else 0)
        assert seen(app) == (LINES[40:] if follow else LINES[:HEIGHT])
        await pilot.press("end", "up")
        app.view.set_lines([*LINES, "new"])
        assert app.view.selected == LINES[48], "a cursor that has left the end stays where it is"
        await pilot.press("end")
        app.view.set_lines([*LINES, "new", "newer"])
        assert app.view.selected == "newer", "at the end it follows"


async def test_a_cursor_behind_the_last_line_goes_to_it() -> None:
    async with shown() as (app, pilot):
        await pilot.press("end", "up")
        app.view.set_lines(LINES[:5])
        assert app.view.selected == "line 4" and app.view.lines == LINES[:5]
        app.view.set_lines([])
        assert app.view.selected is None and app.view.cursor_row == 0 and app.view.lines == []
        await pilot.pause()
        app.told.clear()
        await pilot.press("down", "end", "pagedown")
        assert app.view.cursor_row == 0 and app.told == [] and seen(app) == [""] * HEIGHT


async def test_a_click_chooses_the_line_under_it() -> None:
    async with shown() as (app, pilot):
        await pilot.press(*["down"] * 12)
        await pilot.click(LineView, offset=(2, 4))
        assert app.view.selected == "line 7" and seen(app)[0] == "line 3"
        app.view.set_lines(LINES[:3])
        await pilot.pause()
        before = app.view.selected
        await pilot.click(LineView, offset=(2, 4))
        assert app.view.selected == before, "there is no line"


async def test_a_line_has_its_style_and_the_cursor_its_own_while_it_has_the_focus() -> None:
    async with shown() as (app, pilot):
        app.view.set_lines(["plain", ("bad", "error"), "last"])

        def colours(row: int) -> tuple[str, str]:
            styles = [segment.style for segment in app.view.render_line(row) if segment.style is not None]
            names = {
                (str(style.color and style.color.name), str(style.bgcolor and style.bgcolor.name)) for style in styles
            }
            assert len(names) == 1, "to the end of the row"
            return names.pop()

        plain, bad = colours(2), colours(1)
        assert colours(0)[1] != plain[1] and bad[0] != plain[0] and bad[1] == plain[1]
        assert all(app.view.render_line(row).cell_length == 20 for row in range(HEIGHT))
        await pilot.press("down")
        assert colours(0) == plain and colours(1)[1] != bad[1]
        app.query_one(Input).focus()
        await pilot.pause()
        assert colours(1) == bad


async def test_the_cursor_is_seen_in_a_window_that_has_become_lower() -> None:
    async with shown() as (app, pilot):
        await pilot.press(*["down"] * 9)
        await pilot.resize_terminal(20, 5)
        await pilot.pause()
        assert app.view.render_line(3).text.strip() == "line 9"
