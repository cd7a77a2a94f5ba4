"""Sparse and four-bit constants, variables of streams, MediaPipe's own operator: as TFLite's interpreter reads them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilt.network.onnx_graph import OnnxError, to_model
from hilt.network.tflite.convert import load_tflite

from .models import Array, session_of
from .test_tflite import assert_same, loaded, normal
from .tflite_models import TfliteBuilder, interpret_stream, schema

RANDOM = np.random.default_rng(31)


def pruned(*shape: int, share: float = 0.3) -> Array:
    """Return an array of which a share is not zero."""
    return np.where(RANDOM.random(shape) < share, normal(*shape), 0).astype(np.float32)


def compressed(values: Array, order: list[int], sparse: set[int], block: dict[int, int]) -> tuple[Array, Any]:
    """Return the stored values and the levels of a sparse array; an axis of `sparse` lists its places."""
    axes, parameters = list(block), schema.SparsityParametersT()
    sizes = [size // block.get(axis, 1) for axis, size in enumerate(values.shape)] + list(block.values())
    parameters.traversalOrder, parameters.blockMap = order, axes
    rank, entries, parameters.dimMetadata = values.ndim, [{}], []

    def at(place: dict[int, int]) -> np.float32:
        inner = {axis: place[rank + number] for number, axis in enumerate(axes)}
        return np.float32(values[tuple(place[axis] * block.get(axis, 1) + inner.get(axis, 0) for axis in range(rank))])

    def some(place: dict[int, int], left: list[int]) -> bool:
        if not left:
            return bool(at(place) != 0)
        return any(some({**place, left[0]: index}, left[1:]) for index in range(sizes[left[0]]))

    for number, axis in enumerate(order):
        level = schema.DimensionMetadataT()
        parameters.dimMetadata.append(level)
        level.format, level.denseSize = int(axis in sparse), 0 if axis in sparse else sizes[axis]
        longer, segments, places = [], [0], []
        for entry in entries:
            for index in range(sizes[axis]):
                if axis not in sparse or some({**entry, axis: index}, order[number + 1 :]):
                    longer.append({**entry, axis: index})
                    places.append(index)
            segments.append(len(places))
        if axis in sparse:
            level.arraySegmentsType = level.arrayIndicesType = schema.SparseIndexVector.Int32Vector
            level.arraySegments, level.arrayIndices = schema.Int32VectorT(), schema.Int32VectorT()
            level.arraySegments.values, level.arrayIndices.values = segments, places
        entries = longer
    return np.array([at(entry) for entry in entries], np.float32), parameters


@pytest.mark.parametrize(
    ("shape", "order", "sparse", "block"),
    [
        ((6, 8), [0, 1], {1}, {}),
        ((6, 8), [1, 0], {0}, {}),
        ((8, 1, 1, 12), [0, 1, 2, 3], {3}, {}),
        ((8, 12), [0, 1, 2], {1}, {1: 4}),
        ((8, 12), [0, 1, 2, 3], {1}, {0: 2, 1: 4}),
    ],
)
def test_a_sparse_constant_is_the_interpreters(
    shape: tuple[int, ...], order: list[int], sparse: set[int], block: dict[int, int], tmp_path: Path
) -> None:
    values = pruned(*shape)
    stored, levels = compressed(values, order, sparse, block)
    b = TfliteBuilder()
    b.tensor("x", shape)
    b.tensor("y", shape)
    b.tensor("w", shape, value=stored, sparsity=levels)
    b.tensor("dense", shape)
    b.operator("DENSIFY", ["w"], ["dense"], "DensifyOptions")
    b.operator("ADD", ["x", "dense"], ["y"], "AddOptions")
    path = b.save(tmp_path / "s.tflite", ["x"], ["y"])
    graph = assert_same(path, [normal(*shape, size=1)])
    assert any(value.shape == shape and np.array_equal(value, values) for value in graph.constants.values())


def test_a_sparse_constant_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    stored, levels = compressed(pruned(6, 8), [0, 1], {1}, {})
    segments, places = levels.dimMetadata[1].arraySegments, levels.dimMetadata[1].arrayIndices
    for spoil in (
        lambda: segments.values.__setitem__(-1, segments.values[-1] + 1),
        lambda: segments.values.__setitem__(2, -1),
        lambda: places.values.__setitem__(0, 8),
        lambda: setattr(levels, "traversalOrder", [0, 0]),
        lambda: setattr(levels.dimMetadata[0], "denseSize", 7),
    ):
        before = (
            list(segments.values),
            list(places.values),
            list(levels.traversalOrder),
            levels.dimMetadata[0].denseSize,
        )
        spoil()
        b = TfliteBuilder()
        b.tensor("x", (6, 8))
        b.tensor("y", (6, 8))
        b.tensor("w", (6, 8), value=stored, sparsity=levels)
        b.operator("ADD", ["x", "w"], ["y"], "AddOptions")
        with pytest.raises(OnnxError, match=r"is a damaged TFLite model: a sparse constant"):
            load_tflite(b.save(tmp_path / "s.tflite", ["x"], ["y"]))
        segments.values, places.values, levels.traversalOrder, levels.dimMetadata[0].denseSize = before


def test_four_bit_weights_are_the_interpreters(tmp_path: Path) -> None:
    weights = RANDOM.integers(-7, 8, (5, 7)).astype(np.int8)
    b = TfliteBuilder()
    b.tensor("x", (1, 7))
    b.tensor("y", (1, 5))
    flat = np.append(weights.reshape(-1), 0).astype(np.uint8) & 0xF
    b.tensor("w", (5, 7), "int4", value=flat[::2] | flat[1::2] << 4, scale=0.25)
    b.tensor("real", (5, 7))
    b.operator("DEQUANTIZE", ["w"], ["real"], "DequantizeOptions", version=6)
    b.operator("FULLY_CONNECTED", ["x", "real"], ["y"], "FullyConnectedOptions")
    assert_same(b.save(tmp_path / "q.tflite", ["x"], ["y"]), [normal(1, 7, size=1)])


@pytest.mark.parametrize(("stride", "size", "padding"), [(2, 10, 1), (2, 11, 2), (3, 15, 1)])
def test_mediapipes_transposed_convolution_is_the_interpreters(
    stride: int, size: int, padding: int, tmp_path: Path
) -> None:
    b = TfliteBuilder()
    b.tensor("x", (1, 5, 5, 4))
    b.tensor("y", (1, size, size, 6))
    b.tensor("w", (6, 3, 3, 4), value=normal(6, 3, 3, 4))
    b.tensor("b", (6,), value=normal(6))
    options = struct.pack("<3i", padding, stride, stride)
    b.custom("Convolution2DTransposeBias", ["x", "w", "b"], ["y"], options)
    path, x = b.save(tmp_path / "t.tflite", ["x"], ["y"]), normal(1, 5, 5, 4, size=1)
    ((wanted,),) = interpret_stream(path, [[x]], "AUTO")
    (given,) = session_of(to_model(loaded(path))).run(None, {"x": x})
    np.testing.assert_allclose(given, wanted, atol=1e-5)


def test_a_streams_variables_are_inputs_and_outputs(tmp_path: Path) -> None:
    """A filter over the last three frames keeps two of them; eight frames come in one by one."""
    b = TfliteBuilder()
    b.tensor("x", (1, 1, 4))
    b.tensor("y", (1, 3, 4))
    b.tensor("held", (), "resource")
    b.tensor("before", (1, 2, 4))
    b.tensor("window", (1, 3, 4))
    b.tensor("begin", (3,), "int32", np.array([0, 1, 0]))
    b.tensor("size", (3,), "int32", np.array([1, 2, 4]))
    b.tensor("kept", (1, 2, 4))
    b.tensor("read again", (1, 2, 4))
    b.tensor("pads", (3, 2), "int32", np.array([[0, 0], [0, 1], [0, 0]]))
    b.tensor("last", (1, 3, 4))
    b.operator("VAR_HANDLE", [], ["held"], "VarHandleOptions", container="", sharedName="frames")
    b.begin_with("held", "frames", np.zeros((1, 2, 4), np.float32))
    b.operator("READ_VARIABLE", ["held"], ["before"], "ReadVariableOptions")
    b.operator("CONCATENATION", ["before", "x"], ["window"], "ConcatenationOptions", axis=1)
    b.operator("SLICE", ["window", "begin", "size"], ["kept"], "SliceOptions")
    b.operator("ASSIGN_VARIABLE", ["held", "kept"], [], "AssignVariableOptions")
    b.operator("READ_VARIABLE", ["held"], ["read again"], "ReadVariableOptions")
    b.operator("PAD", ["read again", "pads"], ["last"], "PadOptions")
    b.operator("ADD", ["window", "last"], ["y"], "AddOptions")
    path = b.save(tmp_path / "v.tflite", ["x"], ["y"])
    graph = loaded(path)
    assert graph.inputs == ["x", "held.before"] and graph.outputs == ["y", "held.after"]
    session, state = session_of(to_model(graph)), np.zeros((1, 2, 4), np.float32)
    frames = [normal(1, 1, 4, size=1) for _ in range(8)]
    for x, (wanted,) in zip(frames, interpret_stream(path, [[x] for x in frames]), strict=True):
        given, state = session.run(None, {"x": x, "held.before": state})
        np.testing.assert_allclose(given, wanted, rtol=1e-6)


def test_whole_quotients_and_ranges_are_the_interpreters(tmp_path: Path) -> None:
    """The places of a signal's frames, as TensorFlow's framing computes them from its length."""
    b = TfliteBuilder()
    b.tensor("x", (1, 23))
    b.tensor("s", (2,), "int32")
    b.tensor("axis", (), "int32", np.array(0))
    b.tensor("length", (2,), "int32", np.array([-5, 1]))
    b.tensor("hop", (2,), "int32", np.array([3, -3]))
    b.tensor("shorter", (2,), "int32")
    b.tensor("count", (2,), "int32")
    b.tensor("wide", (1, 2), "int32")
    b.tensor("y", (1, 2))
    b.operator("SHAPE", ["x"], ["s"], "ShapeOptions", outType=schema.TensorType.INT32)
    b.operator("ADD", ["s", "length"], ["shorter"], "AddOptions")
    b.operator("FLOOR_DIV", ["shorter", "hop"], ["count"], "FloorDivOptions", version=2)
    b.operator("EXPAND_DIMS", ["count", "axis"], ["wide"], "ExpandDimsOptions")
    b.operator("CAST", ["wide"], ["y"])
    assert_same(b.save(tmp_path / "d.tflite", ["x"], ["y"]), [normal(1, 23)])  # -4 / 3 is -2, 24 / -3 is -8
    b = TfliteBuilder()
    b.tensor("x", (1, 4))
    for name, value in (("first", 2), ("end", 14), ("step", 3)):
        b.tensor(name, (), "int32", np.array(value))
    b.tensor("places", (4,), "int32")
    b.tensor("real", (4,))
    b.tensor("y", (1, 4))
    b.operator("RANGE", ["first", "end", "step"], ["places"], "RangeOptions")
    b.operator("CAST", ["places"], ["real"])
    b.operator("MUL", ["x", "real"], ["y"], "MulOptions")
    assert_same(b.save(tmp_path / "r.tflite", ["x"], ["y"]), [normal(1, 4)])


@pytest.mark.parametrize(("rows", "length"), [(1, 16), (1, 8), (4, 16)])
@pytest.mark.parametrize("code", ["COMPLEX_ABS", "REAL", "IMAG", "CAST"])
def test_a_transform_of_fourier_is_the_interpreters(code: str, rows: int, length: int, tmp_path: Path) -> None:
    b = TfliteBuilder()
    b.tensor("x", (2, 3, rows, 16))
    b.tensor("lengths", (2,), "int32", np.array([rows, length]))
    b.tensor("waves", (2, 3, rows, length // 2 + 1), "complex64")
    b.tensor("shape", (3,), "int32", np.array([6, rows, length // 2 + 1]))
    b.tensor("lines", (6, rows, length // 2 + 1), "complex64")
    b.tensor("y", (6, rows, length // 2 + 1))
    b.operator("RFFT2D", ["x", "lengths"], ["waves"], "Rfft2dOptions")
    b.operator("RESHAPE", ["waves", "shape"], ["lines"], "ReshapeOptions")
    b.operator(code, ["lines"], ["y"])
    assert_same(b.save(tmp_path / "f.tflite", ["x"], ["y"]), [normal(2, 3, rows, 16, size=1)])


def test_an_operator_on_complex_numbers_is_named(tmp_path: Path) -> None:
    b = TfliteBuilder()
    b.tensor("x", (1, 8))
    b.tensor("lengths", (2,), "int32", np.array([1, 8]))
    b.tensor("waves", (1, 5), "complex64")
    b.tensor("y", (1, 5), "complex64")
    b.operator("RFFT2D", ["x", "lengths"], ["waves"], "Rfft2dOptions")
    b.operator("MUL", ["waves", "waves"], ["y"], "MulOptions")
    with pytest.raises(OnnxError, match="MUL of complex numbers makes y; hilt does not convert it"):
        load_tflite(b.save(tmp_path / "m.tflite", ["x"], ["y"]))


def test_a_constant_without_elements_is_one(tmp_path: Path) -> None:
    b = TfliteBuilder()
    b.tensor("x", (1,))
    b.tensor("none", (0,), "int32")
    b.tensor("scalar", ())
    b.tensor("y", (1,))
    b.operator("RESHAPE", ["x", "none"], ["scalar"], "ReshapeOptions")
    b.operator("ADD", ["x", "scalar"], ["y"], "AddOptions")
    assert_same(b.save(tmp_path / "e.tflite", ["x"], ["y"]), [normal(1)])
