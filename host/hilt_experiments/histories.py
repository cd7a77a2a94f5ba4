"""The data for transfer learning: a sample of other workloads' datasets, as a history file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hilt import paths
from hilt.measure.dataset import DatasetKey
from hilt.trial import Outcome
from hilt.tune.history import History, WorkloadHistory
from hilt_experiments.datasets import dataset_of
from hilt_experiments.replay import Answers


def history_of(sources: Sequence[DatasetKey], samples: int, seed: int = 0, *, lowered_only: bool = False) -> Path:
    """Return a file with `samples` configurations drawn uniformly from all of these datasets together, valid or not.

    With `lowered_only` those that the compiler rejects are dropped after the draw, as HW-aware's authors do.
    """
    names = " ".join(sorted(source.key for source in sources))
    facts = f"{names} {samples} {seed}{' lowered' if lowered_only else ''}"
    digest = hashlib.sha256(facts.encode()).hexdigest()
    path = paths.home() / "experiments" / "histories" / f"{digest[:24]}.json"
    if path.is_file():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    sizes = np.array([len(source.space) for source in sources])
    drawn = np.random.default_rng(seed).choice(int(sizes.sum()), size=min(samples, int(sizes.sum())), replace=False)
    ends = np.cumsum(sizes)
    parts = []
    for number, source in enumerate(sources):
        mine = np.sort(drawn[(drawn >= ends[number] - sizes[number]) & (drawn < ends[number])])
        if len(mine):
            answers = Answers(dataset_of(source))
            results = [answers.of(int(index - ends[number] + sizes[number])) for index in mine]
            if lowered_only:
                results = [result for result in results if result.outcome is not Outcome.REJECTED]
            parts.append(WorkloadHistory.of(source.workload, source.accelerator, source.space, results))
    History(tuple(parts)).save(path)
    return path
