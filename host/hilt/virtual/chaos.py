"""Injected faults: the trials of a virtual board that get one, and its kind.

`virtual:pynq?rate=0.1&seed=1&kinds=hang+freeze` is such a board. Its own worker injects the faults
(hilt_virtual_board.chaos); this module reads the notation. The fault of a trial depends on the seed and on the trial's
number alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hilt.virtual.errors import BoardNameError

KINDS = {
    "hang": "the accelerator stands still",
    "worker_crash": "the process that owns the device is killed",
    "daemon_crash": "the agent's daemon is killed",
    "link_drop": "the connection ends in the middle of a frame",
    "ssh_gone": "the SSH server dies with all its connections, and is started again",
    "wrong_output": "one byte of the output differs from the accelerator's",
    "freeze": "nothing on the board moves any more; only its power switch helps",
    "slow_reboot": "the board starts anew and takes its time",
    "full_disk": "the result cannot be kept, for there is no room on the board's disk for a while",
    "clock_jump": "the board's clock jumps by a day",
    "out_of_memory": "a leak takes all contiguous memory of the worker",
    "forged_key": "the agent answers with the result of another trial",
    "impossible_counter": "the cycle counter stands still while the program runs",
    "escape_sequences": "the reason of the result holds escape sequences",
}


@dataclass(frozen=True)
class Chaos:
    """The settings of injected faults. Raises BoardNameError for an impossible value."""

    rate: float = 0.1
    """Share of the trials that have a fault, each once, and never when it is tried again to confirm a verdict."""
    seed: int = 0
    kinds: tuple[str, ...] = tuple(KINDS)
    again: bool = False
    """Trials with a fault have it each time, as by a program that does it."""
    boot_seconds: float = 20.0
    """Additional seconds of a slow reboot."""

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1:
            raise BoardNameError(f"chaos: rate is {self.rate}; it must be from 0 to 1")
        if not 0 <= self.boot_seconds <= 50:
            raise BoardNameError(f"chaos: boot_seconds is {self.boot_seconds}; it must be from 0 to 50")
        for kind in self.kinds:
            if kind not in KINDS:
                raise BoardNameError(f"chaos: no kind {kind!r}; there are {', '.join(KINDS)}")


_READERS: dict[str, Callable[[str], Any]] = {
    "rate": float,
    "seed": int,
    "kinds": lambda text: tuple(text.split("+")),
    "again": lambda text: bool(int(text)),
    "boot_seconds": float,
}


def parse_chaos(text: str) -> Chaos:
    """Parse `rate=0.1,seed=1,kinds=hang+freeze` from an option, or the same with & between from a board's name.

    Raises BoardNameError.
    """
    values = {}
    for part in text.replace("&", ",").split(","):
        name, _, value = part.partition("=")
        if name not in _READERS:
            raise BoardNameError(f"chaos: {part!r} is none of {', '.join(f'{reader}=' for reader in _READERS)}")
        try:
            values[name] = _READERS[name](value)
        except ValueError:
            raise BoardNameError(f"chaos: {value!r} is no value of {name}") from None
    return Chaos(**values)
