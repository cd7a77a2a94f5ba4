"""The data for transfer learning: a sample of other workloads' datasets, as a history file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hilt import paths
from hilt.measure.dataset import DatasetKey
from hilt.schedule.reasons import Reason
from hilt.tune.history import History, WorkloadHistory
from hilt_experiments.datasets import dataset_of
from hilt_experiments.replay import Answers

_WITHOUT_FEATURES = (Reason.THREAD_SPLIT, Reason.GROUP_SPLIT, Reason.TVM_PARTIAL_SUMS)
"""Refusals of TVM while it makes a schedule: it extracts features of a schedule, and refuses all others after that."""


def history_of(sources: Sequence[DatasetKey], samples: int, seed: int = 0, *, featured_only: bool = False) -> Path:
    """Return a file with `samples` configurations drawn uniformly from all of these datasets together, valid or not.

    With `featured_only` those that TVM extracts no features of are dropped after the draw, as HW-aware's authors do.
    """
    names = " ".join(sorted(source.key for source in sources))
    facts = f"{names} {samples} {seed}{' featured' if featured_only else ''}"
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
            indices = mine - ends[number] + sizes[number]
            if featured_only:
                indices = indices[~np.isin(source.summarize_validity.verdicts[indices], _WITHOUT_FEATURES)]
            results = [answers.of(int(index)) for index in indices]
            parts.append(WorkloadHistory.of(source.workload, source.accelerator, source.space, results))
    History(tuple(parts)).save(path)
    return path
