"""The claims of the four papers and of hilt, and whether hilt's figures bear them out."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from hilt_experiments.bench import ClaimComparison

_FILE = Path(__file__).with_name("claims.toml")
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")


class State(StrEnum):
    """A claim's state by the figure of hilt."""

    REPRODUCED = "reproduced"
    PARTLY = "partly"
    NOT = "not reproduced"
    NOT_RUN = "not run"
    NOT_BUILT = "not built"


@dataclass(frozen=True)
class Claim:
    """A claim; `claims.toml` describes the fields."""

    of: str
    figure: str
    paper: str
    experiment: str = ""
    number: int = 0
    reproduced: Sequence[float] = ()
    partly: Sequence[float] = ()
    order: str = ""
    cause: str = ""

    def state(self, ours: str) -> State:
        """Return whether the claim holds by hilt's text; without the number in it the claim is not reproduced."""
        numbers = [float(text.replace(",", "")) for text in _NUMBER.findall(ours)]
        if self.order == "falls":
            return State.REPRODUCED if len(numbers) > 1 and numbers[1] < numbers[0] else State.NOT
        try:
            number = numbers[self.number]
        except IndexError:
            return State.NOT
        for state, limits in ((State.REPRODUCED, self.reproduced), (State.PARTLY, self.partly)):
            if limits and limits[0] <= number <= limits[1]:
                return state
        return State.NOT


@dataclass(frozen=True)
class Judgement:
    """A claim beside hilt's figure."""

    claim: Claim
    ours: str
    state: State
    cause: str
    command: str


@cache
def claims() -> tuple[Claim, ...]:
    """Return the claims in the order of the page."""
    found: list[dict[str, Any]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))["claim"]
    return tuple(Claim(**each) for each in found)


def judge(
    held: Mapping[str, Sequence[ClaimComparison]], absent: Mapping[str, str], commands: Mapping[str, str]
) -> list[Judgement]:
    """Return every claim with its state.

    `held` are the comparisons of the experiments that ran, `absent` the reasons of the others, `commands` how each is
    run; all by the experiment's name.
    """
    return [_judgement(each, held, absent, commands.get(each.experiment, "")) for each in claims()]


def _judgement(
    claim: Claim, held: Mapping[str, Sequence[ClaimComparison]], absent: Mapping[str, str], command: str
) -> Judgement:
    if not claim.experiment:
        return Judgement(claim, "", State.NOT_BUILT, claim.cause, "")
    if claim.experiment not in held:
        return Judgement(claim, "", State.NOT_RUN, absent.get(claim.experiment, "not run yet"), command)
    found = [each for each in held[claim.experiment] if each.claim.startswith(claim.figure)]
    if not found:
        return Judgement(claim, "", State.NOT_RUN, "the run has no such layer, level or tuner", command)
    state = claim.state(found[0].ours)
    return Judgement(claim, found[0].ours, state, "" if state is State.REPRODUCED else claim.cause, command)
