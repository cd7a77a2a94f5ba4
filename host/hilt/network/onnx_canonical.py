"""One form for each kind of layer, in ONNX's own operators: the only forms for quantisation and import to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.kernels import spread
from hilt.network.onnx_affine import fold_affine, write_norms_as_layers
from hilt.network.onnx_channel_pools import pool_channels
from hilt.network.onnx_clips import clip_hard_sigmoids
from hilt.network.onnx_cut_joins import cut_at_once, cut_before_joining, turn_before_joining
from hilt.network.onnx_dilated_lines import fold_dilated_line
from hilt.network.onnx_fourier import write_transforms
from hilt.network.onnx_functions_first import functions_first
from hilt.network.onnx_functions_of_cuts import functions_before_cuts
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, infer_shapes, new_constant, reshape_node, slice_node
from hilt.network.onnx_idle_taps import without_idle_taps
from hilt.network.onnx_layouts import cancel_layouts
from hilt.network.onnx_look_up import fold_into_tables, look_up_one_hot
from hilt.network.onnx_mean_mixes import write_mean_mixes
from hilt.network.onnx_means import means_by_powers, means_by_weights, pool_means
from hilt.network.onnx_meeting_turns import cancel_meeting_turns
from hilt.network.onnx_phases import filter_by_phases
from hilt.network.onnx_pools import pool_largest
from hilt.network.onnx_products import merge_products, plain_product
from hilt.network.onnx_repeated import repeat_addends, repeat_pixels
from hilt.network.onnx_sequences import lift_sequences
from hilt.network.onnx_sinking import move_lines_and_batches_back, move_reshapes_back
from hilt.network.onnx_slices import part_joined
from hilt.network.onnx_transposed import activate_before_shuffle, lower_transposed
from hilt.network.onnx_turned_images import keep_channels_second
from hilt.network.onnx_turned_products import turn_products
from hilt.network.onnx_volumes import part_volumes
from hilt.network.onnx_written_norms import join_written_norms
from hilt_runtime.operators_window import pads_of

_MOST_PADS = 15
"""The largest pad of one side in a LOAD instruction."""
_AXES_AS_INPUT = 18
"""The operator set from which on ReduceSumSquare has its axes as an input."""
_MAX_DILATED_TAPS = 4
"""A dilated kernel is written with its zeros up to so many times its taps."""


def canonicalise(graph: OnnxGraph) -> None:
    """Rewrite a fixed float graph in place.

    Afterwards: convolutions and pools are two-dimensional with pads; a matrix product with constant weights is a Gemm
    with weights (N, K) and a bias by channel, or a Gather if it is of one-hot rows; strided ConvTranspose is a
    convolution and DepthToSpace; Flatten, Squeeze and Unsqueeze are Reshape; Split is Slice,
    and so is a Gather of one place; means over the image,
    its rows or its columns are pools, of 2^k elements where constant weights read them; means over other windows are
    convolutions there; both operands of a sum of images are of one size, and an Expand or Tile of pixels is a Resize;
    batch norms are folded; Pad and Resize are of all axes; transforms of Fourier are products or convolutions.
    """
    join_written_norms(graph)
    keep_channels_second(graph)
    write_transforms(graph)
    turn_products(graph)
    _each_node(graph, repeat_pixels)
    part_volumes(graph)
    lift_sequences(graph)
    fold_affine(graph, ("ConvTranspose",))  # once it is lowered, a DepthToSpace stands between
    for rewrite in (
        _reshapes,
        _splits,
        _only_places,
        _nested_joins,
        _squares,
        _sums_of_norms,
        plain_product,
        pool_means,
        pool_largest,
        _pads,
        filter_by_phases,
        without_idle_taps,
        fold_dilated_line,
        _wide_pads,
        _whole_pads,
        _whole_sizes,
        lower_transposed,
        _dilations,
    ):
        _each_node(graph, rewrite)
        infer_shapes(graph)
    _rearrange(graph)
    graph.remove_unused()
    means_by_powers(graph)
    means_by_weights(graph)
    graph.name_apart()
    infer_shapes(graph)


def _rearrange(graph: OnnxGraph) -> None:
    """Move functions, cuts and layouts to where layers take them in, or where they cancel each other."""
    look_up_one_hot(graph)
    part_joined(graph)
    cut_before_joining(graph)
    cut_at_once(graph)
    functions_first(graph)
    functions_before_cuts(graph)
    turn_before_joining(graph)
    activate_before_shuffle(graph)
    _each_node(graph, _adjacent_reshapes)
    graph.remove_unused()
    move_lines_and_batches_back(graph)
    _each_node(graph, _adjacent_reshapes)
    graph.remove_unused()
    cancel_layouts(graph)
    for pooled in (pool_means, pool_largest):  # a mean over the image, or a maximum, may show only now
        _each_node(graph, pooled)
    pool_channels(graph)
    move_reshapes_back(graph)
    fold_into_tables(graph)
    fold_affine(graph)
    clip_hard_sigmoids(graph)
    write_mean_mixes(graph)
    write_norms_as_layers(graph)
    _sums_of_squares(graph)
    cancel_meeting_turns(graph)
    _each_node(graph, _adjacent_reshapes)
    merge_products(graph)
    _each_node(graph, repeat_addends)


def _each_node(graph: OnnxGraph, rewrite: Callable[[OnnxGraph, OnnxNode], list[OnnxNode] | None]) -> None:
    """Let `rewrite` give each node's successors; None keeps it."""
    nodes: list[OnnxNode] = []
    for node in graph.nodes:
        successors = None if node.domain else rewrite(graph, node)
        nodes += [node] if successors is None else successors
    graph.nodes = nodes


