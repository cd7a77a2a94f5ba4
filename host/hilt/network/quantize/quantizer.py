"""The step from a float model and calibration data to a quantised model, with its cost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilt.network.calibration import Calibration, Feeds, HeldOut, Runner, hold_out, spread
from hilt.network.core_speed import CORTEX_A9, node_work, step_seconds
from hilt.network.graph import Graph, Node
from hilt.network.onnx_graph import OnnxError, OnnxGraph, OnnxNode, infer_shapes
from hilt.network.onnx_import import import_graph
from hilt.network.onnx_recurrence import RECURRENT, in_floats
from hilt.network.onnx_refusals import require_computable
from hilt.network.onnx_transposed import with_phases
from hilt.network.onnx_unrolled import unrolled
from hilt.network.quantize.costs import Costs, measure_costs
from hilt.network.quantize.counting import Counting, uncounted
from hilt.network.quantize.even_inputs import with_even_inputs
from hilt.network.quantize.fit import Fitted, fit
from hilt.network.quantize.heads import float_heads
from hilt.network.quantize.judge import OutputJudge, is_as_good
from hilt.network.quantize.keep import require_nodes
from hilt.network.quantize.opset import lower_opset
from hilt.network.quantize.qdq import write_qdq
from hilt.network.quantize.recurrence import quantise_recurrences
from hilt.network.quantize.regions import Regions, find_regions
from hilt.network.quantize.scales import layer_macs
from hilt.network.quantize.short_slopes import with_short_slopes
from hilt.network.reference import evaluate, evaluate_node
from hilt_runtime.operators_recurrent import is_int8

_COMPARED_SAMPLES = 8
_UNEVEN = "the channels of {} differ in range: each has a factor before it becomes int8"
_ALIKE = 0.98
"""The share of a node's values in floats that must be ONNX Runtime's; near a step, a rounding error is a whole one."""
_FLOAT_ERROR = 1e-3
_FLOAT_FLOOR = 1e-6
"""Error of ONNX Runtime's own approximations, of Sigmoid say, whatever the values' size."""
_COMPARED_MACS = 4e9
"""Multiply-accumulates in float64 that comparing tensor by tensor may take."""


@dataclass(frozen=True)
class ClassificationAccuracy:
    """Shares of right answers, from 0 to 1.

    Attributes:
        samples: How many were asked.
        float_model: Of the float model in ONNX Runtime.
        quantised_model: Of the quantised model in ONNX Runtime.
        reference: Of hilt's integer reference, which boards equal.
    """

    samples: int
    float_model: float
    quantised_model: float
    reference: float


_MOVES = frozenset(("concat", "reshape", "slice", "transpose"))
_NORMAL_STEPS = 1e-3
"""Steps of int8 that the results of integers and of floats may be apart: both round to float32."""


@dataclass(frozen=True)
class Agreement:
    """hilt's integer reference against ONNX Runtime on the quantised model.

    Attributes:
        values: int8 values compared, over all tensors.
        equal: The share that is equal.
        ties: How many differ by one where the exact value lies in the middle: VTA rounds up there, ONNX to even.
        unexplained: How many differ otherwise.
        largest: The largest difference.
        rounded: How many differ by one where the middle lies within the rounding of a product in fixed point.
    """

    values: int
    equal: float
    ties: int
    unexplained: int
    largest: int
    rounded: int = 0


@dataclass(frozen=True)
class KeptNode:
    """A node that stays in float on the processor: multiply-accumulates, and seconds by the model of a Cortex-A9."""

    name: str
    op: str
    macs: int
    seconds: float


@dataclass(frozen=True)
class Quantisation:
    """A quantised model and its cost.

    Attributes:
        model: The QDQ model.
        graph: Its integer graph.
        costs: The loss by layer and by output.
        agreement: The comparison of the integer reference with ONNX Runtime.
        accuracy: With labels.
        equalised: Tells whether channels were equalised.
        centred: Tells whether tensors were centred.
        bordered: How many layers read a constant around their data, in place of zeros.
        channel_block: Output channels that share a weight scale; 0: one scale a layer.
        kept: The nodes that stay in float.
        notes: Further facts, a line each.
        samples: Inputs by which the written file is checked.
    """

    model: OnnxGraph
    graph: Graph
    costs: Costs
    agreement: Agreement
    accuracy: ClassificationAccuracy | None
    equalised: bool
    centred: bool
    bordered: int
    channel_block: int
    kept: tuple[KeptNode, ...]
    notes: tuple[str, ...]
    samples: tuple[Feeds, ...]


def quantise(
    graph: OnnxGraph,
    calibration: Calibration,
    *,
    channel_block: int | None = None,
    search: bool = True,
    kept: Collection[str] = (),
    least_decibels: float | None = None,
    borders: bool | None = None,
    counting: Counting = uncounted,
    notes: Sequence[str] = (),
) -> Quantisation:
    """Quantise a canonical float graph.

    Args:
        graph: The graph, as `canonicalise` leaves it.
        calibration: Samples, and labels if accuracy is asked for.
        channel_block: Output channels that share a weight scale; 0 for one scale a layer; None for blocks where
            decibels are few else.
        search: Improve the scales by their effect on the outputs.
        kept: Nodes that stay in float on the processor.
        least_decibels: Keep as few further layers in float as bring each output to so many decibels.
        borders: Let padded convolutions read a constant around their data; None does so where decibels are few else.
        counting: Counts the work of each phase.
        notes: Facts to hand on.

    Raises:
        OnnxError: The model has no layer with constant weights, or a node that hilt cannot compute, or weights that
            are no numbers.
        CalibrationError: The data cannot be computed.
    """
    require_computable(graph)
    require_nodes(graph, kept)
    kept = with_phases(graph, kept)
    kept = (*kept, *float_heads(graph, _layers(graph, kept)))
    lower_opset(graph)
    samples = hold_out(calibration)
    prepared, uneven = with_even_inputs(with_short_slopes(graph, kept), (*samples.fitted, *samples.deciding))
    notes = [*notes, *map(_UNEVEN.format, uneven)]

    def made_of(given: OnnxGraph, floats: Collection[str]) -> _Int8Model:
        fitted = fit(
            given, samples, channel_block=channel_block, search=search, kept=floats, least_decibels=least_decibels,
            borders=borders, counting=counting,
        )  # fmt: skip
        return _int8_model(fitted, samples)

    made = _by_steps(prepared, samples, kept, made_of) if least_decibels is None else None
    return _measured(graph, made or made_of(prepared, kept), calibration, samples, notes, counting)


def _measured(
    source: OnnxGraph,
    made: _Int8Model,
    calibration: Calibration,
    samples: HeldOut,
    notes: Sequence[str],
    counting: Counting,
) -> Quantisation:
    """Return a fitted model with its loss beside the user's, its agreement with ONNX Runtime, and its accuracy."""
    fitted, model, floats, said = made
    graph, regions = fitted.graph, fitted.regions
    integers = import_graph(model)
    macs = sum(layer_macs(graph, layer) for layer in regions.layers)
    compared = tuple(spread(samples.reported, int(np.clip(_COMPARED_MACS / macs, 1, _COMPARED_SAMPLES))))
    advance = counting("measuring the loss", "samples")
    costs = measure_costs(source, graph, model, regions, fitted.scales, samples, advance)
    model.decibels = {each.name: round(each.decibels, 2) for each in costs.layers if np.isfinite(each.decibels)}
    agreement = compare(model, integers, compared, counting("comparing with ONNX Runtime", "nodes"))
    accuracy = measure_accuracy(source, model, integers, calibration, counting("measuring the accuracy", "samples"))
    in_float = _price(integers, (*fitted.kept, *floats))
    bordered = sum(node.op == "pad" and node.attributes.get("value", 0) != 0 for node in integers.nodes)
    return Quantisation(
        model=model, graph=integers, costs=costs, agreement=agreement, accuracy=accuracy, equalised=fitted.equalised,
        centred=fitted.centred, bordered=bordered, channel_block=fitted.channel_block, kept=in_float,
        notes=(*notes, *said), samples=compared,
    )  # fmt: skip


