"""The GEMMs of a step of rows: each product of a convolution once, none with padding, at its places."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from hilt.schedule import Conv2d, load_convolution
from hilt.schedule.rows.choices import FoldedLoop
from hilt.schedule.rows.geometry import Geometry, Span
from hilt.schedule.rows.kernels import StepTile, kernels
from hilt.schedule.tiling import TilingProblem
from tests.unit.schedule.cases import PYNQ

Product = tuple[int, int, int]
"""Places in the accumulator, input and weight buffer."""
CASES = {
    "padding": "conv2d:n=1,ci=32,h=8,w=8,co=32,k=3x3,s=1x1,p=1x1",
    "stride": "conv2d:n=1,ci=32,h=11,w=17,co=32,k=3x3,s=2x2,p=1x1",
    "stride of one row": "conv2d:n=1,ci=32,h=12,w=12,co=32,k=1x1,s=2x2,p=0x0",
    "other axes": "conv2d:n=1,ci=32,h=6,w=13,co=32,k=2x4,s=3x1,p=3x0",
}


def wanted(
    workload: Conv2d, tile: StepTile, rows: Span, columns: Span, first: tuple[int, int], step: int
) -> Counter[Product]:
    """Return the products of a tile by the definition of a convolution; `first`: its first output."""
    found: Counter[Product] = Counter()
    taps = workload.kernel[0] * workload.kernel[1]
    for y, x, kh, kw in product(range(tile.height), range(tile.width), *map(range, workload.kernel)):
        row = (first[0] + y) * workload.stride[0] + kh - workload.padding[0]
        column = (first[1] + x) * workload.stride[1] + kw - workload.padding[1]
        if not (0 <= row < workload.height and 0 <= column < workload.width):
            continue
        box = (row - rows.first) // step * columns.count + column - columns.first
        for ci, co in product(range(tile.ci), range(tile.co)):
            dst = (co * tile.height + y) * tile.width + x
            src = ci * rows.count * columns.count + box
            wgt = (co * tile.ci + ci) * taps + kh * workload.kernel[1] + kw
            found[dst, src, wgt] += 1
    return found


def made(geometry: Geometry, tile: StepTile, rows: Span, columns: Span, fold: FoldedLoop) -> Counter[Product]:
    found: Counter[Product] = Counter()
    for kernel in kernels(geometry, tile, rows, columns, fold):
        outer, inner = kernel.outer, kernel.inner
        for i, j in product(range(outer.extent), range(inner.extent)):
            places = zip(kernel.dst, kernel.src, kernel.wgt, strict=True)
            for dst, src, wgt in places:
                moved = (
                    int(dst) + i * outer.dst + j * inner.dst,
                    int(src) + i * outer.src + j * inner.src,
                    int(wgt) + i * outer.wgt + j * inner.wgt,
                )
                found[moved] += 1
    return found


@pytest.mark.parametrize("fold", FoldedLoop)
@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_the_gemms_of_a_step_are_the_products_of_its_outputs(name: str, merge: bool, fold: FoldedLoop) -> None:
    workload = load_convolution(CASES[name])
    problem = TilingProblem.of(workload, PYNQ)
    height, width = problem.out_height // 2, problem.out_width
    assert problem.out_height % height == 0
    geometry = Geometry.of(problem, height, width, merge)
    step = 1 if merge else problem.row_step
    tile = StepTile(height, width, 2, 2)
    for number, rows in enumerate(geometry.rows):
        (columns,) = geometry.columns
        found = made(geometry, tile, rows, columns, fold)
        assert found == wanted(workload, tile, rows, columns, (number * height, 0), step)
        assert set(found.values()) <= {1}


def test_a_step_that_meets_padding_only_has_no_gemms() -> None:
    workload = load_convolution("conv2d:n=1,ci=16,h=7,w=13,co=16,k=2x4,s=3x1,p=3x0")
    problem = TilingProblem.of(workload, PYNQ)
    geometry = Geometry.of(problem, 1, problem.out_width, True)
    tile, (columns,) = StepTile(1, problem.out_width, 1, 1), geometry.columns
    for fold in FoldedLoop:
        counts = [sum(1 for _ in kernels(geometry, tile, rows, columns, fold)) for rows in geometry.rows]
        assert counts[0] == 0 and counts[1] == 1


def test_updates_of_an_element_stay_apart() -> None:
    """The public bitstreams lose sums whose updates are close: columns are innermost in the micro-ops."""
    problem = TilingProblem.of(load_convolution(CASES["padding"]), PYNQ)
    geometry = Geometry.of(problem, 4, 8, True)
    for kernel in kernels(geometry, StepTile(4, 8, 2, 2), geometry.rows[0], geometry.columns[0], FoldedLoop.ROWS):
        assert [int(place) for place in kernel.dst[:8]] == sorted({int(place) for place in kernel.dst[:8]})


@pytest.mark.parametrize(("kernel", "step"), [("1x1", 3), ("1x4", 3), ("2x1", 1), ("2x4", 1)])
def test_a_kernel_of_one_row_reads_the_rows_that_it_meets_alone(kernel: str, step: int) -> None:
    workload = load_convolution(f"conv2d:n=1,ci=32,h=6,w=13,co=32,k={kernel},s=3x2,p=0x0")
    problem = TilingProblem.of(workload, PYNQ)
    assert (problem.row_step, problem.box_row_stride) == (step, 3 // step)
