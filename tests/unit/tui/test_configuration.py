"""The screen of one configuration, once it has another one to say something of."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.tui.screens.configuration_screen import ConfigurationScreen
from hilt.tui.widgets.line_view import LineView

from .live import app_of, text_of, until
from .test_screens import real_run


async def test_an_unexplained_configuration_clears_the_earlier_explanation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configuration without an explanation leaves nothing of the one before.

    Otherwise the old instructions would stand at its side, and the old knobs would be copied.
    """
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    run = real_run(tmp_path)
    with app_of(tmp_path, run.uuid) as app:
        async with app.run_test(size=(160, 40)) as pilot:
            await until(pilot, lambda: "STOPPED" in text_of(pilot))
            await pilot.press("5")
            await until(pilot, lambda: isinstance(app.screen, ConfigurationScreen) and app.screen.explained is not None)
            screen = app.screen
            assert isinstance(screen, ConfigurationScreen)
            assembly = screen.query_one("#assembly", LineView)
            await until(pilot, lambda: any("LOAD" in line for line in assembly.lines))
            screen.watched.index = 99_999_999
            screen.take(())
            await until(pilot, lambda: "is not in the space" in text_of(pilot))
            assert assembly.lines == []
            await pilot.press("c")
            await pilot.pause()
            assert app.clipboard == ""
