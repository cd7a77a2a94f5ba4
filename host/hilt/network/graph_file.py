"""The integer graph inside a bundle: the host verifies a board's inference with it; the board does not read it."""

from __future__ import annotations

import hashlib
from typing import Any

from hilt.network.graph import Graph, Node, Tensor
from hilt_runtime import Bundle, BundleError
from hilt_runtime.archive import ZipReadError, open_archive
from hilt_runtime.arrays import ArraysError, decode_arrays, encode_arrays

MEMBER = "reference.zip"


def graph_bytes(graph: Graph) -> bytes:
    """Return a graph as bytes; the same graph makes the same bytes."""
    facts: dict[str, Any] = {
        "name": graph.name,
        "inputs": list(graph.inputs),
        "outputs": list(graph.outputs),
        "nodes": [
            {
                "name": node.name,
                "op": node.op,
                "inputs": list(node.inputs),
                "outputs": list(node.outputs),
                "attributes": dict(node.attributes),
                "source": list(node.source),
                "reason": node.reason,
            }
            for node in graph.nodes
        ],
        "tensors": [
            {"name": tensor.name, "shape": list(tensor.shape), "dtype": tensor.dtype, "scale": tensor.scale}
            for tensor in graph.tensors.values()
        ],
    }
    if graph.decibels:
        facts["decibels"] = dict(graph.decibels)
    return encode_arrays(graph.constants, facts)


def graph_of(bundle: Bundle, data: bytes) -> Graph:
    """Return the graph that a bundle was compiled from; `data` is the bundle's file.

    Raises:
        BundleError: The graph is missing or was altered.
    """
    wanted = bundle.manifest.get("reference", "")
    try:
        with open_archive(data) as archive:
            contents = archive.read(MEMBER)
    except ZipReadError as error:
        raise BundleError(
            f"part {MEMBER} of {bundle.name} cannot be read ({error}): compile the network again"
        ) from None
    actual = hashlib.sha256(contents).hexdigest()
    if actual != wanted:
        raise BundleError(
            f"part {MEMBER} of {bundle.name} was altered: its SHA-256 is {actual[:12]}, "
            f"the manifest says {wanted[:12]}: compile the network again"
        )
    try:
        return read_graph(contents)
    except (ArraysError, *_MALFORMED) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else error
        raise BundleError(f"part {MEMBER} of {bundle.name} cannot be read: {reason}") from None


_MALFORMED = (AttributeError, LookupError, TypeError, ValueError)


def read_graph(contents: bytes) -> Graph:
    """Return a graph from `graph_bytes`. Raises ArraysError."""
    constants, facts = decode_arrays(contents)
    tensors = [
        Tensor(tensor["name"], tuple(tensor["shape"]), tensor["dtype"], tensor["scale"]) for tensor in facts["tensors"]
    ]
    return Graph(
        facts["name"],
        tuple(facts["inputs"]),
        tuple(facts["outputs"]),
        tuple(
            Node(
                node["name"],
                node["op"],
                tuple(node["inputs"]),
                tuple(node["outputs"]),
                node["attributes"],
                tuple(node["source"]),
                node["reason"],
            )
            for node in facts["nodes"]
        ),
        {tensor.name: tensor for tensor in tensors},
        constants,
        facts.get("decibels", {}),
    )
