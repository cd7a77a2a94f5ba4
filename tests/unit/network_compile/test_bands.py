"""Layers of one image in batch lanes, on the golden model: every tensor is the reference's, whatever the schedule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.network.band_layers import placed_layer
from hilt.network.bands import ANY, ZEROS, Bands
from hilt.network.compile import compile_network
from hilt.network.graph import Graph, GraphError, Node, Tensor
from hilt.network.layers import NotOnVtaError, TiledLayer, VtaLayer
from hilt.network.lower_layer import bias_constants, layer_code
from hilt.network.lower_tiles import tile_knobs
from hilt.network.packed_layout import PackedLayout
from hilt.network.pool_tiles import PoolingLayer
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt.network.target import CompileTarget, NoBandsError, aimed
from hilt.network.tuned_forms import tuned_network
from hilt.network.verify import compare, inside_of
from hilt.network.window_layers import windowed
from hilt.run_choices import Aim, SpaceName
from hilt.schedule import Rejected, load_convolution, space_for
from hilt.schedule.code import Code
from hilt.schedule.fused import alone
from hilt.schedule.residual import IDENTITY, identity_block
from hilt.simulator.build import build
from hilt.simulator.device import DeviceStatus, MemoryModel
from hilt.simulator.program_run import run_program
from hilt.vta.accelerator import Accelerator, IsaRevision
from hilt.vta.isa import Opcode
from hilt.vta.layout import pack_weights
from hilt.vta.parameters import VTAParameters
from hilt_runtime import BundleError, Network, TargetError, layout, read_bundle

from .graphs import Builder, residual_network
from .test_hostile_bundle import Parts

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_search")]  # runs programs on the golden model

TWO = Accelerator.for_parameters(VTAParameters.from_name("2x8_i8w8a32_13_14_14_15"), bands=True)
WINDOWS = Accelerator.for_parameters(VTAParameters.from_name("2x16_i8w8a32_15_15_18_17"), bands=True)
FOUR = Accelerator.for_parameters(VTAParameters.from_name("4x8_i8w8a32_15_16_16_18"), bands=True)
_PROGRAMS = 10
"""Schedules of a layer that are run, row programs among them."""


def aim(accelerator: Accelerator) -> CompileTarget:
    return CompileTarget("test", accelerator, MemoryModel(base=0x1000_0000), bands=accelerator.bands)


def convolution(shape: tuple[int, int, int], channels: int, kernel: int, **more: Any) -> Graph:
    builder = Builder((1, *shape), 5)
    return builder.graph(builder.conv("x", channels, kernel, **more))


def with_residual(channels: int = 16) -> Graph:
    builder = Builder((1, 16, 7, 5), 5)
    return builder.graph(builder.conv("x", channels, residual="x", residual_shift=8))


def pool(op: str, shape: tuple[int, int], out: tuple[int, int], **attributes: Any) -> Graph:
    builder = Builder((1, 20, *shape), 5)
    return builder.graph(builder.add_node("pool", op, ["x"], (1, 20, *out), attributes))


def upsampled(rows: int, factors: tuple[int, int]) -> Graph:
    builder = Builder((1, 20, rows, 5), 5)
    shape = (1, 20, rows * factors[0], 5 * factors[1])
    return builder.graph(builder.add_node("larger", "upsample", ["x"], shape, {"factors": list(factors)}))


def interpolated(rows: int, factors: tuple[int, int], centred: int = 1) -> Graph:
    builder = Builder((1, 20, rows, 5), 5)
    attributes = {"factors": list(factors), "centred": centred}
    shape = (1, 20, rows * factors[0], 5 * factors[1])
    return builder.graph(builder.add_node("larger", "interpolate", ["x"], shape, attributes))


def spread(rows: int, block: tuple[int, int]) -> Graph:
    builder = Builder((1, 16 * block[0] * block[1], rows, 5), 5)
    attributes = {"block": list(block), "mode": "DCR"}
    return builder.graph(
        builder.add_node("larger", "depth_to_space", ["x"], (1, 16, rows * block[0], 5 * block[1]), attributes)
    )


def looked_up() -> Graph:
    """Return a table of a tensor that VTA does not make: a copy by way of the table."""
    builder = Builder((1, 20, 7, 5), 5)
    builder.constants["entries"] = builder.random.integers(-128, 128, 256).astype(np.int8)
    return builder.graph(builder.add_node("table", "table", ["x", "entries"], (1, 20, 7, 5), {}))


AVERAGE: dict[str, Any] = {"divisor": 1, "shift": 5, "clip": [-128, 127]}
LAYERS = {
    "of whole bands": convolution((16, 8, 6), 16, 3),
    "with one row too few": convolution((8, 7, 5), 24, 3),
    "of fewer rows than lanes": convolution((8, 3, 4), 8, 3),
    "of one row": convolution((8, 1, 6), 8, 3),
    "with a stride, aligned": convolution((8, 16, 8), 16, 3, stride=2),
    "with a stride, bands shifted": convolution((16, 14, 6), 8, 3, stride=2),
    "with a stride over odd rows": convolution((8, 9, 9), 8, 3, stride=2),
    "of single pixels": convolution((24, 9, 5), 16, 1),
    "of single pixels with a stride": convolution((16, 14, 7), 16, 1, stride=2),
    "with a large kernel and a stride": convolution((4, 21, 20), 8, 7, stride=2),
    "with an even kernel": convolution((8, 10, 6), 8, 2, pads=[1, 1, 0, 0]),
    "with holes": convolution((8, 12, 9), 8, 3, dilation=2),
    "by channel": convolution((16, 11, 6), 16, 3, groups=16),
    "with shifts by block": convolution((16, 6, 6), 16, 3, shift=[7] * 8 + [9] * 8),
    "with a residual": with_residual(),
    "with a residual of fewer blocks": with_residual(40),
    "a maximum with a stride": pool("max_pool", (12, 12), (6, 6), kernel=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    "a maximum of neighbours": pool("max_pool", (7, 6), (7, 6), kernel=[5, 5], strides=[1, 1], pads=[2, 2, 2, 2]),
    "a maximum past the end": pool("max_pool", (16, 8), (8, 4), kernel=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1]),
    "an upsampling": upsampled(8, (2, 3)),
    "an upsampling of columns": upsampled(7, (1, 2)),
    "an interpolation": interpolated(8, (2, 4)),
    "an interpolation of begins": interpolated(12, (2, 2), 0),
    "an interpolation of columns, one row too few": interpolated(7, (1, 2)),
    "channels that become pixels": spread(8, (2, 2)),
    "an average": pool("average_pool", (9, 6), (4, 3), kernel=[2, 2], strides=[2, 2], pads=[0, 0, 0, 0], **AVERAGE),
}


@pytest.mark.parametrize("accelerator", [TWO, FOUR], ids=["two lanes", "four lanes"])
@pytest.mark.parametrize("name", LAYERS)
def test_every_schedule_of_a_layer_in_bands_is_right(name: str, accelerator: Accelerator) -> None:
    graph = LAYERS[name]
    run_schedules(graph, banded(graph, graph.nodes[-1], accelerator), accelerator)


@pytest.mark.parametrize(
    ("accelerator", "rows", "runs"),
    [(TWO, 7, (4, 3)), (TWO, 4, (2, 2)), (TWO, 1, (1,)), (FOUR, 3, (1, 1, 1))],
    ids=["two lanes, odd", "two lanes, even", "one row", "four lanes"],
)
def test_every_schedule_of_a_mean_over_bands_is_right(
    accelerator: Accelerator, rows: int, runs: tuple[int, ...]
) -> None:
    """A tile of several planes has a LOAD for the rows of each band, of all planes."""
    graph = pool("average_pool", (rows, 5), (1, 1), kernel=[rows, 5], strides=[1, 1], pads=[0] * 4, **AVERAGE)
    layer = banded(graph, graph.nodes[-1], accelerator)
    run_schedules(graph, layer, accelerator)
    assert isinstance(layer.work, PoolingLayer) and layer.work.runs == runs
    code = layer_code(layer, {"rows": 1, "planes": 3}, accelerator)
    loads = code.records[(code.buffers == code.names.index("inp")) & (code.records["opcode"] == Opcode.LOAD)]
    brought = (loads["y_size"].astype(int) * loads["x_size"]).tolist()
    assert brought == [3 * 5 * run for run in runs]


@pytest.mark.parametrize(("rows", "kernel", "stride"), [(12, 3, 1), (11, 3, 2), (9, 5, 1), (14, 4, 2)])
def test_every_schedule_of_window_gemms_in_bands_is_right(rows: int, kernel: int, stride: int) -> None:
    graph = convolution((32, rows, 7), 32, kernel, groups=32, stride=stride)
    layer = banded(graph, graph.nodes[-1], WINDOWS)
    assert isinstance(layer, VtaLayer)
    windows = windowed(layer, WINDOWS)
    assert windows is not None
    run_schedules(graph, windows, WINDOWS)


def run_schedules(graph: Graph, layer: VtaLayer | TiledLayer, accelerator: Accelerator) -> None:
    """Run some schedules of the last layer of a graph, and compare them with the reference."""
    data = {
        each: np.random.default_rng(7).integers(-128, 128, graph.tensors[each].shape).astype(np.int8)
        for each in graph.inputs
    }
    tensors = evaluate(graph, data)
    packing = PackedLayout(accelerator.parameters, bands=True)

    def packed(tensor: str) -> NDArray[np.int8]:
        made = np.full(packing.shape(graph.tensors[tensor].shape), 99, np.int8)  # rows that do not exist hold anything
        layout.pack(tensors[tensor], made)
        return garbled(made, graph.tensors[tensor].shape)

    inputs = {buffer: packed(tensor) for buffer, tensor in layer.reads.items()}
    shape = packing.shape(graph.tensors[layer.output].shape)
    library, ran = build(accelerator, "golden"), 0
    for knobs in some_knobs(layer, accelerator):
        try:
            code = layer_code(layer, knobs, accelerator)
            read = inputs | constants(layer, code, accelerator)
            sizes = {buffer: array.nbytes for buffer, array in read.items()} | {"out": int(np.prod(shape))}
            program = alone(code, sizes, accelerator)
        except Rejected:
            continue
        run = run_program(library, program, read, max_cycles=1 << 30)
        assert run.execution.status is DeviceStatus.DONE, knobs
        found = layout.unpack(run.output.view(np.int8).reshape(shape), graph.tensors[layer.output].shape)
        assert np.array_equal(found, tensors[layer.output]), knobs
        ran += 1
        if ran == _PROGRAMS:
            break
    assert ran >= 2


def banded(graph: Graph, node: Node, accelerator: Accelerator) -> VtaLayer | TiledLayer:
    return placed_layer(graph, node, accelerator, bands=True)


def garbled(packed: NDArray[np.int8], shape: tuple[int, ...]) -> NDArray[np.int8]:
    """Return a packed tensor with other numbers than zeros in rows that the image lacks."""
    band, lanes = packed.shape[2], packed.shape[4]
    for lane in range(lanes):
        packed[:, :, max(0, min(band, shape[2] - lane * band)) :, :, lane] = 77
    return packed


def constants(layer: VtaLayer | TiledLayer, code: Code, accelerator: Accelerator) -> dict[str, NDArray[Any]]:
    if isinstance(layer, TiledLayer):
        return dict(layer.constants) or {IDENTITY: identity_block(0, accelerator)}
    parameters = accelerator.parameters
    found: dict[str, NDArray[Any]] = {"wgt": pack_weights(layer.weights, parameters)}
    found |= bias_constants(layer, code, accelerator)
    return found | ({IDENTITY: identity_block(layer.residual_shift, accelerator)} if layer.residual else {})


def some_knobs(layer: VtaLayer | TiledLayer, accelerator: Accelerator) -> list[dict[str, int]]:
    if isinstance(layer, TiledLayer):
        return tile_knobs(layer.work)
    random, found = np.random.default_rng(3), []
    kinds = (SpaceName.AUTOTVM, SpaceName.ROWS if layer.workload.dilation == (1, 1) else SpaceName.ML2)
    for kind in kinds:
        space = space_for(layer.workload, accelerator, kind=kind)
        indices = random.permutation(len(space))[: 40 * _PROGRAMS].tolist()
        found.append([space.knobs_at(int(index)) for index in indices])
    return [knobs for pair in zip(*found, strict=False) for knobs in pair]


def runs_in_bands(graph: Graph, accelerator: Accelerator) -> dict[str, str]:
    """Return where each node ran, with every tensor as the reference's."""
    compiled = compile_network(graph, aim(accelerator))
    data = {"x": np.random.default_rng(1).integers(-128, 128, graph.tensors["x"].shape).astype(np.int8)}
    with SimulatedVta(aim(accelerator)) as device:
        inference = Network(read_bundle(compiled.data, "m"), device, keep=True).run(data)
    inside = inside_of(compiled.manifest)
    found = compare(inference.tensors, evaluate(graph, data), graph, inside)
    assert found.tensors == len(graph.tensors) - len(inside)
    return {each["node"]: each["where"] for each in compiled.manifest["placements"]}


