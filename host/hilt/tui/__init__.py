"""The terminal user interface: a client of the store and of the engine's process.

It decides nothing about a run, and closing it stops nothing. `screens/` has one screen a file, `widgets/` one panel
a file, `hilt.tcss` the looks.
"""

from __future__ import annotations

import gc
from pathlib import Path


def run(home: Path, identifier: str | None = None) -> None:
    """Show a run or a campaign (uuid, its beginning, or `last`), else the live or the newest one, until it is closed.

    Raises UnknownRunError, StoreError, SettingsError for a terminal that cannot show it, RuntimeError when it broke
    down, after its traceback. Textual is loaded here and not before.
    """
    gc.disable()  # starting makes very much and drops little: a quarter of its time; the app enables it again
    from hilt.store import Store, database_path
    from hilt.store.identifiers import run_or_campaign
    from hilt.tui.terminal import check_terminal

    check_terminal()
    from hilt.tui.app import HiltApp

    with Store(database_path(home)) as store:
        record = run_or_campaign(store, identifier) if identifier else None
        app = HiltApp(home, store, record)
        app.run()
    if app.failure is not None:
        raise app.failure
    if app.return_code:
        raise RuntimeError("the terminal UI broke down, as told above; runs go on")
