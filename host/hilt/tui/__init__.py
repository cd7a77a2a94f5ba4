"""The terminal user interface: a client of the store and of the engine's process.

It decides nothing about a run, and closing it stops nothing. `screens/` has one screen a file, `widgets/` their
parts, `hilt.tcss` the looks.
"""

from __future__ import annotations

import codecs
import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path

_INSTEAD = "`hilt show RUN` prints a run, `hilt tui --web` serves a browser"


def run(home: Path, identifier: str | None = None, before_drawing: Callable[[], None] = lambda: None) -> None:
    """Show a run or a campaign (uuid, its beginning, or `last`), else the live or the newest one, until it is closed.

    `before_drawing` is called when all is loaded and the terminal will be drawn on.

    Raises UnknownRunError, StoreError, SettingsError for a terminal that cannot show it, RuntimeError when it broke
    down, after its traceback. Textual is loaded here and not before.
    """
    gc.disable()  # starting makes very much and drops little: a quarter of its time; the app enables it again
    from hilt.store import Store, database_path
    from hilt.store.identifiers import run_or_campaign

    check_terminal()
    from hilt.tui.app import HiltApp

    with Store(database_path(home)) as store:
        record = run_or_campaign(store, identifier) if identifier else None
        app = HiltApp(home, store, record)
        before_drawing()
        app.run()
    if app.failure is not None:
        raise app.failure
    if app.return_code:
        raise RuntimeError("the terminal UI broke down, as told above; runs go on")


def check_terminal() -> None:
    """Raise SettingsError unless the terminal can be used.

    Textual reads keys from standard input and draws on standard error.
    """
    from hilt.engine.errors import SettingsError

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