def _layers(graph: OnnxGraph, kept: Collection[str]) -> list[OnnxNode]:
    """Return the layers that can be quantised. Raises OnnxError if there are none, or weights are no numbers."""
    regions = find_regions(graph, kept)
    if not regions.layers:
        others = " beside those kept in float" if kept else ""
        raise OnnxError(
            f"{graph.name} has no convolution or dense layer with constant weights{others}: nothing for VTA to run"
        )
    _require_finite(graph, regions)
    return [layer.node for layer in regions.layers]


class _Int8Model(NamedTuple):
    """A fitted graph, its QDQ model, the recurrences that stay in float, and facts of them."""

    fitted: Fitted
    model: OnnxGraph
    floats: list[str]
    notes: list[str]


def _int8_model(fitted: Fitted, samples: HeldOut) -> _Int8Model:
    model = write_qdq(fitted.graph, fitted.regions, fitted.scales)
    infer_shapes(model)
    judge = OutputJudge(fitted.graph, samples.deciding)
    return _Int8Model(fitted, *quantise_recurrences(model, fitted.kept, judge, (*samples.fitted, *samples.deciding)))


def _by_steps(
    graph: OnnxGraph,
    samples: HeldOut,
    kept: Collection[str],
    made_of: Callable[[OnnxGraph, Collection[str]], _Int8Model],
) -> _Int8Model | None:
    """Return a model whose large recurrences are steps, with their products in int8; None if there are none.

    It is None too if an output loses by that: see is_as_good.
    """
    parted = unrolled(graph, kept)
    if parted is None:
        return None
    made, judge = made_of(parted.graph, (*kept, *parted.cells)), OutputJudge(graph, samples.deciding)
    reached = judge.decibels(made.model)
    if not is_as_good(reached) and not is_as_good(reached, judge.decibels(made_of(graph, kept).model)):
        return None
    notes = [
        f"{name} is written as its steps, with products in int8 and its cell state in float" for name in parted.nodes
    ]
    return _Int8Model(replace(made.fitted, kept=tuple(kept)), made.model, made.floats, [*made.notes, *notes])


