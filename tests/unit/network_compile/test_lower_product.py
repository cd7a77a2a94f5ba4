"""Products of two tensors: every schedule is right on the golden model and the RTL, and compiled networks are exact."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.network.compile import Compiled, compile_network
from hilt.network.core_speed import CORTEX_A9
from hilt.network.graph import Graph
from hilt.network.layers import NotOnVtaError, layer_of
from hilt.network.lower_gate import added_input, unit_blocks
from hilt.network.lower_tiles import lower_tiles, tile_knobs
from hilt.network.processor import ProcessorSpeed
from hilt.network.product_tiles import Product
from hilt.network.reference import evaluate
from hilt.network.search import Searcher
from hilt.network.simulated import SimulatedVta
from hilt.network.target import CompileTarget
from hilt.network.tile_writer import ADDED, FACTOR, ROWS, UNITS
from hilt.network.verify import compare
from hilt.schedule import Rejected
from hilt.schedule.fused import alone
from hilt.schedule.residual import IDENTITY, identity_block
from hilt.simulator.build import Form, quick_build
from hilt.simulator.device import DeviceStatus, MemoryModel
from hilt.simulator.program_run import run_program
from hilt.vta.accelerator import Accelerator, Hazards, IsaRevision
from hilt.vta.parameters import VTAParameters
from hilt_runtime import Network, read_bundle

from .graphs import BATCHED, PYNQ, SMALL, Builder

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_search")]  # runs programs on the golden model

SLOW = ProcessorSpeed(CORTEX_A9, 1000.0, "made slow, so that VTA is chosen")
PRODUCTS = [
    Product(1, 1, 0, (-128, 127)),
    Product(37, 1, 7, (-128, 127)),
    Product(900, 1, 6, (-100, 90)),
    Product(5, 49, 7, (0, 127)),
    Product(3, 700, 15, (-128, 127)),
    Product(2, 1, 14, (-3, 3)),
    Product(70, 13, 1, (-128, 127)),
    Product(5, 49, 7, (0, 127), (120, -116)),
    Product(33, 1, 0, (-128, 127), (-254, 0)),
    Product(3, 70, 14, (-128, 127), (200, 100)),
]

ON_RTL = [(SMALL, IsaRevision.A), (PYNQ, IsaRevision.B)]
"""Builds that other tests have, too."""


def of(parameters: str, hazards: Hazards = "interlock", isa: IsaRevision | None = IsaRevision.B) -> Accelerator:
    return Accelerator.for_parameters(VTAParameters.from_name(parameters), isa, hazards=hazards)


def operands(product: Product, accelerator: Accelerator) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Return data (factors, pixels, elements) and factors (factors, 1, elements), the extremes among them."""
    elements = accelerator.parameters.batch * accelerator.parameters.block
    random = np.random.default_rng(product.factors)
    data = random.integers(-128, 128, (product.factors, product.pixels, elements)).astype(np.int8)
    factor = random.integers(-128, 128, (product.factors, 1, elements)).astype(np.int8)
    data[0, 0, :4], factor[0, 0, :4] = (-128, -128, 127, 127), (-128, 127, 127, -128)
    return data, factor


def right(product: Product, accelerator: Accelerator, form: Form = "golden") -> list[int]:
    """Run every schedule that fits, compare it with numpy, and return the cycles of each."""
    data, factor = operands(product, accelerator)
    front, behind = product.offsets
    products = (data.astype(np.int64) + front) * factor
    rounded = ((products + ((1 << product.shift) >> 1)) >> product.shift) + behind
    expected = np.clip(rounded, *product.clip).astype(np.int8)
    rows = np.zeros((product.factors, *unit_blocks(accelerator).shape[1:]), np.int8)
    constants = {IDENTITY: identity_block(0, accelerator), UNITS: unit_blocks(accelerator)}
    if front:
        constants[ADDED] = added_input(front, accelerator)
    given = {"inp": data, FACTOR: factor, ROWS: rows, **constants}
    sizes = {"out": expected.nbytes} | {name: array.nbytes for name, array in given.items()}
    library = quick_build(accelerator, form)
    cycles = []
    for knobs in tile_knobs(product):
        try:
            code = lower_tiles(product, knobs, accelerator)
        except Rejected:
            continue
        program = alone(code, sizes, accelerator)
        inputs = {name: given[name] for name in code.names if name in given}
        run = run_program(library, program, inputs, max_cycles=1 << 30)
        assert run.execution.status is DeviceStatus.DONE, knobs
        assert np.array_equal(run.output, expected.ravel()), knobs
        cycles.append(run.execution.cycles)
    return cycles


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda each: f"{each.factors}x{each.pixels}>>{each.shift}")
@pytest.mark.parametrize(
    ("parameters", "hazards", "isa"),
    [
        (PYNQ, "interlock", IsaRevision.B),
        (PYNQ, "none", IsaRevision.B),
        (SMALL, "interlock", IsaRevision.WIDE),
        (BATCHED, "interlock", IsaRevision.B),
    ],
)
def test_every_schedule_of_a_product_is_right(
    product: Product, parameters: str, hazards: Hazards, isa: IsaRevision
) -> None:
    assert len(right(product, of(parameters, hazards, isa))) >= len(tile_knobs(product)) // 2


