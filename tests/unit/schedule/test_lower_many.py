"""Lowering many at once: the results equal those of lowering one by one, in the same order."""

from __future__ import annotations

import numpy as np
import pytest

from hilt.schedule import Rejected, load_workload, lower, lower_many, lowering, space_for
from hilt.schedule.checks import Checks
from hilt.schedule.space import SpaceKind
from hilt.vta.program import Program
from tests.unit.schedule.cases import PYNQ


@pytest.mark.parametrize("kind", ["autotvm", "ml2"])
@pytest.mark.parametrize("checks", ["strict", "compiler", "tvm", "off"])
def test_as_one_by_one(kind: SpaceKind, checks: Checks) -> None:
    if (kind, checks) == ("ml2", "tvm"):
        pytest.skip("TVM has no such space")
    workload = load_workload("conv2d:n=1,ci=32,h=15,w=13,co=48,k=3x5,s=2x1,p=1x2,bias=1")
    space = space_for(workload, PYNQ, orders=1 if kind == "ml2" else 4, kind=kind)
    indices = space.sample(40, np.random.default_rng(7))
    together = list(lower_many(workload, space.columns(indices), PYNQ, checks))
    assert len(together) == len(indices)
    for index, found in zip(indices, together, strict=True):
        try:
            alone: Program | Rejected = lower(workload, space.knobs_at(int(index)), PYNQ, checks)
        except Rejected as rejection:
            alone = rejection
        if isinstance(alone, Rejected):
            assert isinstance(found, Rejected) and str(found) == str(alone)
        else:
            assert isinstance(found, Program) and found.sha256 == alone.sha256


def test_a_lowering_does_not_depend_on_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The results are the same in batches that end anywhere, also for batches with every configuration rejected."""
    workload = load_workload("conv2d:n=2,ci=64,h=12,w=12,co=64,k=3x3,p=1x1,groups=4,bias=1")
    space = space_for(workload, PYNQ, orders=4)
    columns = space.columns(space.sample(60, np.random.default_rng(8)))

    def told() -> list[str]:
        return [
            str(found) if isinstance(found, Rejected) else found.sha256 for found in lower_many(workload, columns, PYNQ)
        ]

    together = told()
    assert 10 < sum(":" in each for each in together) < 50
    for limit in (1, 300, 3000):
        monkeypatch.setattr(lowering, "_INSTRUCTIONS_TOGETHER", limit)
        assert told() == together


def test_nothing_to_lower() -> None:
    workload = load_workload("resnet18.C9")
    assert list(lower_many(workload, space_for(workload, PYNQ).columns([]), PYNQ)) == []