def _price(graph: Graph, kept: Collection[str]) -> tuple[KeptNode, ...]:
    """Return the nodes that stay in float, with their time on a Cortex-A9."""
    return tuple(
        KeptNode(node.name, node.op, work.macs, step_seconds(CORTEX_A9, "native", work))
        for node in graph.nodes
        if node.name in kept
        for work in [node_work(graph, node)]
    )


def _require_finite(graph: OnnxGraph, regions: Regions) -> None:
    for layer in regions.layers:
        for name in filter(None, layer.node.inputs[1:3]):
            if not np.isfinite(graph.constants[name]).all():
                raise OnnxError(f"node {layer.node.label} has NaN or infinity in {name}; export the model again")


def compare(
    model: OnnxGraph, integers: Graph, samples: Sequence[Feeds], advance: Callable[[int, int], None]
) -> Agreement:
    """Compare each int8 tensor of the reference, made from ONNX Runtime's own inputs of its node, with ONNX Runtime's.

    Each node is computed on the values that ONNX Runtime has in front of it, so that a difference of one is counted
    where it is made and not again in every layer behind.

    Raises:
        OnnxError: The processor's operators compute a node in another way than ONNX Runtime.
    """
    producers = model.producers()
    names = _compared_names(integers, producers)
    before = {name: producers[name].inputs[0] for name in names if producers[name].op == "QuantizeLinear"}
    runner = Runner(model, [*names, *(name for name in before.values() if name not in model.inputs)], optimised=False)
    differences = _Differences()
    done, count = 0, len(samples) * len(integers.nodes)
    advance(done, count)
    for feeds in samples:
        values = {**integers.constants, **feeds, **runner.run(feeds)}
        for node in integers.nodes:
            _compare_node(node, integers, values, before, differences)
            advance(done := done + 1, count)
    return differences.agreement()


def _compared_names(integers: Graph, producers: Mapping[str, OnnxNode]) -> list[str]:
    """Return the tensors of an integer graph that the QDQ model has too."""
    return [name for name in integers.tensors if name not in integers.inputs and name in producers]


def _compare_node(
    node: Node,
    integers: Graph,
    values: dict[str, NDArray[Any]],
    before: Mapping[str, str],
    differences: _Differences,
) -> None:
    """Compute a node on ONNX Runtime's `values`; `before` names the floats that are quantised to an int8 tensor.

    The results that ONNX Runtime does not have join the values.
    """
    output = node.outputs[0]
    inputs = [values[name] if name else None for name in node.inputs]
    results = evaluate_node(node, inputs)
    rounding = _rounding(node, values, differences.roundings)
    if output and output not in values:
        values[output], differences.roundings[output] = results[0], rounding
        return
    if not output or integers.tensors[output].dtype != "int8":
        _require_alike(node, _unrounded(node, inputs, results), values)
        return
    exact = None
    if output in before:
        exact = values[before[output]].astype(np.float64) * 2.0 ** integers.tensors[output].exponent
    differences.add(results[0], values[output], exact, rounding)


def _unrounded(
    node: Node, inputs: Sequence[NDArray[Any] | None], results: Sequence[NDArray[Any]]
) -> Sequence[NDArray[Any]]:
    """Return the results of a node without rounding its state, whose errors may grow in a long sequence."""
    if node.op not in RECURRENT or not is_int8(inputs):
        return results
    return evaluate_node(node, in_floats(inputs))


