"""Steps of the sizes that networks have, and how many instructions each takes an element on ARM."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hilt_runtime.native.inference import InferencePlan
from hilt_runtime.native.library import engine
from hilt_runtime.native.plans import plan_operator
from hilt_runtime.native.steps import Builder
from tests.native.tools import build, counter, instructions, run
from tests.unit.network.engines import record

_REPEAT = 5
_CLIP: Mapping[str, Any] = {"clip": [-128, 127], "shift": 6}


def int8(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).normal(0, 2, shape).astype(np.float32)


def recurrent(op: str, gates: int, hidden: int, is_int8: bool) -> tuple[str, list[Any], Mapping[str, Any], int]:
    """Return eight steps of a recurrent operator; two sizes part what a product takes from what an output takes."""
    rows = gates * hidden
    weights = int8(1, rows, hidden) if is_int8 else floats(1, rows, hidden)
    scales = [*[None] * 5, *[np.full((1, rows), 1e-4, np.float32)] * 2] if is_int8 else []
    attributes = {"hidden_size": hidden, "direction": "forward"}
    return op, [floats(8, 1, hidden), weights, weights.copy(), *scales], attributes, 8 * 2 * rows * hidden


IMAGE, GATE = int8(1, 32, 56, 56), int8(1, 32, 1, 1)
PACKED = int8(1, 2, 56, 56, 1, 16)
WINDOW = {"kernel": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
NORMAL = {"axis": 1, "epsilon": 0.02, "rounded": 1, "clip": [-128.0, 127.0]}
FACTORS = floats(2, 32)
MEAN = {"divisor": 49, "shift": 0, "clip": [-128, 127]}
CONV = {"strides": [1, 1], "pads": [1] * 4, "groups": 1, "shift": [9], "clip": [-128, 127]}
OPERATORS: dict[str, tuple[str, list[Any], Mapping[str, Any], int]] = {
    "quantize": ("quantize", [floats(150528)], {"scale": 2.0**-5}, 150528),
    "quantize multiplied": ("quantize", [floats(150528)], {"scale": 2.0**-5, "factor": 1.4}, 150528),
    "dequantize": ("dequantize", [int8(100352)], {"scale": 2.0**-5}, 100352),
    "table": ("table", [IMAGE, int8(256)], {}, IMAGE.size),
    "pixel_table": ("pixel_table", [int8(1, 224, 224, 3).view(np.uint8), int8(3, 256)], {"axis": 3}, 150528),
    "prelu": ("prelu", [int8(1, 16, 56, 56), np.full((2, 16), 20000, np.int16)], {"left": 1}, 16 * 56 * 56),
    "prelu packed": ("prelu", [int8(1, 1, 56, 56, 1, 16), np.full((2, 16), 9000, np.int16)], {"left": 1}, 50176),
    "normalization": ("normalization", [IMAGE, FACTORS], {**NORMAL, "groups": 32}, IMAGE.size),
    "normalization to floats": ("normalization", [IMAGE, FACTORS], {**NORMAL, "groups": 32, "rounded": 0}, IMAGE.size),
    "normalization packed": ("normalization", [PACKED, FACTORS], {**NORMAL, "groups": 4}, IMAGE.size),
    "normalization of pixels": ("normalization", [IMAGE, FACTORS], {**NORMAL, "groups": 0}, IMAGE.size),
    "normalization of pixels packed": ("normalization", [PACKED, FACTORS], {**NORMAL, "groups": 0}, IMAGE.size),
    "normalization of rows": ("normalization", [int8(1568, 64), floats(2, 64)], {**NORMAL, "groups": 0}, 100352),
    "pixel_table of planes": ("pixel_table", [int8(1, 3, 224, 224).view(np.uint8), int8(3, 256)], {"axis": 1}, 150528),
    "add": ("add", [IMAGE, IMAGE], {"left_shifts": [1, 0], **_CLIP}, IMAGE.size),
    "multiply": ("multiply", [IMAGE, GATE], _CLIP, IMAGE.size),
    "max_pool": ("max_pool", [IMAGE], WINDOW, 32 * 28 * 28 * 9),
    "average_pool": ("average_pool", [IMAGE], {**WINDOW, **MEAN, "divisor": 9}, 32 * 28 * 28 * 9),
    "global_average_pool": ("global_average_pool", [IMAGE], MEAN, IMAGE.size),
    "concat": ("concat", [IMAGE, IMAGE], {"axis": 1}, 2 * IMAGE.size),
    "slice": ("slice", [IMAGE], {"starts": [4], "ends": [40], "axes": [3], "steps": [1]}, 32 * 56 * 36),
    "pad": ("pad", [IMAGE], {"pads": [0, 0, 1, 1, 0, 0, 1, 1], "value": 0}, 32 * 58 * 58),
    "pad of own elements": ("pad", [IMAGE], {"pads": [0, 0, 1, 1, 0, 0, 1, 1], "mode": "reflect"}, 32 * 58 * 58),
    "pad of own elements packed": ("pad", [PACKED], {"pads": [0, 0, 1, 1, 0, 0] * 2, "mode": "reflect"}, 32 * 58 * 58),
    "transpose": ("transpose", [IMAGE], {"perm": [0, 2, 3, 1]}, IMAGE.size),
    "depth_to_space": ("depth_to_space", [int8(1, 27, 56, 56)], {"block": [3, 3], "mode": "DCR"}, 27 * 56 * 56),
    "depth_to_space of pairs": ("depth_to_space", [IMAGE], {"block": [2, 2], "mode": "DCR"}, IMAGE.size),
    "conv2d a product": ("conv2d", [int8(1, 8, 28, 28), int8(8, 8, 3, 3)], CONV, 28 * 28 * 64 * 9),
    "dense a product": ("dense", [int8(1, 1024), int8(64, 1024)], {"shift": [9], "clip": [-128, 127]}, 65536),
    "Add": ("Add", [floats(20000), floats(20000)], {}, 20000),
    "Mul by a value": ("Mul", [floats(20000), floats(1)], {}, 20000),
    "Sub a line": ("Sub", [floats(50, 400), floats(50, 1)], {}, 20000),
    "Relu": ("Relu", [floats(20000)], {}, 20000),
    "LeakyRelu": ("LeakyRelu", [floats(20000)], {}, 20000),
    "Exp": ("Exp", [floats(4000)], {}, 4000),
    "Log": ("Log", [np.abs(floats(4000))], {}, 4000),
    "Gelu": ("Gelu", [floats(4000)], {}, 4000),
    "Sigmoid": ("Sigmoid", [floats(4000)], {}, 4000),
    "Tanh": ("Tanh", [floats(4000)], {}, 4000),
    "Softmax": ("Softmax", [floats(40, 100)], {}, 4000),
    "Softmax of columns": ("Softmax", [floats(21, 400)], {"axis": 0}, 8400),
    "LogSoftmax": ("LogSoftmax", [floats(40, 100)], {}, 4000),
    "MatMul a product": ("MatMul", [floats(16, 128), floats(128, 128)], {}, 16 * 128 * 128),
    "fixed_matmul of 32, a result": ("fixed_matmul", [floats(64, 32), int8(64, 32)],
                                     {"scale": 2.0**-5, "turned": 0, "step": 2.0**-3}, 64 * 64),
    "fixed_matmul of 400, a product": ("fixed_matmul", [floats(64, 400), int8(64, 400)],
                                       {"scale": 2.0**-5, "turned": 1}, 64 * 400 * 64),
    "MatMul of a row, a product": ("MatMul", [floats(1, 512), floats(512, 256)], {}, 512 * 256),
    **{f"{op}{kind} of {hidden} a product": recurrent(op, gates, hidden, kind == " int8")
       for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)) for kind in ("", " int8") for hidden in (64, 256)},
    "ReduceMean": ("ReduceMean", [floats(16, 400), np.array([1])], {}, 6400),
    "ReduceSum of columns": ("ReduceSum", [floats(50, 128), np.array([0])], {}, 6400),
    "ReduceMax": ("ReduceMax", [floats(16, 400), np.array([1])], {}, 6400),
    "counted_sum a product": ("counted_sum", [np.arange(2048) % 258, floats(258, 64)],
                              {"rows": 512, "shape": [1, 256]}, 4 * 258 * 64),
    "ReduceMin of columns": ("ReduceMin", [floats(50, 128), np.array([0])], {}, 6400),
    "Where": ("Where", [floats(50, 128) > 0, floats(50, 128), floats(128)], {}, 6400),
    "Where by one condition": ("Where", [np.array(True), floats(128), floats(50, 128)], {}, 6400),
    "Clip of int64": ("Clip", [np.arange(6400), np.array(3), np.array(90)], {}, 6400),
    "Transpose": ("Transpose", [floats(50, 128)], {"perm": [1, 0]}, 6400),
    "Concat of columns": ("Concat", [floats(3200, 1), floats(3200, 1)], {"axis": 1}, 6400),
    "Concat": ("Concat", [floats(50, 64), floats(50, 64)], {"axis": 1}, 6400),
    "softmax": ("softmax", [int8(40, 6625)],
                {"axis": -1, "scale": 2.0**-4, "logarithm": 0, "shape": [40, 6625]}, 40 * 6625),
    "table packed": ("table", [PACKED, int8(256)], {}, PACKED.size),
    "multiply packed": ("multiply", [PACKED, int8(1, 2, 1, 1, 1, 16)], _CLIP, PACKED.size),
    "max_pool packed": ("max_pool", [PACKED], WINDOW, 2 * 28 * 28 * 16 * 9),
    "average_pool packed": ("average_pool", [PACKED], {**WINDOW, **MEAN, "divisor": 1}, 2 * 28 * 28 * 16 * 9),
    "global_average_pool packed": ("global_average_pool", [PACKED], MEAN, PACKED.size),
    "upsample": ("upsample", [int8(1, 8, 28, 28)], {"factors": [3, 3]}, 8 * 84 * 84),
    "upsample of pairs": ("upsample", [int8(1, 8, 28, 28)], {"factors": [2, 2]}, 8 * 56 * 56),
    "interpolate": ("interpolate", [int8(1, 8, 28, 28)], {"factors": [2, 2], "centred": 1}, 8 * 56 * 56),
    "upsample packed": ("upsample", [PACKED], {"factors": [2, 2]}, 4 * PACKED.size),
    "concat packed": ("concat", [PACKED, PACKED], {"axis": 1}, 2 * PACKED.size),
    "concat of lanes": ("concat", [PACKED, PACKED], {"axis": 1, "channels": [24, 24]}, 3 * PACKED.size // 2),
    "pad of lanes": ("pad", [PACKED], {"pads": [0] * 5 + [16, 0, 0], "value": 0, "channels": [24]},
                     3 * PACKED.size // 2),
    "depth_to_space of lanes": ("depth_to_space", [int8(1, 6, 40, 40, 1, 16)],
                                {"block": [2, 2], "mode": "DCR", "channels": [96]}, 2 * 80 * 80 * 16),
    "LayerNormalization": ("LayerNormalization", [floats(64, 192), floats(192), floats(192)], {}, 64 * 192),
    "InstanceNormalization": ("InstanceNormalization", [floats(1, 16, 28, 28), floats(16), floats(16)], {}, 12544),
    "Resize nearest": ("Resize", [int8(1, 8, 28, 28), None, np.array([1, 1, 2, 2], np.float32)],
                       {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, 8 * 56 * 56),
}  # fmt: skip
"""Operator, inputs, attributes, and by how many elements or products its instructions are divided."""


def records() -> dict[str, tuple[bytes, int]]:
    """Return a record of each case, and the divisor of its instructions."""
    found = {}
    for name, (op, inputs, attributes, work) in OPERATORS.items():
        builder = Builder()
        for constant in inputs[1:]:
            if constant is not None:
                builder.constant(constant)
        plan_operator(builder, op, inputs, attributes)
        found[name] = record(builder, (), ()), work
    packed = np.zeros((1, 2, 56, 56, 1, 16), np.int8)
    folded = np.zeros((1, 1, 56, 56, 1, 16), np.int8)
    for name, kind, buffer, step in (
        ("pack", "add_pack", packed, {}),
        ("unpack", "add_unpack", packed, {"shape": list(IMAGE.shape)}),
        ("fold", "add_pack", folded, {"fold": {"kernel": 3, "stride": 1, "left": 1}}),
        ("pack last", "add_pack", packed, {"channels_last": True}),
        ("fold last", "add_pack", folded, {"fold": {"kernel": 3, "stride": 1, "left": 1}, "channels_last": True}),
    ):
        plan = InferencePlan(engine().library, {}, {"b": buffer})
        shapes = {"fold": (1, 3, 56, 56), "fold last": (1, 56, 56, 3), "pack last": (1, 56, 56, 32)}
        plan.begin({"t": int8(*shapes[name]) if name in shapes else IMAGE})
        getattr(plan, kind)({"tensor": "t", "buffer": "b", **step})
        found[name] = record(plan.builder, (), ()), buffer.size
    for name, shape, last in (
        ("fold floats", (1, 3, 56, 56), {}),
        ("fold floats last", (1, 56, 56, 3), {"channels_last": True}),
    ):
        found[name] = (
            record(_fold_offloats(shape, {"fold": {"kernel": 3, "stride": 1, "left": 1}, **last}, folded), (), ()),
            folded.size,
        )
    return found


def _fold_offloats(shape: tuple[int, ...], facts: Mapping[str, Any], folded: np.ndarray[Any, Any]) -> Builder:
    """Return the plan of a quantisation and its fold, in one record."""
    steps: list[dict[str, Any]] = [
        {
            "kind": "cpu",
            "name": "q",
            "op": "quantize",
            "inputs": ["x"],
            "outputs": ["t"],
            "attributes": {"scale": 2.0**-5},
        },
        {"kind": "pack", "name": "p", "tensor": "t", "buffer": "b", **facts},
    ]
    plan = InferencePlan(engine().library, {}, {"b": folded})
    plan.begin({"x": floats(*shape)})
    plan.add_operator(steps[0], lambda inputs: [])
    plan.add_pack(steps[1])
    plan.finish(steps, set())
    return plan.builder


def instructions_an_element(folder: Path) -> dict[str, list[float]]:
    """Return for each case the instructions an element on armhf and on arm64: of later runs, without the first."""
    cases, plugin = records(), counter(folder)
    file = folder / "cases"
    file.write_bytes(b"".join(data for data, _ in cases.values()))
    counts: dict[str, list[float]] = {name: [] for name in cases}
    for architecture in ("armhf", "arm64"):
        program = build(folder, architecture)
        for place, (name, (_, work)) in enumerate(cases.items()):
            once, more = (
                instructions(run(program, architecture, str(file), str(times), str(place), plugin=plugin))
                for times in (1, 1 + _REPEAT)
            )
            counts[name].append((more - once) / _REPEAT / work)
    return counts
