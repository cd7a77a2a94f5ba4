"""Gives recurrent operators int8 weights where held-out samples show that the outputs stay as good."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from hilt.network.calibration import Feeds, Runner
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.onnx_recurrence import takes_int8, write_int8
from hilt.network.quantize.judge import OutputJudge, is_as_good

_STATE = 5
"""The place of the first hidden state among a recurrent operator's inputs."""


def quantise_recurrences(
    model: OnnxGraph, kept: Collection[str], judge: OutputJudge, samples: Sequence[Feeds]
) -> tuple[OnnxGraph, list[str], list[str]]:
    """Return a model with int8 weights in its recurrent operators, the nodes that stay in float, and a line for each.

    Args:
        model: A quantised model, with recurrent operators in float.
        kept: Nodes that stay in float anyway.
        judge: Measures a model's outputs.
        samples: The calibration data, which shows the states that are given.
    """
    names = [node.name for node in model.nodes if node.name not in kept and takes_int8(model, node)]
    if not names:
        return model, [], []
    level = judge.decibels(model)
    floats, notes = [], []
    for name in names:
        first = _first_state(model, name, samples)
        if first > 1:
            floats.append(name)
            notes.append(
                f"{name} stays in float: its first state reaches {first:.3g}, and with int8 weights 1 is the most"
            )
            continue
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


def _first_state(model: OnnxGraph, name: str, samples: Sequence[Feeds]) -> float:
    """Return the largest value of the hidden state that a recurrent operator begins with; 0 if it begins with zeros."""
    (node,) = (node for node in model.nodes if node.name == name)
    state = node.inputs[_STATE] if len(node.inputs) > _STATE else ""
    if not state:
        return 0.0
    if state in model.constants:
        return float(np.abs(model.constants[state]).max(initial=0))
    if state in model.inputs:
        return max(float(np.abs(feeds[state]).max(initial=0)) for feeds in samples)
    return max(float(np.abs(found[state]).max(initial=0)) for found in Runner(model, [state]).over(samples))
