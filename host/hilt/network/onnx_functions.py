"""Operators that ONNX defines by others: inlined where hilt has none of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hilt.network.onnx_group_norms import write_group_norms
from hilt_runtime import operators

_OWN = frozenset(("DynamicQuantizeLinear",))
"""Operators that `unquantise` takes back to float."""
_MOST_ROUNDS = 4
"""Functions that call functions."""


def inline_functions(model: Any) -> Any:
    """Return a ModelProto without model-local functions, and without operators that only their definition computes."""
    import onnx.inliner
    import onnx.shape_inference

    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    opset = max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)
    model = write_group_norms(model, opset)
    for _ in range(_MOST_ROUNDS):
        names = sorted({node.op_type for node in _nodes(model.graph) if _is_defined(node, opset)})
        if not names:
            break
        wanted = [("", name) for name in names]
        try:
            typed = _with_types(onnx.shape_inference.infer_shapes(model))
            model = onnx.inliner.inline_selected_functions(typed, wanted, inline_schema_functions=True)
        except (RuntimeError, onnx.shape_inference.InferenceError):
            break  # a definition needs a type that stays open: the operator is refused by name
    return model


def _with_types(model: Any) -> Any:
    """Return the model with the types of its constants declared: the inliner reads no initialisers."""
    import onnx

    known = {value.name for value in (*model.graph.input, *model.graph.value_info)}
    for each in model.graph.initializer:
        if each.name not in known:
            model.graph.value_info.append(onnx.helper.make_tensor_value_info(each.name, each.data_type, each.dims))
    return model


def _is_defined(node: Any, opset: int) -> bool:
    import onnx

    if node.domain or node.op_type in _OWN or node.op_type in operators.OPERATORS:
        return False
    try:
        schema = onnx.defs.get_schema(node.op_type, opset)
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)  # type: ignore[attr-defined]


def _nodes(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs] if attribute.HasField("g") or attribute.graphs else []:
                yield from _nodes(inner)
