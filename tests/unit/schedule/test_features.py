"""Features: names and shapes, values worked out by other means, the same alone and among many."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from hilt.schedule import load_workload, space_for, verdicts
from hilt.schedule.checks import analyse
from hilt.schedule.features import (
    TABLE_5,
    ast_features,
    context_relation_features,
    hidden_features,
    knob_feature_names,
    knob_features,
    loop_context,
)
from hilt.schedule.features.loop_context import RELATIONS, THRESHOLDS
from hilt.schedule.loop_nest import KINDS, LoopKind, loop_nest
from hilt.schedule.loops import LOOPS
from hilt.schedule.space import LOOP_ORDERS
from hilt.vta.accelerator import Accelerator
from tests.unit.schedule.cases import BATCHED, PYNQ

C5 = load_workload("resnet18.C5")  # 128 channels, 28 x 28, 3 x 3, padding 1
BY_COLUMNS = (hidden_features, ast_features, context_relation_features)


def some(count: int, seed: int) -> dict[str, np.ndarray]:
    space = space_for(C5, PYNQ)
    return space.columns(space.sample(count, np.random.default_rng(seed)))


@pytest.mark.parametrize("features", BY_COLUMNS)
def test_shapes_names_and_independence(features: object) -> None:
    columns = some(50, seed=5)
    found = features(C5, PYNQ, columns)  # type: ignore[operator]
    assert found.values.shape == (50, len(found.names)) and found.values.dtype == np.float32
    assert len(set(found.names)) == len(found.names)
    assert np.isfinite(found.values).all()
    for row in (0, 17, 49):
        alone = features(C5, PYNQ, {name: values[row : row + 1] for name, values in columns.items()})  # type: ignore[operator]
        np.testing.assert_array_equal(alone.values[0], found.values[row])
    assert len(np.unique(found.values, axis=0)) >= 45  # they tell configurations apart


def test_knob_names_are_those_of_its_columns() -> None:
    space = space_for(C5, PYNQ)
    names = knob_feature_names(space)
    found = knob_features(space, np.arange(len(space)))
    assert len(names) == found.shape[1] == 12
    np.testing.assert_array_equal(found[:, names.index("tile_h.inner")], space.columns(np.arange(len(space)))["tile_h"])
    assert set(found[:, names.index("tile_h.outer")]) == {-1}


def test_table_5_by_hand() -> None:
    """Rows of four of 28, with a kernel of three and one row of padding above and below."""
    knobs = {"tile_b": 1, "tile_h": 4, "tile_w": 7, "tile_ci": 2, "tile_co": 4, "oc_nthread": 2, "h_nthread": 1}
    found = hidden_features(C5, PYNQ, {name: [value] for name, value in knobs.items()})
    assert found.names[:19] == TABLE_5 and len(TABLE_5) == 19
    values = dict(zip(found.names, found.values[0].tolist(), strict=True))
    assert (values["TW"], values["TH"], values["nVT"], values["nFilterInLoop"]) == (7, 4, 2, 4)
    assert (values["nVirtualThread > 0 (threadIdx)"], values["nVirtualThread > 0 (threadIdx) 2"]) == (1, 0)
    assert (values["sizeInTileH"], values["sizeInTileW"]) == (6, 9)
    # The first and the last tile have a row of padding each: five of six rows are the input's.
    assert (values["resizedInTileH(b0==0)"], values["resizedInTileH(b0!=0)"]) == (5, 5)
    assert (values["resizedOutTileH(b0==0)"], values["outDummyH(b0!=0)"], values["sizeOutTileBoundaryW"]) == (4, 0, 7)
    assert values["Kn / nFilterInLoop / nVirtualThread / 16"] == 1  # 8 blocks of filters, 4 in the loop, 2 threads
    assert values["tile.inp_elements"] == 2 * 6 * 9
    assert values["cycles.compute"] == 28 * 28 * 8 * 8 * 9


def test_tiles_that_do_not_divide_the_output() -> None:
    """28 rows in tiles of nine: the last has one, computes two rows of input (one is padding) and wastes eight."""
    knobs = {"TH": 9, "TW": 13, "nVT": 2, "nFilterInLoop": 2, "tile_ci": 8}
    found = hidden_features(C5, PYNQ, {name: [value] for name, value in knobs.items()})
    values = dict(zip(found.names, found.values[0].tolist(), strict=True))
    assert (values["TH"], values["resizedOutTileH(b0==0)"], values["resizedOutTileH(b0!=0)"]) == (9, 9, 1)
    assert (values["outDummyH(b0==0)"], values["outDummyH(b0!=0)"], values["sizeOutTileBoundaryW"]) == (0, 8, 2)
    assert (values["resizedInTileH(b0==0)"], values["resizedInTileH(b0!=0)"]) == (10, 2)
    assert values["nVT"] == 2 and values["Kn / nFilterInLoop / nVirtualThread / 16"] == 2
    assert values["tiles"] == 4 * 3 * 4


def test_occupancy_agrees_with_the_checks() -> None:
    columns = some(400, seed=6)
    found = hidden_features(C5, PYNQ, columns)
    over = np.any([found.column(f"occupancy.{name}") > 1 for name in ("inp", "wgt", "acc", "uop")], axis=0)
    rejected = verdicts(C5, PYNQ, columns) != 0
    assert over.any() and np.all(rejected[over])


CASES = [
    (PYNQ, "conv2d:n=4,ci=32,h=9,w=12,co=64,k=3x2,s=2x1,p=1x1"),
    (BATCHED, "conv2d:n=4,ci=32,h=9,w=12,co=64,k=3x2,s=2x1,p=1x1"),
    (PYNQ, "conv2d:n=1,ci=64,h=9,w=12,co=64,k=3x2,s=2x1,p=1x1,groups=2"),
    (PYNQ, "conv2d:n=1,ci=64,h=9,w=12,co=64,k=3x2,s=2x1,p=1x1,groups=4"),
]


@pytest.mark.parametrize(("accelerator", "text"), CASES)
def test_the_nest_does_all_the_work_there_is(accelerator: Accelerator, text: str) -> None:
    workload = load_workload(text)
    space = space_for(workload, accelerator, orders=4)
    columns = space.columns(np.arange(len(space)))
    analysis = analyse(workload, accelerator, columns)
    nest, tiling = loop_nest(analysis), analysis.tiling
    even = (tiling.h_tiles % tiling.h_threads == 0) & (tiling.co_tiles % tiling.oc_threads == 0)
    problem = tiling.problem
    whole = (problem.co % tiling.co == 0) | problem.block_by_block  # not parts of several groups
    even &= whole
    work = problem.batch * problem.all_co * problem.ci * problem.taps * problem.out_height * problem.out_width
    assert even.sum() >= 80
    assert set(nest.extent[even].prod(axis=1)) == {work}
    # With all loops inside, the outermost touches the whole tensors; the tile's content begins below the threads.
    inner = KINDS.index(LoopKind.COUNTED)
    np.testing.assert_array_equal(nest.touched["inp"][whole, inner], _box_of_tile(tiling)[whole])
    np.testing.assert_array_equal(nest.touched["wgt"][:, inner], tiling.wgt_elements)
    np.testing.assert_array_equal(nest.touched["out"][:, inner], tiling.acc_elements)
    assert set(nest.touched["wgt"][even, 0]) == {problem.wgt_elements}
    extents = (problem.batch, problem.all_co, 5, 13, problem.ci, 3, 2)
    for row in np.flatnonzero(even)[::37].tolist():
        for axis in range(7):
            assert nest.extent[row][nest.axis[row] == axis].prod() == extents[axis]
        outer = [LOOPS[axis] for axis in nest.axis[row][:5]]
        assert tuple(outer) == LOOP_ORDERS[int(columns["loop_order"][row])]


def _box_of_tile(tiling: object) -> np.ndarray:
    """Return the box of a tile by counting: the different (row, column) that its outputs meet lie in a box."""
    problem = tiling.problem  # type: ignore[attr-defined]
    (stride_h, stride_w), (kernel_h, kernel_w) = problem.workload.stride, problem.workload.kernel
    found = []
    shapes = zip(tiling.batch, tiling.inp_channels, tiling.height, tiling.width, strict=True)  # type: ignore[attr-defined]
    for batch, ci, height, width in shapes:
        last_row = max(y * stride_h + k for y, k in itertools.product(range(height), range(kernel_h)))
        last_column = max(x * stride_w + k for x, k in itertools.product(range(width), range(kernel_w)))
        found.append(batch * ci * (last_row + 1) * (last_column + 1))
    return np.array(found)


def test_context_relations_by_the_formula() -> None:
    columns = some(20, seed=7)
    context = loop_context(C5, PYNQ, columns)
    found = context_relation_features(C5, PYNQ, columns)
    assert found.values.shape[1] == len(RELATIONS) * len(THRESHOLDS) * 2
    for row in range(20):
        z = context.values[row]
        expected = []
        for i, j in RELATIONS:
            zi, zj = z[:, context.names.index(i)], z[:, context.names.index(j)]
            for beta in THRESHOLDS:
                below = [(float(zi[k]), float(zj[k])) for k in range(len(z)) if zj[k] < beta]
                expected.append(math.log2(1 + max(value for value, _ in below)) if below else 0.0)
                nearest = max((other for _, other in below), default=beta)
                expected.append(math.log2((1 + beta) / (1 + nearest)))
        np.testing.assert_allclose(found.values[row], expected, rtol=1e-4, atol=1e-5)


def test_context_relations_compare_different_workloads() -> None:
    """Context relations compare different workloads.

    The names are the same whatever the operator's shape, so a model learned on one workload can be used on another.
    """
    other = load_workload("deepbench.53")
    space = space_for(other, PYNQ)
    assert (
        context_relation_features(other, PYNQ, space.columns(np.arange(8))).names
        == context_relation_features(C5, PYNQ, some(1, seed=1)).names
    )