@pytest.mark.parametrize(
    "product",
    [Product(1, 1, 0, (-128, 127)), Product(5, 49, 7, (0, 127)), Product(3, 700, 15, (-128, 127)),
     Product(70, 13, 1, (-128, 127)), Product(150, 9, 6, (-100, 90)), Product(5, 49, 7, (0, 127), (120, -116)),
     Product(33, 1, 0, (-128, 127), (-254, 0)), Product(3, 70, 14, (-128, 127), (200, 100))],
    ids=lambda each: f"{each.factors}x{each.pixels}>>{each.shift}",
)  # fmt: skip
@pytest.mark.parametrize(
    ("parameters", "hazards", "isa"),
    [(PYNQ, "interlock", IsaRevision.A), (PYNQ, "none", IsaRevision.A), (SMALL, "interlock", IsaRevision.A)],
)
def test_every_schedule_of_a_gate_without_mul_is_right(
    product: Product, parameters: str, hazards: Hazards, isa: IsaRevision
) -> None:
    assert len(right(product, of(parameters, hazards, isa))) >= len(tile_knobs(product)) // 2


@pytest.mark.rtl
@pytest.mark.parametrize(("parameters", "isa"), ON_RTL)
def test_the_rtl_multiplies_and_the_twin_counts_its_cycles(parameters: str, isa: IsaRevision) -> None:
    accelerator, product = of(parameters, isa=isa), Product(6, 20, 6, (-128, 127), (124, -90))
    cycles = right(product, accelerator, "rtl")
    schedule = Searcher(accelerator, MemoryModel(base=0x1000_0000)).tile_schedule("gate", product)
    assert schedule.cycles == min(cycles)


@pytest.mark.parametrize(("product", "beats"), [(Product(64, 196, 7, (0, 9)), 4), (Product(12544, 1, 7, (0, 9)), 6)])
def test_a_product_is_as_fast_as_memory(product: Product, beats: int) -> None:
    """An element of 16 bytes is two beats of the bus: read, for a factor of each element read too, and written."""
    schedule = Searcher(of(PYNQ), MemoryModel(base=0x1000_0000)).tile_schedule("product", product)
    assert schedule.cycles < 1.05 * beats * product.factors * product.pixels


def compiled(
    graph: Graph, parameters: str = PYNQ, isa: IsaRevision = IsaRevision.B, speed: ProcessorSpeed = SLOW
) -> tuple[Compiled, CompileTarget]:
    aim = CompileTarget("test", of(parameters, isa=isa), MemoryModel(base=0x1000_0000), processor=speed)
    return compile_network(graph, aim), aim


def verified(
    graph: Graph,
    data: NDArray[np.int8],
    parameters: str = PYNQ,
    isa: IsaRevision = IsaRevision.B,
    form: Form = "golden",
) -> Compiled:
    """Compile, run with all tensors kept, compare each with the reference's, and run with memory shared."""
    made, aim = compiled(graph, parameters, isa)
    bundle, expected = read_bundle(made.data, "m"), evaluate(graph, {"x": data})
    with SimulatedVta(aim, form) as device:
        inference = Network(bundle, device, keep=True).run({"x": data})
        shared = Network(bundle, device).run({"x": data})
    assert compare(inference.tensors, expected, graph).tensors == len(graph.tensors)
    for name, value in shared.outputs.items():
        np.testing.assert_array_equal(value, expected[name])
    return made


def multiply(
    builder: Builder,
    one: str,
    other: str,
    shift: int = 6,
    clip: tuple[int, int] = (-128, 127),
    offsets: tuple[int, int] = (0, 0),
) -> str:
    shape = tuple(map(max, builder.tensors[one].shape, builder.tensors[other].shape))
    name, attributes = f"product{len(builder.nodes)}", {"shift": shift, "clip": list(clip)}
    if any(offsets):
        attributes["offsets"] = list(offsets)
    return builder.add_node(name, "multiply", [one, other], shape, attributes)


