"""TFLite's operators over sequences, lists and blocks of a batch, beside its own interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilt.network.onnx_graph import OnnxError

from .models import Array
from .test_tflite import assert_same, loaded, normal
from .tflite_models import TfliteBuilder, schema

VALID = schema.Padding.VALID
TANH = schema.ActivationFunctionType.TANH
Constants = dict[str, Array]


def ints(*values: Any) -> Array:
    return np.array(values, np.int32)


CASES: dict[str, tuple[str, dict[str, Any], tuple[int, ...], tuple[tuple[int, ...], ...], Constants]] = {
    "unpack": ("UNPACK", {"kind": "UnpackOptions", "num": 3, "axis": 1}, (1, 3, 4), ((1, 4),) * 3, {}),
    "unpack one": ("UNPACK", {"kind": "UnpackOptions", "num": 1, "axis": 0}, (1, 3, 4), ((3, 4),), {}),
    "reverse": ("REVERSE_V2", {}, (1, 5, 4), ((1, 5, 4),), {"axis": ints(1)}),
    "product": ("REDUCE_PROD", {"kind": "ReducerOptions", "keepDims": True}, (1, 5, 4), ((1, 1, 4),),
                {"axis": ints(1)}),
    "least place": ("ARG_MIN", {"kind": "ArgMinOptions", "outputType": schema.TensorType.INT32}, (1, 5, 4),
                    ((1, 5),), {"axis": ints(-1)}),
    "length": ("L2_NORMALIZATION", {"kind": "L2NormOptions"}, (1, 3, 3, 4), ((1, 3, 3, 4),), {}),
    "sign": ("SIGN", {}, (1, 5, 4), ((1, 5, 4),), {}),
    "places": ("GATHER_ND", {}, (5, 4), ((3, 4),), {"places": ints([4], [0], [2])}),
    "sum": ("ADD_N", {"kind": "AddNOptions"}, (1, 5, 4), ((1, 5, 4),), {"other": np.full((1, 5, 4), 0.5, np.float32)}),
    "floor": ("FLOOR_DIV", {"kind": "FloorDivOptions"}, (1, 5, 4), ((1, 5, 4),),
              {"other": np.full((1, 5, 4), -0.3, np.float32)}),
    "blocks": ("SPACE_TO_BATCH_ND", {}, (1, 5, 6, 4), ((6, 2, 3, 4),),
               {"block": ints(3, 2), "pads": ints([0, 1], [0, 0])}),
    "row blocks": ("SPACE_TO_BATCH_ND", {}, (1, 5, 4), ((2, 4, 4),), {"block": ints(2), "pads": ints([2, 1])}),
    "from blocks": ("BATCH_TO_SPACE_ND", {}, (6, 2, 3, 4), ((1, 5, 5, 4),),
                    {"block": ints(3, 2), "crops": ints([0, 1], [1, 0])}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_an_operator_is_the_interpreters(case: str, tmp_path: Path) -> None:
    code, options, before, after, constants = CASES[case]
    b = TfliteBuilder()
    b.tensor("x", before)
    whole = "int32" if code == "ARG_MIN" else "float32"
    names = [b.tensor(f"y{number}", shape, whole) for number, shape in enumerate(after)]
    for name, value in constants.items():
        b.tensor(name, value.shape, str(value.dtype), value)
    b.operator(code, ["x", *constants], names, **options)
    assert_same(b.save(tmp_path / "op.tflite", ["x"], names), [normal(*before, size=1)])


def test_the_largest_and_their_places_are_the_interpreters(tmp_path: Path) -> None:
    b = TfliteBuilder()
    b.tensor("x", (1, 9))
    b.tensor("k", (), "int32", np.array(3))
    b.tensor("y", (1, 3))
    b.tensor("places", (1, 3), "int32")
    b.operator("TOPK_V2", ["x", "k"], ["y", "places"])
    assert_same(b.save(tmp_path / "top.tflite", ["x"], ["y", "places"]), [normal(1, 9)])


def test_one_hot_rows_are_the_interpreters(tmp_path: Path) -> None:
    b = TfliteBuilder()
    b.tensor("x", (1, 5), "int32")
    b.tensor("depth", (), "int32", np.array(4))
    b.tensor("on", (), value=np.float32(2))
    b.tensor("off", (), value=np.float32(-1))
    b.tensor("y", (1, 5, 4))
    b.operator("ONE_HOT", ["x", "depth", "on", "off"], ["y"], "OneHotOptions", axis=-1)
    assert_same(b.save(tmp_path / "hot.tflite", ["x"], ["y"]), [ints([3, 0, 1, 2, 3])])


def row_network(path: Path, rate: int, activated: bool) -> Path:
    """Write a causal convolution of a sequence as Keras does: blocks of the batch, with an axis added and dropped."""
    b = TfliteBuilder()
    pads = 2 * rate + (-(12 + 2 * rate)) % rate
    rows = (12 + pads) // rate
    b.tensor("x", (1, 12, 6))
    b.tensor("block", (1,), "int32", ints(rate))
    b.tensor("pads", (1, 2), "int32", ints([2 * rate, pads - 2 * rate]))
    b.tensor("crops", (1, 2), "int32", ints([0, pads - 2 * rate]))
    b.tensor("axis", (), "int32", np.array(1))
    b.tensor("s", (rate, rows, 6))
    b.tensor("e", (rate, 1, rows, 6))
    b.tensor("w", (8, 1, 3, 6), value=normal(8, 1, 3, 6))
    b.tensor("b", (8,), value=normal(8))
    b.tensor("c", (rate, 1, rows - 2, 8))
    b.tensor("q", (rate, rows - 2, 8))
    b.tensor("y", (1, 12, 8))
    b.operator("SPACE_TO_BATCH_ND", ["x", "block", "pads"], ["s"])
    b.operator("EXPAND_DIMS", ["s", "axis"], ["e"])
    b.operator("CONV_2D", ["e", "w", "b"], ["c"], "Conv2DOptions", padding=VALID, strideH=1, strideW=1,
               dilationHFactor=1, dilationWFactor=1)  # fmt: skip
    b.operator("SQUEEZE", ["c"], ["q"], "SqueezeOptions", squeezeDims=[1])
    inner = "q"
    if activated:
        b.tensor("t", (rate, rows - 2, 8))
        b.operator("TANH", ["q"], ["t"])
        inner = "t"
    b.operator("BATCH_TO_SPACE_ND", [inner, "block", "crops"], ["y"])
    return b.save(path, ["x"], ["y"])


@pytest.mark.parametrize("rate", [2, 3, 4])
def test_blocks_around_a_convolution_are_its_dilation(rate: int, tmp_path: Path) -> None:
    graph = assert_same(row_network(tmp_path / "row.tflite", rate, False), [normal(1, 12, 6, size=1)])
    (layer,) = (node for node in graph.nodes if node.op == "Conv")
    assert layer.attributes["kernel_shape"] == [3, 1], "its taps lie in one column of rows of that length"
    assert graph.shape(layer.inputs[0])[2:] == (12 // rate + 2, rate)


def test_blocks_around_more_than_a_convolution_stay(tmp_path: Path) -> None:
    graph = assert_same(row_network(tmp_path / "row.tflite", 2, True), [normal(1, 12, 6, size=1)])
    assert [node.attributes["kernel_shape"] for node in graph.nodes if node.op == "Conv"] == [[1, 3]]


def test_blocks_of_images_around_a_depthwise_convolution_are_its_dilation(tmp_path: Path) -> None:
    b = TfliteBuilder()
    b.tensor("x", (1, 8, 9, 4))
    b.tensor("block", (2,), "int32", ints(2, 3))
    b.tensor("pads", (2, 2), "int32", ints([2, 2], [3, 3]))
    b.tensor("crops", (2, 2), "int32", ints([0, 0], [0, 0]))
    b.tensor("s", (6, 6, 5, 4))
    b.tensor("w", (1, 3, 3, 4), value=normal(1, 3, 3, 4))
    b.tensor("b", (4,), value=normal(4))
    b.tensor("c", (6, 4, 3, 4))
    b.tensor("y", (1, 8, 9, 4))
    b.operator("SPACE_TO_BATCH_ND", ["x", "block", "pads"], ["s"])
    b.operator("DEPTHWISE_CONV_2D", ["s", "w", "b"], ["c"], "DepthwiseConv2DOptions", padding=VALID, strideH=1,
               strideW=1, depthMultiplier=1, dilationHFactor=1, dilationWFactor=1)  # fmt: skip
    b.operator("BATCH_TO_SPACE_ND", ["c", "block", "crops"], ["y"])
    graph = assert_same(b.save(tmp_path / "images.tflite", ["x"], ["y"]), [normal(1, 8, 9, 4, size=1)])
    (layer,) = (node for node in graph.nodes if node.op == "Conv")
    assert layer.attributes["kernel_shape"] == [5, 7]


def lstm_network(
    path: Path, steps: int, clip: float, major: bool, others: Mapping[int, str] | None = None, activation: int = TANH
) -> Path:
    """Write an LSTM whose `others` are inputs by their place."""
    b = TfliteBuilder()
    shape = (steps, 1) if major else (1, steps)
    b.tensor("x", (*shape, 5))
    names = [b.tensor(f"w{gate}", (6, 5), value=normal(6, 5, size=1)) for gate in range(4)]
    names += [b.tensor(f"r{gate}", (6, 6), value=normal(6, 6, size=1)) for gate in range(4)]
    biases = [b.tensor(f"b{gate}", (6,), value=normal(6)) for gate in range(4)]
    states = [b.tensor(name, (1, 6), variable=True) for name in ("h", "c")]
    b.tensor("y", (*shape, 6))
    inputs = ["x", *names, "", "", "", *biases, "", "", *states, "", "", "", ""]
    for place, name in (others or {}).items():
        inputs[place] = name
    b.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, ["y"], "UnidirectionalSequenceLSTMOptions",
               fusedActivationFunction=activation, cellClip=clip, timeMajor=major)  # fmt: skip
    return b.save(path, ["x"], ["y"])


@pytest.mark.parametrize("major", [False, True])
def test_a_fused_lstm_is_the_interpreters(major: bool, tmp_path: Path) -> None:
    shape = (7, 1, 5) if major else (1, 7, 5)
    assert_same(lstm_network(tmp_path / "lstm.tflite", 7, 10.0, major), [normal(*shape, size=2)])


def test_a_clip_that_cells_may_reach_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OnnxError, match="from 11 steps with cells clipped at 10"):
        loaded(lstm_network(tmp_path / "lstm.tflite", 11, 10.0, False))


@pytest.mark.parametrize(
    ("place", "name", "text"),
    [
        (9, "b0", "with peepholes makes y; hilt converts it without"),
        (16, "r0", "with a projection makes y; hilt converts it without"),
        (20, "b0", "with layer normalisation makes y; hilt converts it without"),
        (1, "", "makes y with three gates or without tanh"),
    ],
)
def test_an_lstm_of_another_form_is_refused(place: int, name: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(OnnxError, match=f"UNIDIRECTIONAL_SEQUENCE_LSTM {text}"):
        loaded(lstm_network(tmp_path / "lstm.tflite", 7, 10.0, False, {place: name}))


def test_an_lstm_without_tanh_is_refused(tmp_path: Path) -> None:
    relu = schema.ActivationFunctionType.RELU
    with pytest.raises(OnnxError, match="makes y with three gates or without tanh"):
        loaded(lstm_network(tmp_path / "lstm.tflite", 7, 10.0, False, activation=relu))


def test_layers_of_a_sequence_follow_each_other_without_transposes(tmp_path: Path) -> None:
    """Pads, biases and activations between convolutions of (N, L, C) stay with their layers."""
    b = TfliteBuilder()
    b.tensor("axis", (), "int32", np.array(1))
    b.tensor("pads", (3, 2), "int32", ints([0, 0], [2, 0], [0, 0]))
    b.tensor("shape", (3,), "int32", ints(1, 12, 6))
    b.tensor("half", (6,), value=normal(6))
    source = b.tensor("x", (1, 12, 6))
    for layer in range(2):
        n = str(layer)
        b.tensor(f"p{n}", (1, 14, 6))
        b.tensor(f"e{n}", (1, 1, 14, 6))
        b.tensor(f"w{n}", (6, 1, 3, 6), value=normal(6, 1, 3, 6))
        b.tensor(f"b{n}", (6,), value=normal(6))
        for name, shape in (("c", (1, 1, 12, 6)), ("q", (1, 12, 6)), ("a", (1, 12, 6)), ("t", (1, 12, 6))):
            b.tensor(name + n, shape)
        b.operator("PAD", [source, "pads"], [f"p{n}"])
        b.operator("EXPAND_DIMS", [f"p{n}", "axis"], [f"e{n}"])
        b.operator("CONV_2D", [f"e{n}", f"w{n}", f"b{n}"], [f"c{n}"], "Conv2DOptions", padding=VALID, strideH=1,
                   strideW=1, dilationHFactor=1, dilationWFactor=1)  # fmt: skip
        b.operator("RESHAPE", [f"c{n}", "shape"], [f"q{n}"])
        b.operator("ADD", [f"q{n}", "half"], [f"a{n}"], "AddOptions")
        b.operator("TANH", [f"a{n}"], [f"t{n}"])
        source = f"t{n}"
    graph = assert_same(b.save(tmp_path / "rows.tflite", ["x"], [source]), [normal(1, 12, 6, size=1)])
    ops = [node.op for node in graph.nodes]
    between = ops[ops.index("Conv") + 1 : len(ops) - 1 - ops[::-1].index("Conv")]
    assert between == ["Tanh", "Pad"]  # the second bias too is in its layer's weights
