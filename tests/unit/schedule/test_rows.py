"""Row programs: exact on the golden model, in order, counted without lowering, and each knob keeps its promise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.run_choices import CheckLevel, SpaceName
from hilt.schedule import Conv2d, Reason, Rejected, load_convolution, lower, make_tensors, space_for, verdicts
from hilt.schedule.checks import NO_HAZARD, analyse
from hilt.schedule.features import ast_features, context_relation_features, hidden_features, loop_context
from hilt.schedule.loop_nest import KINDS
from hilt.schedule.rows.choices import FoldedLoop, Keep
from hilt.schedule.rows.plans import RowPlans
from hilt.schedule.traffic import traffic
from hilt.schedule.workload import EPILOGUES
from hilt.simulator.build import build
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import MemoryType, Opcode, decode
from tests.unit.schedule.cases import BATCHED, PYNQ, PYNQ_B, ZCU102, describe, small_convolutions
from tests.unit.schedule.dependences import check_order, drains, least_sum_distance

PUBLIC = replace(PYNQ, hazards="none")
"""It loses sums whose updates are close to each other, as the public bitstreams do."""
C5 = load_convolution("resnet18.C5")
POINTWISE = load_convolution("conv2d:n=1,ci=64,h=12,w=12,co=64,k=1x1,s=2x2,p=0x0")
CASES = [
    (PUBLIC, "conv2d:n=1,ci=32,h=8,w=8,co=64,k=3x3,s=1x1,p=1x1,bias=1"),
    (PUBLIC, "conv2d:n=1,ci=64,h=9,w=17,co=32,k=3x3,s=2x2,p=1x1"),
    (PUBLIC, "conv2d:n=2,ci=40,h=12,w=12,co=20,k=1x1,s=2x2,p=0x0,bias=1"),
    (PUBLIC, "conv2d:n=1,ci=32,h=11,w=11,co=32,k=5x5,s=1x1,p=2x2"),
    (PUBLIC, "conv2d:n=1,ci=96,h=8,w=8,co=96,k=3x3,s=1x1,p=1x1,groups=3"),
    (PUBLIC, "conv2d:n=1,ci=48,h=9,w=9,co=48,k=3x3,s=1x1,p=1x1,groups=48"),
    (PUBLIC, "conv2d:n=1,ci=16,h=7,w=13,co=32,k=2x4,s=3x1,p=3x0"),
    (BATCHED, "conv2d:n=6,ci=16,h=6,w=6,co=32,k=3x3,s=1x1,p=1x1"),
    (PUBLIC, "dense:n=1,ci=64,co=128,bias=1"),
]


def undilated(workload: Conv2d) -> Conv2d:
    return replace(workload, dilation=(1, 1))


def columns_of(knobs: dict[str, int]) -> dict[str, list[int]]:
    return {name: [value] for name, value in knobs.items()}


def accepted(workload: Conv2d, accelerator: Accelerator, count: int, seed: int) -> list[dict[str, int]]:
    """Return random configurations that the compiler accepts, as many as there are."""
    space = space_for(workload, accelerator, kind=SpaceName.ROWS)
    good = np.flatnonzero(verdicts(workload, accelerator, space.columns(np.arange(len(space)))) == 0)
    chosen = np.random.default_rng(seed).permutation(good)[:count]
    return [space.knobs_at(int(index)) for index in chosen]


def check_output(workload: Conv2d, knobs: dict[str, int], accelerator: Accelerator) -> None:
    program = lower(workload, knobs, accelerator)
    tensors = make_tensors(workload, accelerator, seed=3)
    run = run_program(build(accelerator, "golden"), program, tensors.inputs)
    assert run.execution.status is DeviceStatus.DONE, describe(knobs)
    assert np.array_equal(run.output, tensors.expected.ravel()), describe(knobs)


def check_program(workload: Conv2d, knobs: dict[str, int], accelerator: Accelerator) -> None:
    """Compare a program with its predicted counts, and its tokens with its reads and writes."""
    program = lower(workload, knobs, accelerator)
    analysis = analyse(workload, accelerator, columns_of(knobs))
    plans = analysis.rows
    assert plans is not None
    records = decode(program.instructions, accelerator)
    gemms = records[(records["opcode"] == Opcode.GEMM) & (records["reset"] == 0)]
    turns = gemms["iter_out"].astype(np.int64) * gemms["iter_in"]
    uops = gemms["uop_end"].astype(np.int64) - gemms["uop_bgn"]
    operands = np.isin(records["memory_type"], (MemoryType.INP, MemoryType.WGT)) & (records["opcode"] == Opcode.LOAD)
    counted = {
        "turns": turns.sum(),
        "products": (turns * uops).sum(),
        "load_rows": records["y_size"][operands].sum(),
        "store_rows": records["y_size"][records["opcode"] == Opcode.STORE].sum(),
    }
    assert {name: int(getattr(plans, name)[0]) for name in counted} == counted, describe(knobs)
    assert len(records) == traffic(analysis).instructions[0] == analysis.needs[Reason.INSN_LIMIT][0][0]
    assert len(program.uops) <= plans.uops[0]
    assert (least_sum_distance(program, accelerator) or NO_HAZARD) >= plans.hazard_distance[0]
    if len(records) < 2000:
        check_order(program, accelerator)
        assert drains(program, accelerator, queue_depth=1) and drains(program, accelerator, queue_depth=512)


@pytest.mark.parametrize(("accelerator", "text"), CASES)
def test_a_few_programs_are_as_counted(accelerator: Accelerator, text: str) -> None:
    workload = load_convolution(text)
    for knobs in accepted(workload, accelerator, 2, seed=8):
        check_program(workload, knobs, accelerator)


@pytest.mark.slow
@pytest.mark.parametrize(("accelerator", "text"), CASES)
def test_programs_are_exact_and_as_counted(accelerator: Accelerator, text: str) -> None:
    workload = load_convolution(text)
    found = accepted(workload, accelerator, 6, seed=1)
    assert found
    for knobs in found:
        check_output(workload, knobs, accelerator)
        check_program(workload, knobs, accelerator)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(small_convolutions().map(undilated), st.sampled_from([PUBLIC, PYNQ_B, BATCHED, ZCU102]), st.integers(0, 2**31))
def test_any_small_convolution(workload: Conv2d, accelerator: Accelerator, seed: int) -> None:
    for knobs in accepted(workload, accelerator, 1, seed):
        check_output(workload, knobs, accelerator)
        check_program(workload, knobs, accelerator)


@pytest.mark.slow
@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_the_forms_of_compiled_networks_are_exact(epilogue: str) -> None:
    workload = Conv2d("", 1, 32, 10, 9, 40, (3, 3), padding=(1, 1), bias=True, epilogue=epilogue)
    for knobs in accepted(workload, PUBLIC, 5, seed=2):
        check_output(workload, knobs, PUBLIC)


@pytest.mark.slow
@pytest.mark.parametrize("epilogue", ["skip", "shifted_skip"])
def test_every_accepted_program_has_room_for_a_skip(epilogue: str) -> None:
    workload = Conv2d("", 1, 64, 12, 12, 64, (3, 3), padding=(1, 1), bias=True, epilogue=epilogue)
    for knobs in accepted(workload, PYNQ, 12, seed=4):
        lower(workload, knobs, PYNQ)  # raises Rejected if the skip does not fit


def test_the_space_has_its_knobs_in_order() -> None:
    space = space_for(C5, PYNQ, kind=SpaceName.ROWS)
    assert space.names == ("tile_h", "tile_w", "tile_ci", "tile_co", "fold", "keep", "merge")
    assert space.sizes.tolist() == [6, 6, 4, 4, 3, 4, 1]
    assert space.knobs_at(1) == {**dict.fromkeys(space.names, 1), "tile_h": 2}
    assert all(type(value) is int for knob in space.knobs for value in knob.values)
    assert space_for(POINTWISE, PYNQ, kind=SpaceName.ROWS).knobs[-1].values == (0, 1)
    grouped = load_convolution("conv2d:n=1,ci=64,h=8,w=8,co=128,k=3x3,s=1x1,p=1x1,groups=2")
    assert space_for(grouped, PYNQ, kind=SpaceName.ROWS).knobs[3].values == (1, 2, 4)  # no tile is of two groups


def plan(workload: Conv2d, **knobs: int) -> RowPlans:
    whole = {"tile_h": 7, "tile_w": 28, "tile_ci": 1, "tile_co": 2, "fold": 1, "keep": 1, "merge": 1}
    found = analyse(workload, PYNQ, columns_of(whole | knobs)).rows
    assert found is not None
    return found


def test_a_tile_of_full_width_moves_its_rows_in_one_burst() -> None:
    assert plan(C5).stores[0] == plan(C5, tile_w=14).stores[0] / 4  # two channel blocks of two tiles: four boxes
    assert plan(C5).store_rows[0] == 4 * 8  # row tiles, each a row for each of eight channel blocks
    assert plan(C5, tile_w=14).store_rows[0] == 28 * 8 * 2


def test_rows_that_the_kernel_skips_are_loaded_with_the_others_or_not() -> None:
    tile = {"tile_h": 3, "tile_w": 6, "tile_ci": 2, "tile_co": 1, "fold": 1, "keep": 2}
    merged, apart = (analyse(POINTWISE, PYNQ, columns_of({**tile, "merge": merge})).rows for merge in (1, 0))
    assert merged is not None and apart is not None
    # A tile meets rows 0, 2 and 4 of five; eleven columns of twelve are between its first and its last.
    assert merged.inp_elements[0] == 2 * 5 * 11 * 4 and apart.inp_elements[0] == 2 * 3 * 11 * 4


def test_a_tensor_that_is_kept_is_loaded_once() -> None:
    elements, weights = 8 * (7 + 1 + 7 + 2 + 7 + 2 + 7 + 1) * 28, 8 * 8 * 9
    by_tile = plan(C5)
    assert by_tile.inp_elements[0] == 4 * elements and by_tile.wgt_boxes[0] * 2 * 9 == 4 * weights
    assert plan(C5, keep=Keep.INPUT).inp_elements[0] == elements
    assert plan(C5, keep=Keep.NOTHING_BY_CHANNEL).inp_elements[0] == 4 * elements
    kept = plan(C5, keep=Keep.WEIGHTS)
    assert kept.wgt_boxes[0] * 2 * 9 == weights and kept.inp_elements[0] == 4 * elements


@pytest.mark.parametrize(
    ("fold", "turns"), [(FoldedLoop.ROWS, 2 * 4), (FoldedLoop.OUTPUTS, 7 * 2), (FoldedLoop.INPUTS, 7 * 4)]
)
def test_the_loop_of_micro_ops_decides_the_iterations(fold: FoldedLoop, turns: int) -> None:
    """A step of 7 rows, 2 blocks of input and 4 of output channels: two of these loops are iterations."""
    steps = 4 * 4 * 2
    assert plan(C5, tile_ci=2, tile_co=4, fold=fold).turns[0] == turns * steps


def test_products_with_padding_are_left_out() -> None:
    taps = 3 * 28 - 2  # of each row and column, the two at the edges have one less
    assert plan(C5).products[0] == 8 * 8 * taps * taps


def test_tvm_runs_no_row_program() -> None:
    space = space_for(C5, PYNQ, kind=SpaceName.ROWS)
    columns = space.columns(np.arange(len(space)))
    assert set(verdicts(C5, PYNQ, columns, CheckLevel.TVM).tolist()) == {Reason.TVM_ROWS}
    with pytest.raises(Rejected, match="tvm_rows"):
        lower(C5, space.knobs_at(0), PYNQ, CheckLevel.TVM)


def test_a_program_that_could_lose_sums_is_refused_at_every_level_but_off() -> None:
    knobs = {"tile_h": 1, "tile_w": 1, "tile_ci": 8, "tile_co": 1, "fold": 1, "keep": 1, "merge": 1}
    for level in (CheckLevel.COMPILER, CheckLevel.STRICT):
        assert verdicts(C5, PYNQ, columns_of(knobs), level).tolist() == [Reason.ACC_HAZARD]
    program = lower(C5, knobs, PYNQ, CheckLevel.OFF)
    assert least_sum_distance(program, PYNQ) == 1


@pytest.mark.parametrize("features", [hidden_features, ast_features, context_relation_features])
def test_features_have_a_row_for_each_configuration(features: object) -> None:
    space = space_for(C5, PYNQ, kind=SpaceName.ROWS)
    columns = space.columns(space.sample(40, np.random.default_rng(5)))
    found = features(C5, PYNQ, columns)  # type: ignore[operator]
    assert found.values.shape == (40, len(found.names)) and len(set(found.names)) == len(found.names)
    assert np.isfinite(found.values).all() and found.values.dtype == np.float32
    alone = features(C5, PYNQ, {name: values[7:8] for name, values in columns.items()})  # type: ignore[operator]
    np.testing.assert_array_equal(alone.values[0], found.values[7])
    assert loop_context(C5, PYNQ, columns).values.shape[:2] == (40, len(KINDS))


def test_hidden_features_of_ordinary_schedules_have_no_others() -> None:
    ordinary, rows = (
        hidden_features(C5, PYNQ, space_for(C5, PYNQ, kind=kind).columns([0])).names
        for kind in (SpaceName.AUTOTVM, SpaceName.ROWS)
    )
    assert rows == (*ordinary, "dma_rows.load", "dma_rows.store", "gemm.turns", "keep")
