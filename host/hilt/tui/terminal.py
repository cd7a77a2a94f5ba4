"""The check for a terminal that the interface can be drawn on and steered from."""

from __future__ import annotations

import codecs
import os
import sys

from hilt.engine.errors import SettingsError

_INSTEAD = "`hilt show RUN` prints a run, `hilt tui --web` serves a browser"


def check_terminal() -> None:
    """Raise SettingsError unless the terminal can be used.

    Textual reads keys from standard input and draws on standard error.
    """
    if "TEXTUAL_DRIVER" in os.environ:  # textual-serve's: a browser draws the screen
        return
    keys, screen = sys.__stdin__, sys.__stderr__
    if keys is None or screen is None or not (keys.isatty() and screen.isatty()):
        raise SettingsError(f"`hilt tui` needs a terminal for its keys and its screen; {_INSTEAD}")
    if os.environ.get("TERM") == "dumb":
        raise SettingsError(f"TERM is dumb: nothing can be drawn on such a terminal; {_INSTEAD}")
    if codecs.lookup(screen.encoding).name != "utf-8":
        raise SettingsError(
            f"the locale's encoding is {screen.encoding}, and `hilt tui` draws in UTF-8; set LC_ALL=C.UTF-8"
        )
