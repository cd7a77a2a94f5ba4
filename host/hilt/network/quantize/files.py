"""Quantises a file: reads model and calibration data, writes the quantised model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from pathlib import Path

import onnx

from hilt.atomic_write import atomic_write_bytes
from hilt.network.array_file import read_arrays
from hilt.network.calibration import make_calibration, shapes_from
from hilt.network.gate import check_file, check_rewritten
from hilt.network.images import Images, as_model_reads, take_images
from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_graph import OnnxGraph, load_graph, to_model
from hilt.network.onnx_import import import_proto
from hilt.network.onnx_simplify import fix_float
from hilt.network.quantize.counting import Counting, uncounted
from hilt.network.quantize.quantizer import Quantisation, quantise
from hilt.network.tflite.convert import load_tflite
from hilt.network.tflite.reader import SUFFIX


def quantise_file(
    path: Path,
    calibration: Path,
    *,
    labels: str = "",
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, float] | None = None,
    channel_block: int | None = None,
    search: bool = True,
    kept: Collection[str] = (),
    least_decibels: float | None = None,
    borders: bool | None = None,
    images: Images | None = None,
    counting: Counting = uncounted,
) -> Quantisation:
    """Quantise a model, float or quantised by others.

    Args:
        path: The ONNX model.
        calibration: An .npz with an array for each input, or an .npy for the only one.
        labels: The name of the array of classes in it; empty for none.
        shapes: Shapes of open inputs; those that are not given follow from the calibration data.
        values: Inputs that become constants.
        channel_block: As quantise's.
        search: Improve the scales by their effect on the outputs.
        kept: Nodes that stay in float on the processor.
        least_decibels: Keep as few further layers in float as bring each output to so many decibels.
        borders: As quantise's.
        images: The images that the quantised model reads in place of floats; the calibration data holds such images.
        counting: Counts the work of each phase.

    Raises:
        OnnxError: The model cannot be read or has nothing for VTA.
        ArrayFileError: The data cannot be read.
        CalibrationError: The data does not fit the model.
    """
    arrays = read_arrays(calibration)
    graph = load_tflite(path) if path.suffix == SUFFIX else load_graph(path)
    seen = arrays if images is None else as_model_reads(arrays, graph, images, labels)
    original, notes = _canonical(graph, {**shapes_from(seen, graph, labels), **(shapes or {})}, values or {}, images)
    data = make_calibration(arrays, graph, labels)
    check_rewritten(original, graph, data.samples)
    return quantise(
        graph, data, channel_block=channel_block, search=search, kept=kept, least_decibels=least_decibels,
        borders=borders, counting=counting, notes=notes,
    )  # fmt: skip


def _canonical(
    graph: OnnxGraph, shapes: Mapping[str, Sequence[int]], values: Mapping[str, float], images: Images | None
) -> tuple[OnnxGraph, list[str]]:
    """Fix a model and bring it to its canonical form in place; return the fixed model before that, and notes."""
    declared = dict(graph.dtypes)
    notes = []
    if fix_float(graph, shapes, values):
        notes.append("the model was quantised already: its weights were taken back to float and get new scales")
    if images is not None:
        take_images(graph, images)
    original = deepcopy(graph)
    canonicalise(graph)
    return original, notes + (_changed_types(declared, graph) if images is None else [])


def _changed_types(declared: Mapping[str, str], graph: OnnxGraph) -> list[str]:
    """Return a line for each input and output that has another type now."""
    return [
        f"{kind} {name} was {declared[name]} and is {graph.dtypes[name]}: the numbers that it stood for"
        for kind, names in (("input", graph.inputs), ("output", graph.outputs))
        for name in names
        if declared.get(name, "") != graph.dtypes.get(name, "") and name in declared and name in graph.dtypes
    ]


def write_model(result: Quantisation, path: Path) -> None:
    """Write a quantised model as an ONNX file, whole or not at all, after its contents were read back and checked.

    Raises:
        WrongFileError: The contents compute something else than the model.
        UnwritableFileError: The folder is not there.
        OSError: Its disk is full; it names the file.
    """
    contents = to_model(result.model).SerializeToString()
    read_back = import_proto(onnx.load_model_from_string(contents), path.stem)
    check_file(read_back, result.model, result.samples)
    atomic_write_bytes(path, contents)