def test_a_network_in_bands_runs_as_its_reference() -> None:
    builder = residual_network(3)
    where = runs_in_bands(builder.graph(builder.nodes[-1].outputs[0]), TWO)
    assert [where[f"conv{number}"] for number in range(6)] == ["vta"] * 6


@pytest.mark.parametrize("accelerator", [TWO, FOUR], ids=["two lanes", "four lanes"])
def test_a_network_of_one_row_in_bands_runs_as_its_reference(accelerator: Accelerator) -> None:
    """A LOAD of the rows beside it brings zeros alone, and may come before the layer in front has stored the row."""
    builder = Builder((1, 16, 1, 6))
    made = builder.conv("x", 96, 1, residual=builder.conv("x", 96))
    where = runs_in_bands(builder.graph(builder.conv(made, 24)), accelerator)
    assert set(where.values()) == {"vta"}


def mixed() -> Graph:
    """Return a graph of nodes that run in bands and of others: a gate, a concatenation, a mean, an upsampling."""
    builder = Builder((1, 16, 6, 6), 9)
    left, right = builder.conv("x", 16), builder.conv("x", 16, 1)
    same = {"shift": 7, "clip": [-128, 127]}
    product = builder.add_node("product", "multiply", [left, right], (1, 16, 6, 6), same)
    table = builder.random.integers(-128, 128, 256).astype(np.int8)
    builder.constants["table"] = table
    looked_up = builder.add_node("table", "table", [product, "table"], (1, 16, 6, 6), {})
    both = builder.add_node("both", "concat", [looked_up, left], (1, 32, 6, 6), {"axis": 1})
    below = builder.conv(both, 16)
    mean = builder.add_node(
        "mean", "global_average_pool", [below], (1, 16, 1, 1), {"divisor": 1, "shift": 5, "clip": [-128, 127]}
    )
    gated = builder.add_node("gated", "multiply", [below, mean], (1, 16, 6, 6), same)
    larger = builder.add_node("larger", "upsample", [gated], (1, 16, 12, 12), {"factors": [2, 2]})
    return builder.graph(builder.conv(larger, 8))


