"""ONNX's own backend tests, each in up to four variants that hilt may run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.loader import load_model_tests

Array = NDArray[Any]

KINDS = ("node", "pytorch-converted", "pytorch-operator", "simple")
VARIANTS = ("as it is", "constants", "behind a layer", "between layers")
_MOST_DEEP = 4096
"""Largest last axis that an identity layer is made for."""


@dataclass(frozen=True)
class Case:
    """A model with its inputs; the operator is that of its test."""

    name: str
    variant: str
    operator: str
    model: Any
    feeds: dict[str, Array]


def cases(kinds: tuple[str, ...] = KINDS) -> Iterator[Case]:
    """Yield every variant of every float test, in the package's order."""
    for kind in kinds:
        for test in load_model_tests(kind=kind):
            model = test.model or onnx.load(Path(test.model_dir) / "model.onnx")
            feeds = _feeds(model, test)
            if feeds is None:
                continue
            operator = model.graph.node[-1].op_type if model.graph.node else "none"
            for variant, changed, given in _variants(model, feeds):
                yield Case(test.name, variant, operator, changed, given)


def _feeds(model: Any, test: Any) -> dict[str, Array] | None:
    """Return the arrays of a test, or None if its first input is not float32 or any is no tensor."""
    constants = {each.name for each in model.graph.initializer}
    inputs = [each for each in model.graph.input if each.name not in constants]
    if test.data_sets:
        arrays = list(test.data_sets[0][0])
    else:
        folder = Path(test.model_dir) / "test_data_set_0"
        arrays = [_tensor(folder / f"input_{number}.pb") for number in range(len(inputs))]
    feeds = dict(zip([each.name for each in inputs], arrays, strict=False))
    tensors = bool(feeds) and all(isinstance(array, np.ndarray) for array in arrays)
    return feeds if tensors and next(iter(feeds.values())).dtype == np.float32 else None


def _tensor(path: Path) -> Array | None:
    """Return the tensor of a file; None where it holds another kind of value."""
    tensor = TensorProto()
    try:
        tensor.ParseFromString(path.read_bytes())
        return numpy_helper.to_array(tensor)
    except (OSError, TypeError, ValueError, DecodeError):
        return None


def _variants(model: Any, feeds: dict[str, Array]) -> Iterator[tuple[str, Any, dict[str, Array]]]:
    yield VARIANTS[0], model, feeds
    first = next(iter(feeds))
    constant = _with_constants(model, {name: array for name, array in feeds.items() if name != first})
    if len(feeds) > 1:
        yield VARIANTS[1], constant, {first: feeds[first]}
    depth = feeds[first].shape[1 if feeds[first].ndim == 4 else -1] if feeds[first].ndim > 1 else 0
    if 0 < depth <= _MOST_DEEP:
        behind = _behind(constant, first, feeds[first])
        yield VARIANTS[2], behind, {"data_in": feeds[first]}
        between = _before(behind)
        if between is not None:
            yield VARIANTS[3], between, {"data_in": feeds[first]}


def _copy(model: Any) -> Any:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def _with_constants(model: Any, arrays: dict[str, Array]) -> Any:
    changed = _copy(model)
    kept = [each for each in changed.graph.input if each.name not in arrays]
    del changed.graph.input[:]
    changed.graph.input.extend(kept)
    changed.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    return changed


def _identity(name: str, source: str, result: str, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Return a layer that changes nothing, and its weights: a 1x1 convolution of images, else a MatMul."""
    if len(shape) == 4:
        weights = np.eye(shape[1], dtype=np.float32)[:, :, None, None]
        return helper.make_node("Conv", [source, name], [result], name), numpy_helper.from_array(weights, name)
    weights = np.eye(shape[-1], dtype=np.float32)
    return helper.make_node("MatMul", [source, name], [result], name), numpy_helper.from_array(weights, name)


def _behind(model: Any, first: str, array: Array) -> Any:
    changed = _copy(model)
    layer, weights = _identity("identity_in", "data_in", first, array.shape)
    kept = [each for each in changed.graph.input if each.name != first]
    nodes = [layer, *changed.graph.node]
    for field, values in (("input", kept), ("node", nodes)):
        del getattr(changed.graph, field)[:]
        getattr(changed.graph, field).extend(values)
    changed.graph.input.insert(0, helper.make_tensor_value_info("data_in", TensorProto.FLOAT, array.shape))
    changed.graph.initializer.append(weights)
    return changed


def _before(model: Any) -> Any | None:
    """Return the model with a layer behind its first output; None if that is no float tensor of known depth."""
    changed = _copy(model)
    output = changed.graph.output[0]
    kind = output.type.tensor_type
    shape = tuple(each.dim_value for each in kind.shape.dim)
    if kind.elem_type != TensorProto.FLOAT or len(shape) < 2 or min(shape) < 1:
        return None
    if shape[1 if len(shape) == 4 else -1] > _MOST_DEEP:
        return None
    layer, weights = _identity("identity_out", output.name, "data_out", shape)
    changed.graph.node.append(layer)
    changed.graph.initializer.append(weights)
    changed.graph.output[0].CopyFrom(helper.make_tensor_value_info("data_out", TensorProto.FLOAT, shape))
    return changed
