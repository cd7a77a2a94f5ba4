"""Linear interpolation: the integers of ONNX Runtime, on every schedule, on the golden model, in a network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.network.layers import TiledLayer, layer_of
from hilt.network.lower_interpolate import Interpolation, InterpolationWriter, axis_taps
from hilt.network.lower_tiles import lower_tiles, tile_knobs
from hilt.network.reference import evaluate
from hilt.network.tile_writer import WINDOWS
from hilt.schedule import Rejected
from hilt.schedule.fused import alone
from hilt.simulator.build import build
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program
from hilt.vta.accelerator import Accelerator
from hilt_runtime.operators_integer import OPERATORS

from ..network.models import run_float
from .graphs import BATCHED, PYNQ, Builder, target
from .test_interpreted import TINY, all_are, elements, numbers, of

Array = NDArray[Any]
FORMS = [
    *(((2, 2), 1, (5, 4)), ((2, 2), 0, (5, 4)), ((4, 4), 1, (3, 3)), ((4, 2), 0, (2, 5)), ((8, 8), 1, (2, 3))),
    *(((1, 2), 1, (3, 7)), ((2, 1), 1, (7, 1)), ((2, 2), 1, (1, 1)), ((8, 1), 0, (4, 2)), ((2, 4), 1, (1, 6))),
]
"""Factors, whether pixels lie at their centres, and the input's size."""


def resized(data: Array, factors: tuple[int, int], centred: int) -> Array:
    """Return ONNX Runtime's Resize of int8 (N, C, H, W), halves rounded up: each float is exact."""
    from onnx import TensorProto, helper, numpy_helper

    shape = list(data.shape)
    made = [*shape[:2], shape[2] * factors[0], shape[3] * factors[1]]
    place = "half_pixel" if centred else "asymmetric"
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], mode="linear", coordinate_transformation_mode=place)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, made)],
        [numpy_helper.from_array(np.array(made, np.int64), "s")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (result,) = run_float(model, {"x": data.astype(np.float32)})
    rounded: Array = np.floor(result + np.float32(0.5)).astype(np.int8)
    return rounded


def images(planes: Array) -> Array:
    """Return planes (P, H, W, batch, block) as images (P, batch * block, H, W)."""
    return planes.reshape(*planes.shape[:3], -1).transpose(0, 3, 1, 2)


@pytest.mark.parametrize(("factors", "centred", "size"), FORMS)
def test_the_reference_and_the_board_are_onnx_runtimes(
    factors: tuple[int, int], centred: int, size: tuple[int, int]
) -> None:
    data = numbers(2, 3, *size)
    data.ravel()[:4] = (-128, 127, 127, -128)
    wanted = resized(data, factors, centred)
    builder = Builder(data.shape)
    attributes = {"factors": list(factors), "centred": centred}
    graph = builder.graph(builder.add_node("r", "interpolate", ["x"], wanted.shape, attributes))
    np.testing.assert_array_equal(evaluate(graph, {"x": data})["r.y"], wanted)
    np.testing.assert_array_equal(OPERATORS["interpolate"]([data], attributes), wanted)


@pytest.mark.parametrize("parameters", [PYNQ, TINY, BATCHED])
@pytest.mark.parametrize(("factors", "centred", "size"), FORMS)
def test_every_schedule_is_onnx_runtimes(
    factors: tuple[int, int], centred: int, size: tuple[int, int], parameters: str
) -> None:
    accelerator, work = of(parameters), Interpolation(2, size, factors, bool(centred))
    data = numbers(2, *size, *elements(accelerator))
    data.ravel()[:4] = (-128, 127, 127, -128)
    wanted = resized(images(data), factors, centred).transpose(0, 2, 3, 1)
    inputs = {"inp": data, WINDOWS: work.blocks(accelerator)}
    ran = all_are(np.ascontiguousarray(wanted), work, inputs, accelerator)
    assert ran > 0 or parameters == TINY


def test_an_outputs_weights_add_up_to_a_power_of_two() -> None:
    for factors, centred, size in FORMS:
        work = Interpolation(1, size, factors, bool(centred))
        assert {sum(weight for _, _, weight in taps) for taps in work.taps.values()} == {1 << work.shift}
        assert max(work.weights) <= 127
    assert axis_taps(2, True) == [[(0, 3), (-1, 1)], [(0, 3), (1, 1)]]
    assert axis_taps(2, False) == [[(0, 2)], [(0, 1), (1, 1)]]


def test_an_accelerator_without_interlocks_takes_no_tile_of_two_outputs() -> None:
    accelerator = Accelerator.for_parameters(of(PYNQ).parameters, hazards="none")
    InterpolationWriter(Interpolation(1, (3, 2), (2, 1), True), 1, accelerator)
    with pytest.raises(Rejected, match="too soon"):
        InterpolationWriter(Interpolation(1, (3, 1), (2, 1), True), 1, accelerator)


@pytest.mark.slow  # runs programs on the golden model
@pytest.mark.parametrize(
    ("factors", "centred", "size"), [((2, 2), 1, (9, 7)), ((4, 4), 0, (5, 6)), ((8, 8), 1, (4, 3))]
)
def test_every_schedule_on_the_golden_model_is_the_reference(
    factors: tuple[int, int], centred: int, size: tuple[int, int]
) -> None:
    accelerator, builder = target().accelerator, Builder((1, 20, *size))
    made = (1, 20, size[0] * factors[0], size[1] * factors[1])
    attributes = {"factors": list(factors), "centred": centred}
    graph = builder.graph(builder.add_node("r", "interpolate", ["x"], made, attributes))
    layer, data = layer_of(graph, graph.nodes[0], accelerator), builder.input()
    assert isinstance(layer, TiledLayer)
    blocks = np.pad(data, ((0, 0), (0, 12), (0, 0), (0, 0))).reshape(2, 16, *size).transpose(0, 2, 3, 1)
    inputs = {"inp": np.ascontiguousarray(blocks), **layer.constants}
    sizes = {name: array.nbytes for name, array in inputs.items()} | {"out": 32 * made[2] * made[3]}
    ran = 0
    for knobs in tile_knobs(layer.work):
        try:
            program = alone(lower_tiles(layer.work, knobs, accelerator), sizes, accelerator)
        except Rejected:
            continue
        run = run_program(build(accelerator, "golden"), program, inputs, max_cycles=1 << 30)
        assert run.execution.status is DeviceStatus.DONE
        result = run.output.reshape(2, made[2], made[3], 16).transpose(0, 3, 1, 2).reshape(32, made[2], made[3])
        np.testing.assert_array_equal(result[:20], evaluate(graph, {"x": data})["r.y"][0], str(knobs))
        ran += 1
    assert ran > 1