@pytest.mark.parametrize("accelerator", [replace(TWO, isa=IsaRevision.B), FOUR], ids=["two lanes", "four lanes"])
def test_a_network_with_nodes_that_are_of_no_band_runs_as_its_reference(accelerator: Accelerator) -> None:
    where = runs_in_bands(mixed(), accelerator)
    assert where["gated"] == "processor"
    assert where["product"] == ("vta" if accelerator.isa is IsaRevision.B else "processor")
    assert where["both"] == "view"


@pytest.mark.parametrize("accelerator", [TWO, FOUR], ids=["two lanes", "four lanes"])
def test_a_copy_by_way_of_the_table_in_bands_runs_as_its_reference(accelerator: Accelerator) -> None:
    runs_in_bands(looked_up(), accelerator)


def test_an_upsampling_whose_rows_change_lanes_is_no_layer_of_bands() -> None:
    graph = upsampled(7, (2, 1))
    with pytest.raises(NotOnVtaError, match="its 14 rows in 2 lanes are not of the same lanes' rows"):
        banded(graph, graph.nodes[-1], TWO)


def test_rows_past_the_ends_of_a_maximum_repeat_those_inside() -> None:
    bands = Bands(lanes=2, rows=4, width=5, made=4, kernel=3, stride=1, pad=1, repeats=True)
    assert bands.needs(0) == ((0, 0), (-1, 1))
    assert bands.needs(3) == ((1, -3), (0, -2))


