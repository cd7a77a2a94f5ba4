"""Gives a softmax of floats int8 where held-out samples show that the outputs stay as good.

There are 256 different values, whose powers are looked up: a value takes a Cortex-A9 ten instructions, in float eleven.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from hilt.network.calibration import Feeds, Runner, spread
from hilt.network.elementwise import neutral_factor
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, infer_shapes, new_constant
from hilt.network.quantize.judge import ALLOWED_LOSS, OutputJudge, is_as_good

_OPERATORS = ("Softmax", "LogSoftmax")
_LEAST_ELEMENTS = 1024
"""One of fewer takes a Cortex-A9 0.03 ms at most."""
_GOOD = 30.0
"""Decibels of an output that int8 may bring it down to."""
_FINER = (0, 1)
"""Exponents above those that reach the largest values: these are clipped, and the others have twice the steps."""
_OBSERVED_SAMPLES = 8


def quantise_softmaxes(
    model: OnnxGraph, kept: Collection[str], fitted: Sequence[Feeds], judge: OutputJudge
) -> tuple[OnnxGraph, list[str]]:
    """Return a model whose large softmaxes read int8, and a line for each that stays in float.

    Args:
        model: A quantised model.
        kept: Nodes that stay in float.
        fitted: Samples that show the range of each one's input.
        judge: Measures a model's outputs.
    """
    found = {node.name: node.inputs[0] for node in _of_floats(model, kept)}
    if not found:
        return model, []
    exponents, level = _exponents(model, list(found.values()), fitted), judge.decibels(model)

    def joined(taken: Mapping[str, int], sources: Collection[str]) -> dict[str, int] | None:
        """Return the exponents taken with the better ones of further tensors, None if an output loses by them."""
        forms = [{**taken, **{each: exponents[each] + finer for each in sources}} for finer in _FINER]
        reached, best = max(
            ((judge.decibels(_with_int8(model, form)), form) for form in forms), key=lambda pair: float(pair[0].mean())
        )
        return best if is_as_good(reached, level, _GOOD) else None

    taken = joined({}, found.values())
    notes = []
    if taken is None:
        taken = {}
        for name, source in found.items():
            more = joined(taken, [source])
            taken = more or taken
            if more is None:
                notes.append(f"{name} reads floats: int8 would cost an output {ALLOWED_LOSS} dB and more")
    return _with_int8(model, taken), notes


def _of_floats(model: OnnxGraph, kept: Collection[str]) -> Iterator[OnnxNode]:
    """Yield the large softmaxes of floats that neither come from an int8 tensor nor from a node in `kept`."""
    producers = model.producers()
    for node in model.nodes:
        if node.domain or node.op not in _OPERATORS or model.dtypes.get(node.inputs[0]) != "float32":
            continue
        maker = producers.get(node.inputs[0])
        while maker is not None and neutral_factor(model, maker) is not None:
            maker = producers.get(maker.inputs[0])
        floats = maker is None or (maker.op != "DequantizeLinear" and maker.name not in kept)
        if floats and node.name not in kept and math.prod(model.shape(node.inputs[0])) >= _LEAST_ELEMENTS:
            yield node


def _exponents(model: OnnxGraph, names: Sequence[str], fitted: Sequence[Feeds]) -> dict[str, int]:
    """Return for each tensor the exponent of the smallest steps that reach its largest value."""
    largest = dict.fromkeys(names, 0.0)
    for values in Runner(model, names).over(spread(fitted, _OBSERVED_SAMPLES)):
        for name in names:
            largest[name] = max(largest[name], float(np.abs(values[name]).max(initial=0)))
    return {name: 7 - math.ceil(math.log2(min(max(each, 2.0**-20), 2.0**20))) for name, each in largest.items()}


def _with_int8(model: OnnxGraph, exponents: Mapping[str, int]) -> OnnxGraph:
    """Return a model whose softmaxes read tensors in int8 with scales 2^-exponent."""
    made = copy.copy(model)
    made.nodes, made.constants = copy.deepcopy(model.nodes), dict(model.constants)
    made.shapes, made.dtypes = dict(model.shapes), dict(model.dtypes)
    for name, exponent in exponents.items():
        readers = [node for node in made.nodes if node.op in _OPERATORS and node.inputs[0] == name]
        scale = new_constant(made, f"{name}_scale", np.array(2.0**-exponent, np.float32))
        zero = new_constant(made, f"{name}_zero", np.zeros((), np.int8))
        integers, result = made.unique(f"{name}_int8"), made.unique(f"{name}_dequantized")
        place = made.nodes.index(readers[0])
        made.nodes[place:place] = [
            OnnxNode(f"{name}_q", "QuantizeLinear", [name, scale, zero], [integers], {}),
            OnnxNode(f"{name}_dq", "DequantizeLinear", [integers, scale, zero], [result], {}),
        ]
        for reader in readers:
            reader.inputs[0] = result
    made.name_apart()
    infer_shapes(made)
    return made