def _reshapes(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    if node.op not in ("Flatten", "Squeeze", "Unsqueeze", "Reshape"):
        return None
    return [reshape_node(graph, node.name, node.inputs[0], node.outputs[0], graph.shape(node.outputs[0]))]


def _splits(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    if node.op != "Split":
        return None
    axis = node.attributes.get("axis", 0)
    axis += len(graph.shape(node.inputs[0])) if axis < 0 else 0
    slices, start = [], 0
    for place, output in enumerate(node.outputs):
        end = start + graph.shape(output)[axis]
        slices.append(slice_node(graph, f"{node.name}.{place}", node.inputs[0], output, {axis: (start, end)}))
        start = end
    return slices


def _only_places(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Write a Gather of one constant place of computed floats as a Slice: attention takes its three parts so."""
    if node.op != "Gather" or node.inputs[0] in graph.constants or graph.dtypes.get(node.inputs[0]) != "float32":
        return None
    source, shape, places = node.inputs[0], graph.shape(node.inputs[0]), graph.constants.get(node.inputs[1])
    axis = node.attributes.get("axis", 0) % len(shape)
    place = _only_place(places, shape[axis])
    if place is None:
        return None
    cut = graph.unique(f"{node.name}.cut")
    return [
        slice_node(graph, cut, source, cut, {axis: (place, place + 1)}),
        reshape_node(graph, node.name, cut, node.outputs[0], graph.shape(node.outputs[0])),
    ]


def _only_place(places: NDArray[Any] | None, size: int) -> int | None:
    """Return the only one of constant places, of `size` that there are; None if it is not there, or more are given."""
    if places is None or places.size != 1 or not -size <= int(places.ravel()[0]) < size:
        return None
    return int(places.ravel()[0]) % size


def _nested_joins(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Let a Concat join the operands of a Concat in front of it, where nothing else reads that one."""
    if node.op != "Concat":
        return None
    inputs = _joined(graph, node, len(graph.shape(node.outputs[0])), graph.producers(), graph.consumers())
    return None if inputs == list(node.inputs) else [replace(node, inputs=inputs)]


def _joined(
    graph: OnnxGraph,
    node: OnnxNode,
    rank: int,
    producers: Mapping[str, OnnxNode],
    consumers: Mapping[str, Sequence[OnnxNode]],
) -> list[str]:
    """Return the tensors that a Concat joins, those of such Concats in front of it in their place."""
    found: list[str] = []
    for name in node.inputs:
        maker = producers.get(name)
        alone = len(consumers.get(name, [])) == 1 and name not in graph.outputs
        if (
            maker is None
            or maker.op != "Concat"
            or not alone
            or (maker.attributes["axis"] - node.attributes["axis"]) % rank
        ):
            found.append(name)
        else:
            found += _joined(graph, maker, rank, producers, consumers)
    return found


def _squares(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Make a power of 2 a product, which is the same float."""
    exponent = graph.constants.get(node.inputs[1]) if node.op == "Pow" else None
    if exponent is None or exponent.size != 1 or exponent.ravel()[0] != 2:
        return None
    alike = graph.shape(node.inputs[0]) == graph.shape(node.outputs[0])
    if not alike or graph.dtypes.get(node.inputs[0], "float32") != "float32":
        return None
    return [OnnxNode(node.name, "Mul", [node.inputs[0]] * 2, list(node.outputs))]


def _sums_of_norms(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Write a ReduceL1 or ReduceL2 of floats as a sum, which the native engine computes."""
    if node.op not in ("ReduceL1", "ReduceL2") or graph.dtypes.get(node.inputs[0], "float32") != "float32":
        return None
    data, *axes = node.inputs
    inner, attributes = graph.unique(f"{node.outputs[0]}.inner"), dict(node.attributes)
    if node.op == "ReduceL2":
        sums = OnnxNode(f"{node.name}.sum", "ReduceSumSquare", [data, *axes], [inner], attributes)
        return [sums, OnnxNode(node.name, "Sqrt", [inner], list(node.outputs))]
    if "axes" in attributes:  # ReduceSum has them as an input in earlier sets of operators
        axes = [new_constant(graph, f"{node.name}.axes", np.array(attributes.pop("axes"), np.int64))]
    sizes = OnnxNode(f"{node.name}.sizes", "Abs", [data], [inner])
    return [sizes, OnnxNode(node.name, "ReduceSum", [inner, *axes], list(node.outputs), attributes)]


def _sums_of_squares(graph: OnnxGraph) -> None:
    """Make in place a sum of products of a tensor with itself a ReduceSumSquare: one pass over the tensor."""
    producers = graph.producers()
    for node in graph.nodes:
        maker = producers.get(node.inputs[0]) if node.op == "ReduceSum" and not node.domain else None
        axes = graph.constants.get(node.inputs[1]) if len(node.inputs) > 1 else None
        if maker is None or maker.op != "Mul" or maker.domain or maker.inputs[0] != maker.inputs[1]:
            continue
        if axes is None or not axes.size or graph.dtypes.get(maker.inputs[0], "float32") != "float32":
            continue
        attributes: dict[str, Any] = {"keepdims": node.attributes.get("keepdims", 1)}
        node.op, node.attributes, node.inputs = "ReduceSumSquare", attributes, [maker.inputs[0], node.inputs[1]]
        if graph.opset < _AXES_AS_INPUT:
            attributes["axes"] = axes.tolist()
            node.inputs.pop()
    graph.remove_unused()


def _pads(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Write pads for auto_pad, and strides, dilations and groups for their defaults."""
    if node.op not in ("Conv", "MaxPool", "AveragePool") or len(graph.shape(node.inputs[0])) != 4:
        return None
    attributes = dict(node.attributes)
    if node.op == "Conv":
        if node.inputs[1] not in graph.constants:
            return None
        attributes["kernel_shape"] = list(graph.constants[node.inputs[1]].shape[2:])
        attributes.setdefault("group", 1)
    kernel = attributes["kernel_shape"]
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    attributes["pads"] = pads_of(attributes, graph.shape(node.inputs[0])[2:], kernel, strides, dilations)
    attributes.pop("auto_pad", None)
    attributes["strides"] = list(strides)
    if node.op != "AveragePool":
        attributes["dilations"] = [1 if taps == 1 else gap for taps, gap in zip(kernel, dilations, strict=True)]
    return [OnnxNode(node.name, node.op, list(node.inputs), list(node.outputs), attributes)]


def _wide_pads(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Put pads that VTA's instructions cannot hold into a Pad in front of the convolution."""
    pads = node.attributes.get("pads", [0])
    if node.op != "Conv" or max(pads) <= _MOST_PADS or len(pads) != 4:
        return None
    shape = graph.shape(node.inputs[0])
    padded = graph.unique(f"{node.name}.padded")
    graph.shapes[padded] = (*shape[:2], shape[2] + pads[0] + pads[2], shape[3] + pads[1] + pads[3])
    graph.dtypes[padded] = graph.dtypes.get(node.inputs[0], "float32")
    around = new_constant(graph, f"{node.name}.pads", np.array([0, 0, *pads[:2], 0, 0, *pads[2:]], np.int64))
    return [
        OnnxNode(f"{node.name}.pad", "Pad", [node.inputs[0], around], [padded]),
        OnnxNode(
            node.name, "Conv", [padded, *node.inputs[1:]], list(node.outputs), {**node.attributes, "pads": [0] * 4}
        ),
    ]


def _dilations(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Write a dilated kernel with its zeros, if they are few: the quantiser rounds and parts plain kernels alone."""
    dilations = node.attributes.get("dilations", [1, 1])
    if node.op != "Conv" or max(dilations) == 1 or node.inputs[1] not in graph.constants or len(dilations) != 2:
        return None
    weights = graph.constants[node.inputs[1]]
    whole = spread(weights, dilations)
    if whole.size > _MAX_DILATED_TAPS * weights.size:
        return None
    attributes = {**node.attributes, "kernel_shape": list(whole.shape[2:]), "dilations": [1, 1]}
    inputs = [node.inputs[0], new_constant(graph, f"{node.name}.spread", whole), *node.inputs[2:]]
    return [OnnxNode(node.name, node.op, inputs, list(node.outputs), attributes)]


def _whole_pads(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Write the pads of all axes in a Pad that names its axes."""
    if node.op != "Pad" or len(node.inputs) < 4 or not node.inputs[3]:
        return None
    pads, axes = (graph.constants.get(node.inputs[place]) for place in (1, 3))
    if pads is None or axes is None:
        return None
    rank = len(graph.shape(node.inputs[0]))
    whole = np.zeros((2, rank), np.int64)
    whole[:, axes.ravel().astype(np.int64) % rank] = pads.reshape(2, -1)
    inputs = [node.inputs[0], new_constant(graph, f"{node.name}.pads", whole.reshape(-1)), node.inputs[2]]
    return [OnnxNode(node.name, "Pad", inputs, list(node.outputs), dict(node.attributes))]


def _whole_sizes(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Write the scales or sizes of all axes in a Resize that names its axes."""
    axes = node.attributes.get("axes")
    if node.op != "Resize" or not axes or node.attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return None
    shape, inputs = graph.shape(node.inputs[0]), list(node.inputs)
    for place, whole in ((2, np.ones(len(shape), np.float32)), (3, np.array(shape, np.int64))):
        name = inputs[place] if len(inputs) > place else ""
        if name and name not in graph.constants:
            return None
        if name and graph.constants[name].size:
            whole[np.array(axes) % len(shape)] = graph.constants[name].ravel()
            inputs[place] = new_constant(graph, f"{node.name}.sizes", whole)
    if inputs[1:2] != [""]:  # a region of interest, of these axes
        return None
    attributes = {key: value for key, value in node.attributes.items() if key != "axes"}
    return [OnnxNode(node.name, "Resize", inputs, list(node.outputs), attributes)]


def _adjacent_reshapes(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Let a Reshape read the input of the Reshape before it; remove_unused drops the first if nobody reads it."""
    if node.op != "Reshape":
        return None
    producers = graph.producers()
    source = node.inputs[0]
    while source in producers and producers[source].op == "Reshape":
        source = producers[source].inputs[0]
    if source == node.inputs[0]:
        return None
    if graph.shape(source) == graph.shape(node.outputs[0]) and node.outputs[0] not in graph.outputs:
        graph.replace(node.outputs[0], source)
        return []
    return [OnnxNode(node.name, "Reshape", [source, node.inputs[1]], list(node.outputs))]