def test_a_mean_reaches_one_lane_further_but_not_three() -> None:
    graph = mixed()
    (mean,) = (node for node in graph.nodes if node.name == "mean")
    layer = banded(graph, mean, TWO)
    assert layer.bands is not None
    assert [layer.bands.needs(row)[0] for row in (0, 2, 3, 5)] == [(0, 0), (0, 0), (1, -3), (1, -3)]
    assert all(layer.bands.needs(row)[1] == ANY for row in range(6))
    whole = pool("average_pool", (8, 4), (1, 1), kernel=[8, 4], strides=[1, 1], pads=[0] * 4, **AVERAGE)
    with pytest.raises(NotOnVtaError, match=r"further than a LOAD does: \[0, 1, 2, 3\]"):
        banded(whole, whole.nodes[-1], FOUR)


def test_rows_of_bands_by_hand() -> None:
    """14 rows in bands of 7, a window of 3 and a stride of 2: 7 rows in bands of 4, of which the last has 3."""
    bands = Bands(lanes=2, rows=14, width=5, made=7, kernel=3, stride=2, pad=1)
    assert (bands.band, bands.band_made, bands.height) == (7, 4, 9)
    assert bands.needs(0) == (ZEROS, (0, 0))
    assert bands.needs(1) == ((0, -1), (0, 0))
    assert bands.needs(8) == ((1, -8), ANY)