def mean(builder: Builder, data: str) -> str:
    """Add the mean over the images, of 2^k pixels."""
    images, channels, height, width = builder.tensors[data].shape
    attributes = {"divisor": 1, "shift": int(np.log2(height * width)), "clip": [-128, 127]}
    return builder.add_node(
        f"mean{len(builder.nodes)}", "global_average_pool", [data], (images, channels, 1, 1), attributes
    )


def gated(
    shape: tuple[int, int, int, int], swap: bool = False, offsets: tuple[int, int] = (0, 0)
) -> tuple[Builder, Graph]:
    """Return a convolution, a squeeze-and-excitation gate on it, and a convolution behind."""
    builder = Builder(shape)
    wide = builder.conv("x", 24)
    small = builder.conv(mean(builder, wide), 8, 1, clip=[0, 127], shift=[4])
    gate = builder.conv(small, 24, 1, clip=[0, 64], shift=[4])
    product = multiply(builder, *((gate, wide) if swap else (wide, gate)), offsets=offsets)
    return builder, builder.graph(builder.conv(product, 16, 1))


@pytest.mark.parametrize(
    ("parameters", "isa"),
    [
        (PYNQ, IsaRevision.A),
        (PYNQ, IsaRevision.B),
        (SMALL, IsaRevision.A),
        (SMALL, IsaRevision.WIDE),
        (BATCHED, IsaRevision.B),
    ],
)
@pytest.mark.parametrize(("images", "swap"), [(1, False), (3, True), (4, False)])
def test_a_gated_network_is_one_program(parameters: str, isa: IsaRevision, images: int, swap: bool) -> None:
    builder, graph = gated((images, 12, 4, 8), swap)
    made = verified(graph, builder.input(), parameters, isa)
    assert [placement.node.name for placement in made.placements if not placement.on_vta] == []
    assert len(made.manifest["programs"]) == 1
    assert not any(step["kind"] == "cpu" for step in made.manifest["steps"])


@pytest.mark.parametrize(("parameters", "isa"), [(PYNQ, IsaRevision.A), (SMALL, IsaRevision.A), (PYNQ, IsaRevision.B)])
@pytest.mark.parametrize("offsets", [(124, -90), (-128, 0), (0, 77), (254, -128)])
def test_a_product_that_adds_to_its_data_and_its_result_is_exact(
    parameters: str, isa: IsaRevision, offsets: tuple[int, int]
) -> None:
    builder, graph = gated((1, 20, 4, 8), offsets=offsets)
    made = verified(graph, builder.input(), parameters, isa)
    assert all(placement.on_vta for placement in made.placements)


@pytest.mark.parametrize("isa", [IsaRevision.A, IsaRevision.B])
def test_a_number_that_no_inputs_make_up_stays_on_the_processor_of_revision_a(isa: IsaRevision) -> None:
    _, graph = gated((1, 12, 4, 4), offsets=(129, 0))
    node = next(node for node in graph.nodes if node.op == "multiply")
    if isa is IsaRevision.B:
        assert layer_of(graph, node, of(PYNQ, isa=isa)).output == node.outputs[0]
        return
    with pytest.raises(NotOnVtaError, match="129 is added"):
        layer_of(graph, node, of(PYNQ, isa=isa))


def test_what_is_added_to_the_second_operand_alone_is_the_processors() -> None:
    """The gate has the offset, and VTA adds to the data."""
    _, graph = gated((1, 12, 4, 4), swap=True, offsets=(3, 0))
    node = next(node for node in graph.nodes if node.op == "multiply")
    with pytest.raises(NotOnVtaError, match="adds to its factor"):
        layer_of(graph, node, of(PYNQ))