def _rounding(node: Node, values: Mapping[str, NDArray[Any]], roundings: Mapping[str, float]) -> float:
    """Return by how many steps of int8 a node's result may differ from the exact one.

    A product in fixed point rounds its data by half a step, 2^-14 of the largest at most. Its result may be moved.
    """
    if node.op in _MOVES:
        return max((roundings.get(name, 0.0) for name in node.inputs), default=0.0)
    if node.op == "normalization" and node.attributes["rounded"]:
        return _NORMAL_STEPS
    if node.op != "fixed_matmul" or "step" not in node.attributes:
        return 0.0
    data, lines = (values[name].astype(np.float64) for name in node.inputs)
    lines += node.attributes.get("offset", 0)
    steps = abs(node.attributes["scale"]) / node.attributes["step"]
    return float(np.abs(data).max() * 2.0**-14 * np.abs(lines).sum(axis=-1).max() * steps)


@dataclass
class _Differences:
    """Differences of int8 tensors, counted."""

    compared: int = 0
    different: int = 0
    ties: int = 0
    rounded: int = 0
    largest: int = 0
    roundings: dict[str, float] = field(default_factory=dict)
    """Rounding errors, in steps of int8, of tensors that ONNX Runtime does not have."""

    def add(
        self, made: NDArray[Any], wanted: NDArray[Any], exact: NDArray[np.float64] | None, rounding: float = 0.0
    ) -> None:
        """Count those of a tensor; `exact` are the values before rounding, where they are known.

        `rounding` is by how much the values that are made may differ from these.
        """
        difference = made.astype(np.int32) - wanted.astype(np.int32)
        self.compared += difference.size
        self.different += int(np.count_nonzero(difference))
        self.largest = max(self.largest, int(np.abs(difference).max(initial=0)))
        if exact is not None:
            with np.errstate(invalid="ignore"):  # infinity has no middle
                from_middle = np.abs(exact - np.floor(exact) - 0.5)
                ties = (difference == 1) & (from_middle == 0)
                self.ties += int(np.count_nonzero(ties))
                self.rounded += int(np.count_nonzero((np.abs(difference) == 1) & (from_middle <= rounding) & ~ties))

    def agreement(self) -> Agreement:
        equal = 1 - self.different / max(self.compared, 1)
        unexplained = self.different - self.ties - self.rounded
        return Agreement(self.compared, equal, self.ties, unexplained, self.largest, self.rounded)


def _require_alike(node: Node, results: Sequence[NDArray[Any]], values: Mapping[str, NDArray[Any]]) -> None:
    """Refuse a node in floats or counts that hilt's runtime computes otherwise than ONNX Runtime."""
    for name, made in zip(node.outputs, results, strict=False):
        if name not in values:
            continue
        wanted = values[name]
        alike = made.shape == wanted.shape and made.dtype == wanted.dtype
        if alike and made.size:
            with np.errstate(invalid="ignore"):
                close = np.isclose(
                    made, wanted, _FLOAT_ERROR, _FLOAT_FLOOR + _FLOAT_ERROR * _size_of(wanted), equal_nan=True
                )
            alike = bool(np.mean(close) >= _ALIKE)
        if not alike:
            raise OnnxError(
                f"node {node.name} ({node.op}) has a form that hilt computes otherwise than ONNX Runtime; "
                "replace it in the model, or cut the model in front of it with onnx.utils.extract_model"
            )


def _size_of(values: NDArray[Any]) -> float:
    """Return the largest finite magnitude."""
    if values.dtype.kind != "f":
        return 0.0
    return float(np.abs(values).max(initial=0, where=np.isfinite(values)))


def measure_accuracy(
    graph: OnnxGraph,
    model: OnnxGraph,
    integers: Graph,
    calibration: Calibration,
    advance: Callable[[int, int], None],
) -> ClassificationAccuracy | None:
    """Return the shares of samples whose largest output is their label's; None without labels."""
    labels = calibration.labels
    if labels is None:
        return None
    output = graph.outputs[0]
    runners = [Runner(graph, [output]), Runner(model, [output])]
    answers: list[list[int]] = [[], [], []]
    for done, feeds in enumerate(calibration.samples):
        advance(done, len(calibration.samples))
        for place, runner in enumerate(runners):
            answers[place].append(_answer(runner.run(feeds)[output]))
        answers[2].append(_answer(evaluate(integers, feeds)[integers.outputs[0]]))
    right = [float(np.mean(np.array(part) == labels)) for part in answers]
    return ClassificationAccuracy(len(labels), *right)


def _answer(scores: NDArray[np.float32]) -> int:
    return int(np.argmax(scores.reshape(-1)))
