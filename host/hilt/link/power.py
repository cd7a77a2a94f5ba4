"""Power switches: labgrid's drivers, by configuration. The only module that imports labgrid, and only when used.

The `power` table of a board in HILT_HOME/boards.toml has the format of a target in labgrid's own configuration:

    [pynq-z2.power.resources]
    NetworkPowerPort = { model = "shelly_gen2", host = "http://192.168.2.50", index = "0" }
    [pynq-z2.power.drivers]
    NetworkPowerDriver = { delay = 5.0 }
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping
from concurrent.futures import Future, wait
from typing import Any

from hilt.link.errors import PowerError

SECONDS = 120.0
"""Longest seconds of one switching, the driver's own delay included."""
_LABGRID = threading.Lock()
"""labgrid keeps one stack of steps for the whole process: two boards of a fleet switched at once would mix it up."""


class PowerSwitch:
    """One board's switch. Raises PowerError where labgrid is missing or refuses the configuration."""

    def __init__(self, board: str, configuration: Mapping[str, Any]) -> None:
        """`configuration`: `resources` and `drivers`, each by the name of labgrid's class, with its arguments."""
        try:
            import labgrid.driver
            import labgrid.resource  # noqa: F401  both register their classes
            from labgrid.factory import target_factory
        except ImportError:
            raise PowerError("switching power needs labgrid: pip install 'hilt[power]'") from None
        self._board = board
        try:
            with _LABGRID:
                target = target_factory.make_target(board, copy.deepcopy(dict(configuration)))
                self._driver = target.get_driver("PowerProtocol")
        except Exception as error:  # of labgrid's many kinds, and those of the drivers' own libraries
            raise PowerError(f"board {board}: labgrid refuses its power configuration: {error}") from None

    def on(self) -> None:
        self._switch("on")

    def off(self) -> None:
        self._switch("off")

    def cycle(self) -> None:
        """Switch off, wait the driver's delay, switch on."""
        self._switch("cycle")

    def _switch(self, action: str) -> None:
        """Call the method `action` of the driver, in a thread that is abandoned if it takes too long.

        labgrid's drivers wait without a limit.
        """
        done: Future[None] = Future()

        def switch() -> None:
            with _LABGRID:
                if not done.set_running_or_notify_cancel():
                    return  # given up while another switch was waited for: nobody expects it any more
                try:
                    done.set_result(getattr(self._driver, action)())
                except Exception as error:
                    done.set_exception(error)

        threading.Thread(target=switch, name=f"power of {self._board}", daemon=True).start()
        kind = type(self._driver).__name__
        if not wait([done], SECONDS).done:
            done.cancel()
            raise PowerError(f"board {self._board}: {kind} did not switch power ({action}) within {SECONDS:g} s")
        error = done.exception()
        if error is not None:
            reason = str(error) or type(error).__name__
            raise PowerError(f"board {self._board}: {kind} cannot switch power ({action}): {reason}")
