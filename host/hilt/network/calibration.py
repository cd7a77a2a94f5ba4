"""Calibration data, and ONNX Runtime, which computes a model on it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.array_file import are_numbers
from hilt.network.onnx_graph import OnnxError, OnnxGraph, to_model

Feeds = dict[str, NDArray[Any]]


class CalibrationError(ValueError):
    """Calibration data that does not fit its model, or no ONNX Runtime to compute it."""


@dataclass(frozen=True)
class Calibration:
    """Samples for a model, one inference each.

    Attributes:
        samples: Arrays by input name, with the model's shapes.
        labels: The class of each sample; None if there are none.
    """

    samples: tuple[Feeds, ...]
    labels: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class HeldOut:
    """Calibration samples by their use.

    Attributes:
        fitted: Scales, ranges and weights are fitted to these.
        deciding: A change stays only if it serves these, which it was not fitted to.
        reported: The loss is measured on these, which nothing was fitted to or decided by if `unseen`.
        unseen: Tells whether there were samples enough for that.
    """

    fitted: tuple[Feeds, ...]
    deciding: tuple[Feeds, ...]
    reported: tuple[Feeds, ...]
    unseen: bool


_FEWEST_TO_HOLD_OUT = 8


def hold_out(calibration: Calibration) -> HeldOut:
    """Return the samples with half of them held out, drawn by a fixed seed: data may be sorted, or alternate.

    Too few samples serve every use.
    """
    samples = calibration.samples
    if len(samples) < _FEWEST_TO_HOLD_OUT:
        return HeldOut(samples, samples, samples, False)
    order = np.random.default_rng(len(samples)).permutation(len(samples)).tolist()
    first, second, third = (
        tuple(samples[place] for place in sorted(places)) for places in (order[::2], order[1::4], order[3::4])
    )
    return HeldOut(first, second, third, True)


def spread(samples: Sequence[Feeds], count: int) -> tuple[Feeds, ...]:
    """Return at most so many samples, spread evenly over all of them."""
    places = np.linspace(0, len(samples) - 1, min(count, len(samples))).round().astype(int)
    return tuple(samples[place] for place in places)


def shapes_from(arrays: Mapping[str, NDArray[Any]], graph: OnnxGraph, labels: str) -> dict[str, tuple[int, ...]]:
    """Return the shapes of one sample for the inputs whose shape the model leaves open."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name in graph.inputs:
        declared = graph.shapes.get(name)
        array = _array_of(arrays, name, graph.inputs, labels)
        if array is None or declared is None or None not in declared:
            continue
        if array.ndim == len(declared) and None in declared[1:]:
            shapes[name] = (declared[0] or 1, *array.shape[1:])
        elif array.ndim == len(declared) + 1:  # whole inputs, one behind another
            shapes[name] = array.shape[1:]
    return shapes


def make_calibration(arrays: Mapping[str, NDArray[Any]], graph: OnnxGraph, labels: str = "") -> Calibration:
    """Cut arrays into samples of a fixed model's input shapes.

    Args:
        arrays: By input name; with one input any single array will do. Their first axis counts the samples.
        graph: The fixed model.
        labels: The name of the array of classes; empty for none.

    Raises:
        CalibrationError: An array is missing, has another shape, or holds no sample, NaN or infinity.
    """
    if not graph.inputs:
        raise OnnxError(f"{graph.name} has no inputs: all that it gives out is constant, and there is nothing to run")
    columns: dict[str, list[NDArray[Any]]] = {}
    for name in graph.inputs:
        array = _array_of(arrays, name, graph.inputs, labels)
        if array is None:
            raise CalibrationError(
                f"the calibration data has no array {name}, only {', '.join(arrays) or 'none'}; name it as the input"
            )
        if not are_numbers(array):
            raise CalibrationError(f"the calibration data for {name} is of type {array.dtype}; give numbers")
        with np.errstate(over="ignore"):  # infinity is refused
            converted = array.astype(graph.dtypes.get(name, "float32"))
        columns[name] = _cut(converted, graph.shape(name), name)
    counts = {name: len(column) for name, column in columns.items()}
    if len(set(counts.values())) != 1:
        text = ", ".join(f"{count} of {name}" for name, count in counts.items())
        raise CalibrationError(f"the calibration data has {text}; give as many of each")
    count = min(counts.values())
    samples = tuple({name: column[number] for name, column in columns.items()} for number in range(count))
    return Calibration(samples, _labels(arrays, labels, count, graph))


def _array_of(arrays: Mapping[str, NDArray[Any]], name: str, inputs: Sequence[str], labels: str) -> NDArray[Any] | None:
    if name in arrays:
        return arrays[name]
    others = [array for key, array in arrays.items() if not labels or key != labels]
    return others[0] if len(inputs) == 1 and len(others) == 1 else None


