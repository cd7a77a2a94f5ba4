"""Loop orders, tiles that do not divide the output, and lowering without checks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.schedule import Conv2d, Reason, Rejected, Space, load_workload, lower, space_for, verdicts, workload_names
from hilt.schedule.literature import published_spaces
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import MemoryType, Opcode, decode
from tests.unit.schedule import test_lowering_on_golden, test_lowering_order
from tests.unit.schedule.cases import BATCHED, PYNQ, RESNET18, ZCU102, small_convolutions


def spaces(workload: Conv2d, accelerator: Accelerator) -> list[Space]:
    return [space_for(workload, accelerator, orders=4), space_for(workload, accelerator, kind="ml2")]


def check(workload: Conv2d, knobs: dict[str, int], accelerator: Accelerator) -> None:
    test_lowering_order.check(workload, knobs, accelerator)
    test_lowering_on_golden.check(workload, knobs, accelerator)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(small_convolutions(), st.sampled_from([PYNQ, BATCHED, ZCU102]), st.sampled_from([0, 1]), st.integers(0, 2**31))
def test_any_small_convolution(workload: Conv2d, accelerator: Accelerator, kind: int, seed: int) -> None:
    space = spaces(workload, accelerator)[kind]
    knobs = space.knobs_at(int(np.random.default_rng(seed).integers(len(space))))
    try:
        check(workload, knobs, accelerator)
    except Rejected as rejected:
        assert rejected.reason


def test_deepbench_with_four_orders_has_the_papers_sizes() -> None:
    """Four of Table II are printed one larger than the product."""
    names = [name for name in workload_names() if name.startswith("deepbench.")]
    sizes = {name: len(space_for(load_workload(name), PYNQ, orders=4)) for name in names}
    larger = {name: published_spaces()[name].size - size for name, size in sizes.items()}
    assert larger == {name: int(name.split(".")[1] in ("53", "59", "78", "106")) for name in names}


def test_the_first_quarter_of_four_orders_is_the_space_of_one() -> None:
    workload = load_workload("resnet18.C9")
    one, four = space_for(workload, PYNQ), space_for(workload, PYNQ, orders=4)
    assert len(four) == 4 * len(one)
    assert four.knobs_at(137) == {**one.knobs_at(137), "loop_order": 1}
    program, again = (lower(workload, space.knobs_at(137), PYNQ) for space in (one, four))
    assert program.sha256 == again.sha256


@pytest.mark.slow
@pytest.mark.parametrize("name", [*RESNET18, "deepbench.107"])
def test_strict_is_right_on_golden_in_every_order_and_at_every_edge(name: str) -> None:
    workload = load_workload(name)
    generator = np.random.default_rng(20)
    for space in spaces(workload, PYNQ):
        indices = space.sample(4000, generator)
        good = indices[verdicts(workload, PYNQ, space.columns(indices), "strict") == 0]
        orders = space.columns(good).get("loop_order", np.ones_like(good))
        for order in np.unique(orders):
            knobs = space.knobs_at(int(generator.choice(good[orders == order])))
            test_lowering_on_golden.check(workload, knobs, PYNQ)


def loaded(name: str, knobs: dict[str, int]) -> dict[MemoryType, int]:
    """Elements read from memory, by memory type."""
    records = decode(lower(load_workload(name), knobs, PYNQ).instructions, PYNQ)
    loads = records[records["opcode"] == Opcode.LOAD]
    sizes = loads["y_size"].astype(np.int64) * loads["x_size"]
    return {memory: int(sizes[loads["memory_type"] == memory].sum()) for memory in MemoryType}


def test_orders_load_kept_tiles_once() -> None:
    """resnet18.C11: 32 x 32 x 9 weights, more than fit, and rows of 7 in single tiles."""
    tile = {"tile_b": 1, "tile_h": 1, "tile_w": 7, "tile_ci": 4, "tile_co": 4, "oc_nthread": 1, "h_nthread": 1}
    by_order = [loaded("resnet18.C11", {**tile, "loop_order": order}) for order in (1, 2, 3, 4)]
    weights = 32 * 32 * 9
    assert [each[MemoryType.WGT] for each in by_order] == [7 * weights, 7 * weights, 7 * weights, weights]
    boxes = 32 * 7 * (5 * 3 + 2 * 2)  # three rows of input for one of output, two at the edges
    assert [each[MemoryType.INP] for each in by_order] == [8 * boxes, 8 * boxes, boxes, 8 * boxes]


def test_partial_sums_that_do_not_fit_are_rejected_by_name() -> None:
    tile = {"tile_b": 1, "tile_h": 7, "tile_w": 56, "tile_ci": 1, "tile_co": 2, "oc_nthread": 1, "h_nthread": 1}
    workload = load_workload("resnet18.C2")
    lower(workload, {**tile, "loop_order": 2}, PYNQ)
    with pytest.raises(Rejected, match="keeps 6272 accumulator elements of partial sums, there are 2048") as raised:
        lower(workload, {**tile, "loop_order": 4}, PYNQ)
    assert raised.value.reason == Reason.PARTIAL_SUM_SPILL.text


def test_boundary_tiles_are_smaller() -> None:
    """Every output is computed and stored once: 56 = 5 x 10 + 6 rows, 3 x 16 + 8 columns."""
    workload = load_workload("resnet18.C2")
    program = lower(workload, {"TH": 10, "TW": 16, "nVT": 1, "nFilterInLoop": 1, "tile_ci": 1}, PYNQ)
    records = decode(program.instructions, PYNQ)
    stores = records[records["opcode"] == Opcode.STORE]
    assert int((stores["y_size"].astype(np.int64) * stores["x_size"]).sum()) == 4 * 56 * 56
    sizes = {(int(y), int(x)) for y, x in zip(stores["y_size"], stores["x_size"], strict=True)}
    assert sizes == {(10, 16), (10, 8), (6, 16), (6, 8)}


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(small_convolutions(), st.sampled_from([0, 1]), st.integers(0, 2**31))
def test_without_checks_there_is_always_a_program(workload: Conv2d, kind: int, seed: int) -> None:
    """The result equals that with checks if those accept the configuration."""
    space = spaces(workload, PYNQ)[kind]
    knobs = space.knobs_at(int(np.random.default_rng(seed).integers(len(space))))
    program = lower(workload, knobs, PYNQ, "off")
    assert len(program.instructions)
    try:
        assert lower(workload, knobs, PYNQ).sha256 == program.sha256
    except Rejected as rejected:
        assert rejected.reason


def test_without_checks_overflowing_fields_keep_their_low_bits() -> None:
    """resnet18.C2 whole: 58 x 58 x 4 of input in four pads of one, 56 x 56 x 4 accumulators in a reset of 3136 x 4."""
    tile = {"tile_b": 1, "tile_h": 56, "tile_w": 56, "tile_ci": 4, "tile_co": 4, "oc_nthread": 1, "h_nthread": 1}
    records = decode(lower(load_workload("resnet18.C2"), tile, PYNQ, "off").instructions, PYNQ)
    reset = records[records["reset"] == 1][0]
    assert (reset["iter_out"], reset["iter_in"], reset["dst_factor_out"]) == (4, 3136, 3136 % 2048)
    inputs = records[(records["opcode"] == Opcode.LOAD) & (records["memory_type"] == MemoryType.INP)]
    assert inputs["sram_base"].tolist() == [0, 3364, 6728, 10092]
