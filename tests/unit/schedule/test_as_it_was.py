"""Programs, needs and features of fixed configurations, beside those that were accepted: not a word has changed.

Other tests hold that programs are right. A change that keeps them right, but slower or rejected, shows here. If it is
meant: `build/host-env/bin/pytest tests/unit/schedule/test_as_it_was.py --snapshot-update`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from syrupy.assertion import SnapshotAssertion

from hilt.schedule import Conv2d, Rejected, load_convolution, lower_many, space_for, verdicts
from hilt.schedule.analysis import Analysis
from hilt.schedule.checks import analyse
from hilt.schedule.clusters import clusters
from hilt.schedule.features import Features, ast_features, context_relation_features, hidden_features
from hilt.schedule.reasons import Reason
from hilt.schedule.space import SpaceKind
from hilt.vta.accelerator import Accelerator
from tests.unit.schedule.cases import BATCHED, PYNQ, PYNQ_B, ZCU102

ODD = "conv2d:n=1,ci=40,h=15,w=13,co=48,k=3x5,s=2x1,p=1x2,bias=1"
GROUPED = "conv2d:n=2,ci=64,h=12,w=12,co=64,k=3x3,p=1x1,groups=4,bias=1"
SQUARE = "conv2d:n=1,ci=32,h=10,w=10,co=32,k=3x3,p=1x1,bias=1"
CASES: dict[str, tuple[str, Accelerator, SpaceKind]] = {
    "odd": (ODD, PYNQ, "autotvm"),
    "odd, revision B": (ODD, PYNQ_B, "autotvm"),
    "odd, four images": (ODD.replace("n=1", "n=6"), BATCHED, "autotvm"),
    "odd, ml2": (ODD, PYNQ, "ml2"),
    "odd, rows": (ODD, PYNQ, "rows"),
    "grouped": (GROUPED, PYNQ, "autotvm"),
    "grouped, zcu102": (GROUPED, ZCU102, "autotvm"),
    "square, rows": (SQUARE, PYNQ, "rows"),
    "skip": (SQUARE + ",epilogue=skip", PYNQ, "autotvm"),
    "shifted skip": (SQUARE + ",epilogue=shifted_skip", BATCHED, "autotvm"),
    "low bias": (SQUARE + ",epilogue=low_bias", PYNQ, "autotvm"),
}
SAMPLES = {"autotvm": 60, "ml2": 60, "rows": 16}
FUSED = 6
"""Configurations of a form, whose programs are made one by one."""


@pytest.mark.parametrize("name", CASES)
def test_it_is_as_it_was(name: str, snapshot: SnapshotAssertion) -> None:
    text, accelerator, kind = CASES[name]
    workload = replace(load_convolution(text), name="")
    space = space_for(workload, accelerator, orders=1 if kind == "ml2" else 4, kind=kind)
    count = FUSED if workload.epilogue else SAMPLES[kind]
    columns = space.columns(space.sample(count, np.random.default_rng(5)))
    assert "\n".join(_lines(workload, accelerator, columns, len(space))) == snapshot


def _lines(
    workload: Conv2d, accelerator: Accelerator, columns: Mapping[str, NDArray[np.int64]], size: int
) -> Iterator[str]:
    yield f"{size} configurations; knobs {' '.join(columns)}"
    for checks in ("compiler",) if workload.epilogue else ("compiler", "strict", "off"):
        found = list(lower_many(workload, columns, accelerator, checks))
        programs = [each for each in found if not isinstance(each, Rejected)]
        words = hashlib.sha256("".join(each.sha256 for each in programs).encode()).hexdigest()[:16]
        counts = sum(len(each.instructions) for each in programs), sum(len(each.uops) for each in programs)
        yield f"{checks}: {len(programs)} programs of {counts[0]} instructions and {counts[1]} micro-ops, {words}"
        yield f"  {_counted(str(each).partition(':')[0] for each in found if isinstance(each, Rejected))}"
    yield f"verdicts: {_counted(Reason(each).text for each in verdicts(workload, accelerator, columns).tolist())}"
    analysis = analyse(workload, accelerator, columns)
    yield from _needs(analysis)
    hidden = hidden_features(workload.plain, accelerator, columns)
    means = zip(hidden.names, hidden.values.mean(axis=0, dtype=float), strict=True)
    yield f"hidden features: {' '.join(f'{name}={mean:.5g}' for name, mean in means)}"
    if analysis.rows is None:
        yield f"loops: {_sums(ast_features(workload.plain, accelerator, columns))}"
        yield f"context relations: {_sums(context_relation_features(workload.plain, accelerator, columns))}"


def _sums(features: Features) -> str:
    """Return the number of features, the sum of their values, and the sum in which each counts by its place."""
    means = features.values.mean(axis=0, dtype=float)
    return f"{len(features.names)} features, {means.sum():.5g}, {means @ np.arange(1, len(means) + 1):.5g}"


def _needs(analysis: Analysis) -> Iterator[str]:
    for reason, (need, limit) in sorted(analysis.needs.items()):
        yield f"{reason.text}: {int(need.min())} to {int(need.max())}, {int(need.sum())} in all, of {limit}"


def _counted(words: Iterator[str]) -> str:
    return ", ".join(f"{word} {count}" for word, count in sorted(Counter(words).items()))


def test_clusters_are_as_they_were(snapshot: SnapshotAssertion) -> None:
    workload = load_convolution("resnet18.C10")
    space = space_for(workload, PYNQ, orders=4)
    found = clusters(space, verdicts(workload, PYNQ, space.columns(np.arange(len(space)))) == Reason.OK)
    assert f"{found.sizes.tolist()} {found.valid_ratio:.5g} {found.neighbours:.5g}" == snapshot