def _cut(array: NDArray[Any], shape: tuple[int, ...], name: str) -> list[NDArray[Any]]:
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise CalibrationError(f"the calibration data for {name} holds NaN or infinity")
    if array.ndim and not len(array):
        raise CalibrationError(f"the calibration data holds no sample of {name}; give at least one")
    if array.shape == shape:
        return [array]
    if array.shape[1:] == shape:
        return list(array)
    batch = shape[0] if shape else 1
    if array.ndim != len(shape) or array.shape[1:] != shape[1:] or array.shape[0] < batch:
        wanted = "x".join(map(str, ("n", *shape[1:])))
        raise CalibrationError(f"the calibration data for {name} is {array.shape}, but the model reads {wanted}")
    return [array[start : start + batch] for start in range(0, array.shape[0] - batch + 1, batch)]


def _labels(arrays: Mapping[str, NDArray[Any]], labels: str, count: int, graph: OnnxGraph) -> NDArray[np.int64] | None:
    if not labels:
        return None
    if labels not in arrays:
        known = ", ".join(arrays)
        raise CalibrationError(f"the calibration data has no array {labels}, only {known}; --labels names it")
    values = arrays[labels].reshape(-1)
    if len(values) != count or values.dtype.kind not in "iu":
        raise CalibrationError(
            f"{labels} has {len(values)} values of {values.dtype} for {count} samples; give one integer a sample"
        )
    answers = math.prod(graph.shape(graph.outputs[0]))
    if min(values.min(), answers - 1 - values.max()) < 0:
        raise CalibrationError(
            f"{labels} has classes {values.min()} to {values.max()}; the model tells 0 to {answers - 1} apart"
        )
    return values.astype(np.int64)


def session_options(level: str = "ORT_ENABLE_ALL") -> Any:
    """Return ONNX Runtime's options for one thread, up to a level of optimisation, without its kernels of int8.

    On x86 processors without VNNI these add pairs of products in 16 bits, which saturate. Some refuse scales more than
    256 times apart. Without them a model of QuantizeLinear and DequantizeLinear is computed as ONNX defines it.

    Raises:
        CalibrationError: ONNX Runtime is not installed.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise CalibrationError("onnxruntime is not installed; `pip install hilt[networks]` brings it") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    return options


def _session(contents: bytes, name: str, level: str) -> Any:
    """Return a model's ONNX Runtime session on one thread, optimised up to a level. Raises as Runner."""
    options = session_options(level)
    import onnxruntime

    try:
        return onnxruntime.InferenceSession(
            contents,
            options,
            providers=["CPUExecutionProvider"],
            enable_fallback=0,  # which prints
        )
    except Exception as error:  # ONNX Runtime's own classes have no common base
        raise OnnxError(f"ONNX Runtime refuses {name}: {' '.join(str(error).split())[:300]}") from error


class Runner:
    """One model in ONNX Runtime, on one thread, which makes its results repeatable."""

    def __init__(self, graph: OnnxGraph, outputs: Sequence[str], *, optimised: bool = True) -> None:
        """Load a graph that gives out `outputs`.

        Raises:
            CalibrationError: ONNX Runtime is not installed.
            OnnxError: It refuses the model.
        """
        self._graph = graph
        self.outputs = list(dict.fromkeys(outputs))
        try:
            self._session = self._loaded("ORT_ENABLE_ALL" if optimised else "ORT_DISABLE_ALL")
        except OnnxError:
            if not optimised:
                raise
            # ORT_ENABLE_ALL may fuse a convolution into the sum that reads it, and loses its result as an output
            self._session = self._loaded("ORT_ENABLE_EXTENDED")

    def run(self, feeds: Feeds) -> dict[str, NDArray[Any]]:
        """Return the outputs of one inference by name.

        Raises:
            CalibrationError: The data is of the wrong shape, or holds places that are not there.
        """
        try:
            given = self._session.run(self.outputs, feeds)
        except Exception as error:  # ONNX Runtime's own classes have no common base
            reason = " ".join(str(error).split())[:300]
            raise CalibrationError(
                f"ONNX Runtime cannot compute {self._graph.name} on the calibration data: {reason}"
            ) from error
        return dict(zip(self.outputs, given, strict=True))

    def _loaded(self, level: str) -> Any:
        contents = to_model(self._graph, extra_outputs=tuple(self.outputs)).SerializeToString()
        return _session(contents, self._graph.name, level)

    def over(self, samples: Sequence[Feeds], extra: Feeds | None = None) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield the outputs of each sample; `extra` feeds go with every one."""
        for feeds in samples:
            yield self.run({**feeds, **(extra or {})})
