"""Runs of tuners on machines of another structure, in files: one for each space, tuner and seed.

A file is known by everything that its runs depend on. The tuner hilt alone asks the timing models, so a change of
these makes only its runs anew.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Sequence
from functools import lru_cache

from hilt.measure.dataset import Dataset, DatasetKey
from hilt.run_choices import CheckLevel
from hilt.simulator.build import design_key
from hilt.tune import Feedback, Tuner
from hilt.tune.metrics import trials_to_within
from hilt_experiments.contenders import Contender, code_of
from hilt_experiments.datasets import subject
from hilt_experiments.drawn_worlds import drawn_worlds
from hilt_experiments.foreign_worlds import WORLDS, World, foreign_datasets, worlds_with_factors
from hilt_experiments.problem import SharedTuningProblem
from hilt_experiments.replay import Answers, Protocol, replay
from hilt_experiments.shards import Row, Shard

PROTOCOL = Protocol(trials=750, batch=8)
_TO_OPTIMUM = Protocol(trials=750, batch=8, until_optimum=True)
NEAR = 0.01
_BLOCK = 4
"""Seeds of a space and tuner that follow each other: its worlds and predictions are then computed once."""
_OWN = "hilt"
FACTORS = "factors"
"""Stands for worlds whose configurations have factors of their own. Each run's seed draws other factors."""


def shards_of(
    subjects: Sequence[DatasetKey], contenders: Sequence[Contender], seeds: int, drawn: int | str | None = None
) -> list[Shard]:
    """Return the shards of seeds 0..seeds-1: the first seeds of all spaces and tuners come first.

    The worlds are the named ones, those of the generator's seed `drawn`, or FACTORS.
    """
    more = () if drawn is None else (drawn,)
    shards = []
    for first in range(0, seeds, _BLOCK):
        for of in subjects:
            for contender in contenders:
                facts = facts_of(of, contender)
                for seed in range(first, min(first + _BLOCK, seeds)):
                    arguments = (of.workload.name, str(of.checks), described(contender), seed, facts, *more)
                    shards.append(Shard("foreign", runs_on_worlds, (), arguments, False))
    return shards


def described(contender: Contender) -> str:
    """Return a contender as text, for a shard's arguments."""
    described = {"label": contender.label, "tuner": contender.tuner, "options": dict(contender.options)}
    return json.dumps(described, sort_keys=True)


@lru_cache(maxsize=256)
def facts_of(of: DatasetKey, contender: Contender) -> str:
    """Return a hash of everything that runs depend on besides their arguments and this module."""
    of_the_home_board = ("memory", "timing_design")
    facts = {name: value for name, value in of.identity.items() if name not in of_the_home_board}
    facts |= {
        "tuner": contender.code(),
        "worlds": code_of("hilt_experiments.foreign_worlds") + code_of("hilt_experiments.drawn_worlds"),
    }
    if contender.tuner == _OWN:
        facts |= {form: design_key(of.accelerator, form) for form in ("timing", "machine")}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def runs_on_worlds(
    subjects: Sequence[DatasetKey],
    workload: str,
    checks: str,
    described: str,
    seed: int,
    facts: str,
    drawn: int | str | None = None,
) -> list[Row]:
    """Return a row for each world: the trials to 1 % and to the best, the stated confidence, and its error.

    `subjects` are none: the worlds are computed. Runs of other `facts` are other rows.
    """
    fields = json.loads(described)
    contender = Contender.of(fields["tuner"], fields["label"], **fields["options"])
    of = subject(workload, checks=CheckLevel(checks))
    problem = problem_of(of)
    rows = []
    worlds = worlds_of(drawn, seed)
    families = {world.name: world.family for world in worlds}
    for world, dataset in foreign_datasets(of, worlds).items():
        row = {"level": checks, "workload": workload, "world": world, "family": families[world]}
        rows.append(row | {"tuner": contender.label, "seed": seed} | one_run(contender, problem, dataset, seed))
    return rows


def worlds_of(drawn: int | str | None, seed: int) -> tuple[World, ...]:
    """Return a run's worlds: the named ones, of the generator's seed `drawn`, or of the run's seed with FACTORS."""
    if drawn is None:
        return tuple(WORLDS.values())
    return worlds_with_factors(seed) if drawn == FACTORS else drawn_worlds(int(drawn))


@lru_cache(maxsize=1)
def problem_of(of: DatasetKey) -> SharedTuningProblem:
    """Return the problem that runs of one space share."""
    return SharedTuningProblem.of_subject(of)


def one_run(contender: Contender, problem: SharedTuningProblem, dataset: Dataset, seed: int) -> Row:
    """Return one run's figures; empty where there is none. Runs of other tuners than hilt end at the optimum."""
    started = time.process_time()
    tuner = contender.make(problem, seed)
    watched = _Watched(tuner, dataset) if hasattr(tuner, "assessment") else None
    protocol = PROTOCOL if contender.tuner == _OWN else _TO_OPTIMUM
    indices = replay(watched or tuner, dataset, protocol, Answers(dataset)).indices
    latencies = dataset.microseconds[indices]
    best = float(latencies.min(initial=math.inf))
    stated = tuner.assessment() if hasattr(tuner, "assessment") else None
    return {
        "trials": len(indices),
        "to_1%": trials_to_within(latencies.tolist(), dataset.optimum, NEAR),
        "to_0%": trials_to_within(latencies.tolist(), dataset.optimum, 0.0),
        "within_1%": int((dataset.microseconds <= (1 + NEAR) * dataset.optimum).sum()),
        "invalid": int((~dataset.valid[indices]).sum()),
        "confidence": None if stated is None else stated.confidence,
        "stop": None if stated is None else str(stated.stop),
        "off": best / dataset.optimum - 1 if math.isfinite(best) else None,
        "seconds": round(time.process_time() - started, 3),
        "batches": [] if watched is None else watched.stated,
    }


class _Watched:
    """A tuner whose confidence is noted after each batch: the next question would compute it too."""

    def __init__(self, tuner: Tuner, dataset: Dataset) -> None:
        self._tuner = tuner
        self._dataset = dataset
        self._best = math.inf
        self.stated: list[tuple[float, int]] = []
        """The confidence after each batch, and 1 if the best measured was within 1 % of the optimum."""

    def ask(self, count: int) -> list[int]:
        return self._tuner.ask(count)

    def tell(self, feedback: Sequence[Feedback]) -> None:
        self._tuner.tell(feedback)
        self._best = min([self._best, *(item.microseconds for item in feedback if item.microseconds is not None)])
        confidence = self._tuner.confidence()  # type: ignore[attr-defined]
        if confidence is not None:
            right = self._best <= (1 + NEAR) * self._dataset.optimum
            self.stated.append((round(confidence, 5), int(right)))
