"""A board's inference against the integer reference, with the progress of both steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hilt.engine.command_progress import Phases
from hilt.network.graph import Graph
from hilt.network.reference import evaluate
from hilt.network.verify import Verified, compare, inside_of


def verify_inference(
    graph: Graph, manifest: Mapping[str, Any], inputs: Mapping[str, Any], tensors: Mapping[str, Any], phases: Phases
) -> Verified:
    """Compute the reference of one inference and compare every tensor.

    Args:
        graph: The network.
        manifest: Its bundle's.
        inputs: Its inputs by name.
        tensors: The board's tensors by name.
        phases: Takes the counts of nodes and tensors.

    Raises:
        WrongTensorError: A tensor differs, or one side has not got it.
    """
    expected = evaluate(graph, inputs, tensors, phases.counter("integer reference", "nodes"))
    return compare(tensors, expected, graph, inside_of(manifest), phases.counter("verifying", "tensors"))
