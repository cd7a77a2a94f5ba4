"""Gives recurrent operators int8 weights where held-out samples show that the outputs stay as good."""

from __future__ import annotations

from collections.abc import Collection

from hilt.network.onnx_graph import OnnxGraph
from hilt.network.onnx_recurrence import takes_int8, write_int8
from hilt.network.quantize.judge import OutputJudge, is_as_good


def quantise_recurrences(
    model: OnnxGraph, kept: Collection[str], judge: OutputJudge
) -> tuple[OnnxGraph, list[str], list[str]]:
    """Return a model with int8 weights in its recurrent operators, the nodes that stay in float, and a line for each.

    Args:
        model: A quantised model, with recurrent operators in float.
        kept: Nodes that stay in float anyway.
        judge: Measures a model's outputs.
    """
    names = [node.name for node in model.nodes if node.name not in kept and takes_int8(model, node)]
    if not names:
        return model, [], []
    level = judge.decibels(model)
    floats, notes = [], []
    for name in names:
        candidate = write_int8(model, name)
        reached = judge.decibels(candidate)
        loss = float((level - reached).max(initial=0))
        if is_as_good(reached, level):
            model, level = candidate, reached
            notes.append(f"{name} has int8 weights, with a scale a row; that costs an output {loss:.2f} dB at most")
        else:
            floats.append(name)
            notes.append(f"{name} stays in float: int8 weights would cost an output {loss:.1f} dB")
    return model, floats, notes