@pytest.mark.parametrize(
    ("shape", "other"),
    [
        ((1, 20, 7, 9), (7, 9)),
        ((2, 17, 5, 3), (5, 1)),
        ((1, 16, 1, 11), (1, 1)),
        ((1, 40, 13, 1), (13, 1)),
        ((1, 3, 31, 29), (1, 1)),
    ],
)
@pytest.mark.parametrize(("shift", "clip"), [(0, (-128, 127)), (7, (-128, 127)), (14, (-1, 1)), (5, (0, 127))])
def test_products_of_odd_shapes_are_exact(
    shape: tuple[int, ...], other: tuple[int, int], shift: int, clip: tuple[int, int]
) -> None:
    builder = Builder(shape)
    first, second = (builder.conv("x", shape[1], 1, shift=[3]) for _ in range(2))
    kernel = [size // left for size, left in zip(shape[2:], other, strict=True)]
    attributes = {"kernel": kernel, "strides": [1, 1], "pads": [0, 0, 0, 0]}
    second = builder.add_node("part", "max_pool", [second], (*shape[:2], *other), attributes)
    made = verified(builder.graph(multiply(builder, first, second, shift, clip)), builder.input())
    assert made.placements[-1].on_vta


def test_a_square_and_a_product_of_vectors_are_exact() -> None:
    builder = Builder((5, 30))
    square = multiply(builder, "x", "x", 7)
    graph = builder.graph(multiply(builder, square, builder.dense("x", 30), 7))
    made = verified(graph, builder.input())
    assert all(placement.on_vta for placement in made.placements)


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ((2, 16, 4, 4), (1, 16, 1, 1), "repeats pixels only"),
        ((1, 16, 4, 4), (1, 1, 4, 4), "repeats pixels only"),
        ((1, 16, 4, 4), (1, 16, 1, 4), "repeats pixels only"),
        ((1, 16, 4, 1), (1, 16, 1, 4), "repeats pixels only"),
    ],
)
def test_products_that_repeat_otherwise_stay_on_the_processor(
    one: tuple[int, ...], other: tuple[int, ...], words: str
) -> None:
    builder = Builder(one)
    bounds = {"starts": [0] * 4, "ends": list(other), "axes": [0, 1, 2, 3], "steps": [1] * 4}
    part = builder.add_node("part", "slice", ["x"], other, bounds)
    graph = builder.graph(multiply(builder, "x", part))
    with pytest.raises(NotOnVtaError, match=words):
        layer_of(graph, graph.nodes[-1], of(PYNQ))


@pytest.mark.rtl
@pytest.mark.parametrize(("parameters", "isa"), ON_RTL)
def test_the_rtl_runs_a_gated_network_in_the_twins_cycles(parameters: str, isa: IsaRevision) -> None:
    """Two gates in one chain: the weight blocks of each are stored before they are loaded."""
    builder = Builder((1, 12, 4, 4))
    data = builder.conv("x", 24)
    for _ in range(2):
        gate = builder.conv(mean(builder, data), 24, 1, clip=[0, 127], shift=[4])
        data = builder.conv(multiply(builder, data, gate), 24, 1, shift=[7])
    graph = builder.graph(data)
    made, aim = compiled(graph, parameters, isa)
    inputs = {"x": builder.input()}
    with SimulatedVta(aim, "rtl") as device:
        inference = Network(read_bundle(made.data, "m"), device, keep=True).run(inputs)
    compare(inference.tensors, evaluate(graph, inputs), graph)
    counted = [step.cycles for step in inference.steps if step.kind == "vta"]
    assert counted == [program["cycles"] for program in made.manifest["programs"]] and len(counted) == 1


@pytest.mark.parametrize(("parameters", "whole"), [(PYNQ, True), (BATCHED, False)])
def test_revision_a_multiplies_by_gates_only(parameters: str, whole: bool) -> None:
    builder, graph = gated((1, 12, 4, 4))
    node = next(node for node in graph.nodes if node.op == "multiply")
    if whole:
        assert layer_of(graph, node, of(parameters, isa=IsaRevision.A)).output == node.outputs[0]
        graph = builder.graph(multiply(builder, "x", "x"))
        node = graph.nodes[-1]
    with pytest.raises(NotOnVtaError, match="revision A"):
        layer_of(graph, node, of(parameters, isa=IsaRevision.A))


def test_a_product_whose_neighbours_are_the_processors_stays_there() -> None:
    """Packing both and one more start cost more than the product."""
    builder = Builder((1, 16, 4, 4))
    moved = builder.add_node("moved", "transpose", ["x"], (1, 16, 4, 4), {"perm": [0, 1, 3, 2]})
    graph = builder.graph(multiply(builder, "x", moved))
    made, _ = compiled(graph, speed=ProcessorSpeed(CORTEX_A9, 1.0, "assumed"))
    assert not made.placements[-1].on_vta
    assert "the processor takes" in made.placements[-1].reason


@pytest.mark.parametrize(("parameters", "images"), [(PYNQ, 1), (SMALL, 2), (BATCHED, 4)])
@pytest.mark.parametrize("swap", [False, True])
def test_a_gate_of_pixels_is_multiplied_where_vta_left_the_image(parameters: str, images: int, swap: bool) -> None:
    """An attention over pixels: nothing is unpacked or packed around the product."""
    builder = Builder((images, 12, 9, 7))
    wide = builder.conv("x", 40)
    gate = builder.conv(wide, 1, 1, clip=[0, 64])
    product = multiply(builder, *((gate, wide) if swap else (wide, gate)))
    made = verified(builder.graph(builder.conv(product, 16, 1)), builder.input(), parameters, IsaRevision.A)
    (step,) = (step for step in made.manifest["steps"] if step.get("op") == "multiply")
    assert step["attributes"]["by_pixel"] == int(not swap) and set(step["packed"]) == {
        *step["inputs"],
        *step["outputs"],
    }
