"""The budget of a campaign: a number of trials, or a time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hilt.engine.errors import SettingsError

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}
_TIME = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")
_MOST_DIGITS = 18
"""Digits of the largest number in the database."""
_MOST_SECONDS = 1e9
"""Thirty years."""


@dataclass(frozen=True)
class Budget:
    """Trials or seconds, exactly one of both.

    Trials count whatever their outcome, rejected ones included. Seconds are of the engine's wall clock over all
    sessions, without pauses. With trials a campaign is the same whenever it is made again with the same seed on a
    deterministic board; with seconds its extent depends on the machine.
    """

    trials: int | None = None
    seconds: float | None = None

    def to_dict(self) -> dict[str, float]:
        """Plain, as hilt.store.Campaign has it."""
        return {"trials": self.trials} if self.trials is not None else {"seconds": self.seconds or 0.0}

    @classmethod
    def from_dict(cls, values: Mapping[str, float]) -> Budget:
        return cls(int(values["trials"])) if "trials" in values else cls(seconds=float(values["seconds"]))

    def __str__(self) -> str:
        if self.trials is not None:
            return f"{self.trials} trials"
        left = self.seconds or 0.0
        words = []
        for unit, size in _UNITS.items():
            count, left = divmod(left, size) if unit != "s" else (left, 0.0)
            words += [f"{count:g}{unit}"] if count else []
        return "".join(words) or "0s"


def parse_budget(text: str) -> Budget:
    """`200` trials, or a time: `2h`, `90m`, `1h30m`, `45s`. Raises SettingsError."""
    wanted = text.strip().lower().replace(" ", "")
    if wanted.isdecimal() and len(wanted) <= _MOST_DIGITS and int(wanted) > 0:
        return Budget(trials=int(wanted))
    found = _TIME.fullmatch(wanted)
    seconds = sum(float(count or 0) * size for count, size in zip(found.groups(), _UNITS.values(), strict=True)) \
        if found else 0.0  # fmt: skip
    if not 0 < seconds <= _MOST_SECONDS:
        raise SettingsError(f"budget {text!r} is neither a number of trials, as 200, nor a time, as 2h, 90m or 1h30m")
    return Budget(seconds=seconds)