def test_a_tile_at_the_edge_of_a_band_takes_a_load_more() -> None:
    """Of 4 rows, each a tile of its own, the first and the last read a row of the other band."""
    graph = LAYERS["of whole bands"]
    layer = banded(graph, graph.nodes[-1], TWO)
    assert isinstance(layer, VtaLayer)
    knobs = next(
        each
        for each in some_knobs(layer, TWO)
        if (each.get("tile_h"), each.get("tile_w"), each.get("tile_co"), each.get("h_nthread")) == (1, 6, 2, 1)
    )

    def loads(of: VtaLayer) -> int:
        code = layer_code(of, knobs, TWO)
        inputs = code.buffers == code.names.index("inp")
        return int(np.count_nonzero(inputs & (code.records["opcode"] == Opcode.LOAD)))

    assert loads(layer) * 4 == loads(replace(layer, bands=None)) * 6


@pytest.mark.parametrize(("shape", "kernel", "run"), [((64, 1, 1), 1, 1), ((64, 6, 5), 1, 15), ((64, 6, 5), 3, 0)])
def test_planes_that_lie_one_behind_another_come_by_one_load(
    shape: tuple[int, int, int], kernel: int, run: int
) -> None:
    """A tile has all rows of 8 planes of input. Each plane is a row of the LOAD, unless it needs other bands."""
    graph = convolution(shape, 16, kernel, padding=kernel // 2)
    layer = banded(graph, graph.nodes[-1], TWO)
    assert isinstance(layer, VtaLayer)
    whole = {"tile_h": layer.workload.out_height, "tile_w": layer.workload.out_width, "tile_ci": 8, "tile_co": 1}
    knobs = {"tile_b": 1, "oc_nthread": 1, "h_nthread": 1, "loop_order": 1} | whole
    code = layer_code(layer, knobs, TWO)
    inputs = code.buffers == code.names.index("inp")
    loads = code.records[inputs & (code.records["opcode"] == Opcode.LOAD)]
    sizes = set(zip(loads["y_size"].tolist(), loads["x_size"].tolist(), loads["x_stride"].tolist(), strict=True))
    assert sizes == {(8, run, run)} if run else all(high <= 6 for high, _, _ in sizes)


def test_lanes_hold_bands_where_the_user_wants_latency() -> None:
    graph = residual_network(3).graph("dense9.y")
    images = replace(aim(TWO), bands=False)
    public = replace(images, accelerator=replace(TWO, bands=False))
    assert aimed(images, graph, None).bands and aimed(images, graph, Aim.LATENCY).bands
    assert not aimed(images, graph, Aim.THROUGHPUT).bands and not aimed(public, graph, None).bands
    with pytest.raises(NoBandsError, match="cannot hold bands of one image"):
        aimed(public, graph, Aim.LATENCY)


def test_a_campaign_tunes_the_images_of_a_band_and_their_schedules_are_taken() -> None:
    """14 rows with a stride of 2 are bands of 4 rows, each of which reads 9."""
    graph = LAYERS["with a stride, bands shifted"]
    (found,) = tuned_network(graph, "small", TWO, bands=True).layers
    workload = load_convolution(found.workload)
    assert (workload.batch, workload.height, workload.padding) == (2, 9, (0, 1))
    best = compile_network(graph, aim(TWO)).placements[0].schedule
    assert best is not None
    (placed,) = compile_network(graph, aim(TWO), {replace(workload, name=""): [best.knobs]}).placements
    assert placed.schedule is not None
    assert (placed.schedule.origin, placed.schedule.cycles) == ("tuned", best.cycles)


def test_several_images_are_in_no_bands() -> None:
    builder = Builder((2, 8, 6, 6))
    graph = builder.graph(builder.conv("x", 8))
    assert not aimed(replace(aim(TWO), bands=False), graph, None).bands
    with pytest.raises(GraphError, match="no single image"):
        compile_network(graph, aim(TWO))


def test_what_vta_never_reads_may_have_any_first_axis() -> None:
    graph = residual_network(3).graph("dense9.y")
    boxes = {"boxes": Tensor("boxes", (5, 4), "float32", 1.0), "steps": Tensor("steps", (5, 2, 4), "int8", 1.0)}
    assert aimed(aim(TWO), replace(graph, tensors=graph.tensors | boxes), None).bands


def test_a_bundle_in_bands_is_refused_where_lanes_cannot_be_moved() -> None:
    bundle = read_bundle(compile_network(LAYERS["of whole bands"], aim(TWO)).data, "m")
    assert bundle.manifest["target"]["bands"] is True
    public = replace(aim(TWO), accelerator=replace(TWO, bands=False))
    with SimulatedVta(public) as device, pytest.raises(TargetError, match="with bands of one image in its lanes"):
        Network(bundle, device)


def test_a_bundle_that_hides_its_bands_is_refused() -> None:
    parts = Parts(compile_network(LAYERS["of whole bands"], aim(TWO)).data)
    del parts.manifest["target"]["bands"]
    with pytest.raises(BundleError, match="is a LOAD that moves lanes, which the accelerator cannot"):
        read_bundle(parts.file(), "m")
