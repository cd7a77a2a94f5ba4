"""PRelu on VTA: its products are exact, and factors that are no int8 weights stay on the processor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.network.core_speed import CORTEX_A9
from hilt.network.elementwise import int8_steps
from hilt.network.graph import Graph
from hilt.network.layers import NotOnVtaError, TiledLayer, layer_of
from hilt.network.lower_slopes import Slopes
from hilt.network.lower_tiles import lower_tiles, tile_knobs
from hilt.network.processor import ProcessorSpeed
from hilt.network.reference import evaluate
from hilt.network.slopes import NoWeightsError, factors_of_steps, factors_of_table
from hilt.network.target import CompileTarget
from hilt.schedule import Rejected
from hilt.simulator.build import Form
from hilt.simulator.device import MemoryModel
from hilt.vta.accelerator import Accelerator, IsaRevision
from hilt.vta.isa import AluOpcode, Opcode

from . import test_lower_product, test_table
from .graphs import BATCHED, PYNQ, SMALL, Builder, banded, target, without_table
from .test_interpreted import TINY, all_are, of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_search")]  # runs programs on the golden model

ONE = 1 << 14
"""A factor of 1 in steps of 2^-14."""
VALUES = np.arange(-128, 128)
SHAPES = [(1, 40, 3, 5), (5, 19, 4, 2), (2, 8, 1, 1)]


def prelu(
    builder: Builder,
    data: str,
    upper: int = ONE,
    left: int = 1,
    lower: NDArray[np.int16] | None = None,
    offset: int | None = None,
) -> str:
    """Add a PRelu whose lower factors are random multiples of 2^-6."""
    name, channels = f"prelu{len(builder.nodes)}", builder.tensors[data].shape[1]
    drawn = builder.random.integers(-60, 80, channels) << 8
    factors = np.stack([np.full(channels, upper), drawn if lower is None else lower]).astype(np.int16)
    builder.constants[f"{name}.f"] = factors
    attributes = {"left": left} if offset is None else {"left": left, "offset": offset}
    return builder.add_node(name, "prelu", [data, f"{name}.f"], builder.tensors[data].shape, attributes)


def leaky(builder: Builder, data: str, slope: float = 102 / 1024) -> str:
    """Add the table of a LeakyRelu."""
    name = f"leaky{len(builder.nodes)}"
    builder.constants[f"{name}.t"] = int8_steps(np.where(VALUES < 0, slope * VALUES, VALUES).astype(np.float32), 1.0)
    return builder.add_node(name, "table", [data, f"{name}.t"], builder.tensors[data].shape, {})


def layer(graph: Graph, accelerator: Accelerator) -> TiledLayer:
    made = layer_of(graph, graph.nodes[-1], accelerator)
    assert isinstance(made, TiledLayer) and isinstance(made.work, Slopes)
    return made


def packed(array: NDArray[np.int8], accelerator: Accelerator, behind: int = 0) -> NDArray[np.int8]:
    """Return (N, C, H, W) of whole images lanes as it lies in memory, with `behind` behind the last channel."""
    batch, block = accelerator.parameters.batch, accelerator.parameters.block
    pads = ((0, -len(array) % batch), (0, -array.shape[1] % block), (0, 0), (0, 0))
    whole = np.pad(array, pads, constant_values=behind)
    parted = whole.reshape(-1, batch, whole.shape[1] // block, block, *whole.shape[2:])
    return np.ascontiguousarray(parted.transpose(0, 2, 4, 5, 1, 3))


@pytest.mark.parametrize("parameters", [PYNQ, SMALL, TINY, BATCHED])
@pytest.mark.parametrize(
    ("upper", "left", "shifts", "clips"),
    [
        (ONE, 1, (0, 7), False),  # the scales are one: only the lower product is shifted
        (ONE >> 1, 1, (7, 7), False),  # a coarser result: the larger product is shifted
        (ONE, 2, (0, 6), True),  # a finer one leaves int8
        (3 << 7, 1, (7, 7), False),
        (-5 << 7, 1, (7, 7), False),
    ],
)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_schedule_of_the_larger_product_is_right(
    shape: tuple[int, ...], upper: int, left: int, shifts: tuple[int, int], clips: bool, parameters: str
) -> None:
    builder = Builder(shape)
    lower = np.minimum(builder.random.integers(-127, 128, shape[1]) << 7, upper)
    lower[::3] = -127 << 7
    work = right(builder, prelu(builder, "x", upper, left, lower.astype(np.int16)), of(parameters))
    assert (work.shifts, work.mixed, bool(work.above)) == (shifts, (), clips)


@pytest.mark.parametrize("parameters", [PYNQ, SMALL, TINY, BATCHED])
@pytest.mark.parametrize(("upper", "left", "step"), [(64, 1, 8), (64, 1, 7), (64, 2, 8), (3, 1, 7), (-5, 1, 7)])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_schedule_of_differences_is_right(
    shape: tuple[int, ...], upper: int, left: int, step: int, parameters: str
) -> None:
    """Every third channel has the larger lower factor."""
    builder = Builder(shape)
    lower = np.minimum(builder.random.integers(-60, 128, shape[1]), upper)
    lower[::3] = upper + 1
    work = right(builder, prelu(builder, "x", upper << step, left, (lower << step).astype(np.int16)), of(parameters))
    assert work.mixed == tuple(range(work.blocks)) and work.shifts == (15 - left - step,) * 2


@pytest.mark.parametrize("parameters", [PYNQ, TINY, BATCHED])
@pytest.mark.parametrize(
    ("upper", "step", "offset", "adds"),
    [
        (127, 8, -60, {32 - (60 << 6)}),  # with the half that rounds
        (127, 2, 100, {1 << 11, 100}),  # an immediate has 16 bits
        (64, 8, -124, {32 - (124 << 6)}),
        (-5, 8, 255, {32 + (255 << 6)}),
    ],
)
def test_a_constant_is_added_to_all_results(
    upper: int, step: int, offset: int, adds: set[int], parameters: str
) -> None:
    """One shift serves both products, though the upper ones would need none."""
    builder, accelerator = Builder((1, 40, 3, 5)), of(parameters)
    lower = np.minimum(builder.random.integers(-60, 128, 40), upper)
    output = prelu(builder, "x", upper << step, 1, (lower << step).astype(np.int16), offset)
    right(builder, output, accelerator)
    work = layer(builder.graph(output), of(PYNQ)).work
    records = lower_tiles(work, {"factors": 1, "pixels": 15}, of(PYNQ)).records
    added = records[(records["opcode"] == Opcode.ALU) & (records["alu_opcode"] == AluOpcode.ADD)]
    assert set(added["imm"].tolist()) == adds


@pytest.mark.parametrize("parameters", [PYNQ, TINY])
def test_a_constant_is_added_where_slopes_above_one_are(parameters: str) -> None:
    builder = Builder((1, 40, 3, 5))
    lower = np.full(40, 3 << 8, np.int16)
    lower[::3] = ONE + (5 << 8)
    work = right(builder, prelu(builder, "x", lower=lower, offset=-100), of(parameters))
    assert work.mixed and work.below == tuple(range(work.blocks))


def right(builder: Builder, output: str, accelerator: Accelerator) -> Slopes:
    """Run every schedule of a PRelu of the input that fits, compare it with the reference, and return the layer."""
    graph = builder.graph(output)
    made, data = layer(graph, accelerator), builder.input()
    data[:, ::3] = np.where(builder.random.integers(0, 2, data[:, ::3].shape), -128, 127)
    assert isinstance(made.work, Slopes)
    expected = packed(evaluate(graph, {"x": data})[output], accelerator, int(np.clip(made.work.offset, -128, 127)))
    inputs = {"inp": packed(data, accelerator), **made.constants}
    ran = all_are(expected, made.work, inputs, accelerator)
    assert ran == len(tile_knobs(made.work)) if accelerator.parameters.name != TINY else ran > 0
    return made.work


def test_blocks_alone_that_have_a_slope_above_one_take_minima() -> None:
    builder, accelerator = Builder((1, 64, 8, 8)), of(PYNQ)
    lower = np.full(64, 3 << 8, np.int16)
    lower[37] = ONE + (5 << 8)
    graph = builder.graph(prelu(builder, "x", lower=lower))
    made = layer(graph, accelerator)
    assert isinstance(made.work, Slopes) and (made.work.mixed, made.work.below, made.work.above) == ((2,), (2,), ())
    records = lower_tiles(made.work, {"factors": 1, "pixels": 64}, accelerator).records
    minima = records[(records["alu_opcode"] == AluOpcode.MIN) & (records["opcode"] == Opcode.ALU)]
    minima = minima[minima["use_imm"] == 0]
    assert minima["iter_in"].tolist() == [64]
    assert (records["imm"] == -128).sum() == 1 and not (records["imm"] == 127).any()
    right(builder, graph.outputs[0], accelerator)


def test_weights_that_do_not_fit_on_chip_are_refused() -> None:
    accelerator = of("1x8_i8w8a32_10_10_9_11")
    with pytest.raises(Rejected, match="5 blocks of channels take 10"):
        lower_tiles(Slopes(5, 1, 5, (0, 7)), {"factors": 1, "pixels": 1}, accelerator)


@pytest.mark.parametrize("shift", range(16))
def test_all_factors_of_seven_bits_are_products(shift: int) -> None:
    """All int8 weights as lower factors, whose products are shifted right by so much, with the largest upper one."""
    for left in range(5):
        below = 15 - left - shift
        if below < 0 or 127 << below >= 1 << 15:
            continue
        steps = np.arange(-127, 128) << below
        upper = np.full(255, steps[-1])
        found = factors_of_steps(np.stack([upper, steps]).astype(np.int16), left, 0)
        shifted = [
            (weights[:, None].astype(np.int64) * VALUES + (1 << by >> 1)) >> by
            for weights, by in zip(found.weights, found.shifts, strict=True)
        ]
        exact = np.where(VALUES < 0, steps[:, None] * VALUES, upper[:, None] * VALUES) << left
        np.testing.assert_array_equal(np.maximum(*shifted), (exact + (1 << 14)) >> 15)


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        ([[ONE, ONE], [1 << 7, 1]], "more than 7 bits"),
        ([[ONE, ONE + 1], [0, 0]], "more than 7 bits"),
        ([[ONE, ONE], [71 << 8, -71 << 8]], "further apart"),
    ],
)
def test_other_factors_stay_on_the_processor(factors: list[list[int]], words: str) -> None:
    """So do those of files that were quantised before slopes had 7 bits: their integers stay."""
    with pytest.raises(NoWeightsError, match=words):
        factors_of_steps(np.array(factors, np.int16), 1, 0)
    builder = Builder((1, 2, 4, 4))
    builder.constants["f"] = np.array(factors, np.int16)
    wide = builder.conv("x", 2)
    graph = builder.graph(builder.conv(builder.add_node("p", "prelu", [wide, "f"], (1, 2, 4, 4), {"left": 1}), 3))
    made = test_lower_product.verified(graph, builder.input())
    assert [placement.on_vta for placement in made.placements] == [True, False, True]
    assert words in made.placements[1].reason


@pytest.mark.parametrize("parameters", [PYNQ, SMALL, BATCHED])
@pytest.mark.parametrize("images", [1, 3])
def test_a_network_of_prelus_is_one_program(parameters: str, images: int) -> None:
    builder = Builder((images, 12, 9, 7))
    first = prelu(builder, builder.conv("x", 40))
    second = prelu(builder, builder.conv(first, 40, residual=first), ONE >> 1)
    made = test_lower_product.verified(builder.graph(builder.conv(second, 5)), builder.input(), parameters)
    assert all(placement.on_vta for placement in made.placements)
    assert len(made.manifest["programs"]) == 1


def test_lanes_of_bands_take_their_own_rows() -> None:
    builder = Builder((1, 24, 11, 5))
    graph = builder.graph(builder.conv(prelu(builder, builder.conv("x", 24)), 8))
    aim = banded(replace(target(BATCHED), processor=test_table.SLOW))
    made = test_table.verified(graph, replace(aim, bands=True), builder.input())
    assert all(placement.on_vta for placement in made.placements)


def test_the_channels_that_a_slice_takes_are_their_own() -> None:
    builder = Builder((1, 12, 6, 6))
    wide = builder.conv("x", 40)
    bounds = {"starts": [5], "ends": [29], "axes": [1], "steps": [1]}
    part = builder.add_node("part", "slice", [wide], (1, 24, 6, 6), bounds)
    graph = builder.graph(builder.conv(prelu(builder, part), 8), wide)
    made = test_table.verified(graph, replace(target(), processor=test_table.SLOW), builder.input())
    assert all(placement.on_vta for placement in made.placements)


def test_lanes_behind_the_last_channel_stay_zero() -> None:
    """So a Pad that adds channels within the last block is an address."""
    builder = Builder((1, 12, 6, 6))
    made = prelu(builder, builder.conv("x", 20))
    pads = {"pads": [0, 0, 0, 0, 0, 12, 0, 0], "value": 0}
    wider = builder.add_node("wider", "pad", [made], (1, 32, 6, 6), pads)
    graph = builder.graph(builder.conv(wider, 32, residual=wider))
    compiled = test_lower_product.verified(graph, builder.input())
    assert next(each for each in compiled.placements if each.node.op == "pad").view


def test_lanes_behind_the_last_channel_have_the_constant() -> None:
    """So a Pad with zeros is none of the addresses."""
    builder = Builder((1, 12, 6, 6))
    made = prelu(builder, builder.conv("x", 20), offset=-50)
    pads = {"pads": [0, 0, 0, 0, 0, 12, 0, 0], "value": 0}
    wider = builder.add_node("wider", "pad", [made], (1, 32, 6, 6), pads)
    graph = builder.graph(builder.conv(wider, 32, residual=wider))
    compiled = test_lower_product.verified(graph, builder.input())
    assert not next(each for each in compiled.placements if each.node.op == "pad").view


def both_forms(accelerator: Accelerator, form: Form) -> None:
    """Run a network of a PRelu that takes the larger product, and of two of differences."""
    builder = Builder((1, 12, 6, 5))
    data = builder.conv("x", 24)
    small = builder.random.integers(-127, 128, 24) << 7
    for left, lower, offset in ((1, small.astype(np.int16), -64), (1, None, 90), (2, None, None)):
        data = builder.conv(prelu(builder, data, ONE, left, lower, offset), 24)
    aim = CompileTarget("test", accelerator, MemoryModel(base=0x1000_0000), processor=test_table.SLOW)
    made = test_table.verified(builder.graph(data), aim, builder.input(), form)
    works = [each.layer.work for each in made.placements if isinstance(each.layer, TiledLayer)]
    assert [isinstance(work, Slopes) and bool(work.mixed) for work in works] == [False, True, True]
    assert len(made.manifest["programs"]) == 1


@pytest.mark.rtl
@pytest.mark.parametrize(("parameters", "isa"), test_lower_product.ON_RTL)
def test_the_rtl_runs_prelus_in_the_twins_cycles(parameters: str, isa: IsaRevision) -> None:
    both_forms(test_lower_product.of(parameters, isa=isa), "rtl")


def test_no_sum_is_lost_without_an_interlock() -> None:
    both_forms(test_lower_product.of(PYNQ, "none", IsaRevision.A), "golden")


def test_without_a_table_a_leaky_relu_is_products() -> None:
    builder = Builder((1, 12, 9, 7))
    graph = builder.graph(builder.conv(leaky(builder, builder.conv("x", 24)), 8))
    slow = replace(target(), processor=test_table.SLOW)
    plain = test_table.verified(graph, without_table(slow), builder.input())
    assert [each.on_vta for each in plain.placements] == [True, True, True] and not plain.manifest["inside"]
    stored = test_table.verified(graph, slow, builder.input())
    assert stored.placements[1].epilogue


@pytest.mark.parametrize(
    ("upper", "lower"), [(1.0, 102 / 1024), (1.0, -1.0), (2.0, 127 / 512), (1.0, 1.0), (0.0, -2.0), (1.0, 2.0)]
)
@pytest.mark.parametrize("offset", [0, -55, 3])
def test_the_products_of_a_table_are_its_entries(upper: float, lower: float, offset: int) -> None:
    """But for a constant."""
    products = np.where(VALUES < 0, lower * VALUES, upper * VALUES) + offset
    entries = int8_steps(products.astype(np.float32), 1.0)
    found = factors_of_table(entries, 3)
    weights = found.weights.astype(np.int64)[:, :, None]
    shifts = np.array(found.shifts)[:, None, None]
    upper_one, lower_one = (weights * VALUES + (1 << shifts >> 1)) >> shifts
    taken = np.where(VALUES < 0, lower_one, upper_one) + found.offset
    np.testing.assert_array_equal(np.clip(taken, -128, 127), np.tile(entries, (3, 1)))
    work = found.work(1, 1, 16)
    assert (work.below, work.above) == ((0,) * bool(taken.min() < -128), (0,) * bool(taken.max() > 127))


@pytest.mark.parametrize(
    "entries",
    [np.tanh(VALUES / 40) * 127, np.where(VALUES < 0, 0.1 * VALUES, VALUES)],
    ids=["Tanh", "a slope whose ties ONNX rounds to even"],
)
def test_a_table_of_other_entries_stays_on_the_processor(entries: NDArray[np.float64]) -> None:
    with pytest.raises(NoWeightsError, match="no multiples"):
        factors_of_table(int8_steps(entries.astype(np.float32), 1.0), 1)


def test_a_table_of_other_entries_is_no_layer_without_a_table() -> None:
    builder = Builder((1, 16, 4, 4))
    graph = builder.graph(test_table.table(builder, "x"))
    with pytest.raises(NotOnVtaError, match="looks nothing up"):
        layer_of(graph, graph.nodes[0], without_table(target()).accelerator)


@pytest.mark.parametrize(("size", "on_vta"), [(96, True), (3, False)])
def test_the_faster_side_computes_it(size: int, on_vta: bool) -> None:
    """VTA saves 4 cycles of 100 MHz a block of an image; a small tensor between the processor's steps stays there."""
    builder = Builder((1, 16, size, size))
    data = builder.conv("x", 16, 1) if on_vta else "x"
    graph = builder.graph(prelu(builder, data))
    made, _ = test_lower_product.compiled(graph, speed=ProcessorSpeed(CORTEX_A9, 1.0, "assumed"))
    assert made.placements[-1].on_vta == on_vta
    assert on_vta or "the processor takes" in made.placements[-1].reason
