"""The plan of a quantisation of small and random models: int8 tensors with their scales, shifts and classes.

Other tests hold that a plan computes right and loses little. A tensor that leaves int8, a coarser scale or a shift that
is missed shows here. If it is meant: `build/host-env/bin/pytest tests/unit/network/test_plans_as_they_were.py
--snapshot-update`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from hilt.network.calibration import Calibration, Feeds, hold_out
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.quantize.channel_classes import find_classes
from hilt.network.quantize.equalise import RULES, equalised
from hilt.network.quantize.regions import Regions, find_regions
from hilt.network.quantize.scales import initial_scales
from hilt.network.quantize.shifts import choose_shifts
from hilt.network.quantize.statistics import TensorStatistics, observe

from . import test_centre, test_random_forms
from .models import canonical

pytestmark = pytest.mark.slow  # runs some thirty networks on samples

SAMPLES = 12
MODELS = {
    **test_centre.NETWORKS,
    "gated": test_centre.GATED,
    **{f"random {seed}": test_random_forms.drawn_model(seed) for seed in range(200, 216)},
}


@pytest.mark.parametrize("first", range(0, len(MODELS), 8))
def test_plans(first: int, snapshot: SnapshotAssertion) -> None:
    lines: list[str] = []
    for name in list(MODELS)[first : first + 8]:
        lines += [name, *_plan(canonical(MODELS[name]))]
    assert "\n".join(lines) == snapshot


def _plan(graph: OnnxGraph) -> Iterator[str]:
    random = np.random.default_rng(5)
    feeds: tuple[Feeds, ...] = tuple(
        {"x": random.normal(0.3, 1, (1, 8, 6, 6)).astype(np.float32)} for _ in range(SAMPLES)
    )
    regions = find_regions(graph)
    statistics = observe(graph, regions.tensors, hold_out(Calibration(feeds)).fitted)
    yield from _regions(regions)
    for block in (0, 4):
        scales = initial_scales(graph, regions, statistics, block)
        yield f"  scales in blocks of {block}: {scales.groups} {scales.weights}"
    for name, shift in choose_shifts(graph, regions, statistics, initial_scales(graph, regions, statistics, 0)).items():
        if shift.changes:
            taken = np.round(shift.taken, 4).reshape(-1)[:3].tolist()
            yield f"  shift of {name}: {taken} factor {shift.factor:.4g} in {shift.low:.3g} to {shift.high:.3g}"
    yield from _classes(graph, regions, statistics)


def _regions(regions: Regions) -> Iterator[str]:
    for layer in regions.layers:
        yield f"  {layer.node.op} {layer.data} -> {layer.output} {layer.residual}".rstrip()
    yield f"  groups {regions.groups}, ends {regions.ends}, moved {sorted(regions.moved)}"
    yield f"  adds {regions.adds}, products {regions.products}"


def _classes(graph: OnnxGraph, regions: Regions, statistics: Mapping[str, TensorStatistics]) -> Iterator[str]:
    classes = find_classes(graph, regions.ends, statistics)
    yield f"  {classes.count} classes {_ids(classes.tensors)}, at most {np.round(classes.most, 2).tolist()[:6]}"
    for rule in RULES:
        made = equalised(graph, regions.ends, statistics, rule)
        if made is not None:
            sizes = [f"{np.abs(made.constants[layer.node.inputs[1]]).max():.3g}" for layer in classes.layers]
            yield f"  weights by rule {rule}: {' '.join(sizes)}"


def _ids(tensors: Mapping[str, Any]) -> dict[str, str]:
    return {name: f"{ids.min()}..{ids.max()}" for name, ids in tensors.items()}
