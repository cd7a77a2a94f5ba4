"""Chooses constants to take off the tensors of an int8 part, so that int8's steps lie where the values are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hilt.network.elementwise import expression, results, root_of
from hilt.network.onnx_graph import OnnxGraph, OnnxNode
from hilt.network.quantize.qdq import Scales
from hilt.network.quantize.regions import Regions
from hilt.network.quantize.statistics import TensorStatistics

_NONE, _UNIFORM, _BY_CHANNEL = range(3)
"""What readers allow to be taken off a tensor: nothing, one constant, or one for each channel."""
_LARGEST_EXCESS = 1.1
"""Channels that are centred may exceed int8's range by a tenth, which is clipped."""
_LEAST_GAIN = 0.8
"""A group is changed if that leaves so much of its error at most."""
_STEPS = 2.0 ** (np.arange(-6, 13) / -8)
"""Steps that are tried, by the one that serves best without a change; whole octaves alone where no factor passes."""
_GRID = 4096
"""Places at which an expression is computed to find where it is flat."""
_LEAST_FLAT = _GRID // 32
"""A flat end of fewer places is not worth a clip."""


@dataclass(frozen=True)
class Shift:
    """A constant, or one for each channel, to take off a tensor, and a factor of the rest.

    Attributes:
        taken: A scalar, or one number a channel (the second axis).
        factor: The factor.
        low: No reader tells values below it apart.
        high: The same of values above it.
    """

    taken: NDArray[np.float64]
    factor: float = 1.0
    low: float = -np.inf
    high: float = np.inf

    @property
    def changes(self) -> bool:
        """Tell whether it changes the tensor."""
        return bool(np.any(self.taken != 0)) or self.factor != 1 or self.low > -np.inf or self.high < np.inf

    def of(self, value: float) -> float:
        """Return what a value becomes, if one constant is taken off the whole tensor."""
        return (value - float(self.taken)) * self.factor


_NO_SHIFT = Shift(np.zeros(()))


def choose_shifts(
    graph: OnnxGraph, regions: Regions, statistics: Mapping[str, TensorStatistics], scales: Scales
) -> dict[str, Shift]:
    """Return the shift of each tensor of a graph's int8 part; one that changes nothing where none serves.

    Args:
        graph: The float graph.
        regions: Its int8 part.
        statistics: Of the tensors of the int8 part.
        scales: Those of the graph as it is.
    """
    return _Chooser(graph, regions, statistics, scales).choose()


class _Chooser:
    """The state of choose_shifts."""

    def __init__(
        self, graph: OnnxGraph, regions: Regions, statistics: Mapping[str, TensorStatistics], scales: Scales
    ) -> None:
        self._graph, self._regions, self._statistics, self._scales = graph, regions, statistics, scales
        self._consumers, self._producers = graph.consumers(), graph.producers()
        self._layers = {id(layer.node): layer for layer in regions.layers}
        self._made = {layer.output: layer for layer in regions.layers}
        self._tensors = set(regions.tensors)
        self._roots = expression_roots(graph, self._tensors, self._made)
        self._restored = restored_readers(graph, regions)
        self._freedoms: dict[str, int] = {}

    def choose(self) -> dict[str, Shift]:
        for name in reversed(self._regions.tensors):
            self._freedoms[name] = self._freedom(name)
        shifts: dict[str, Shift] = {}
        for group in dict.fromkeys(self._regions.groups.values()):
            shifts.update(self._of_group(group))
        for name in self._regions.tensors:
            if name not in shifts:
                moved = name in self._regions.moved
                shifts[name] = self._moved(self._producers[name], shifts) if moved else _NO_SHIFT
        return shifts

    def _freedom(self, name: str) -> int:
        """Return what the readers of a tensor allow to be taken off it; for the caller it is added again."""
        let = [self._let_by(reader, name) for reader in self._consumers.get(name, [])]
        return min(let + [_UNIFORM] * (name in self._graph.outputs), default=_NONE)

    def _let_by(self, reader: OnnxNode, name: str) -> int:
        layer = self._layers.get(id(reader))
        if layer is not None:
            return _BY_CHANNEL if name == layer.data and _reads_no_padding(reader) else _NONE
        if reader.outputs[0] in self._restored.get(name, ()):
            return _UNIFORM
        if reader.op == "Add" and self._is_residual(reader, name):
            return _BY_CHANNEL
        if reader.outputs[0] not in self._regions.moved:
            return _NONE
        return self._let_by_move(reader, self._freedoms[reader.outputs[0]])

    def _let_by_move(self, reader: OnnxNode, further: int) -> int:
        """Return what a moving operator allows if its readers allow so much."""
        if reader.op == "Concat":
            along_channels = reader.attributes.get("axis", 0) == 1 and not self._reads_constants(reader)
            return further if along_channels and further == _BY_CHANNEL else _NONE
        if reader.op == "Pad" or any(reader.attributes.get("pads", ())):
            return _NONE
        return further if reader.op in ("MaxPool", "Resize") else min(further, _UNIFORM)

    def _is_residual(self, add: OnnxNode, name: str) -> bool:
        """Tell whether an addition is fused with a layer and reads a tensor of its own size beside its sums."""
        other = add.inputs[1 - add.inputs.index(name)]
        return self._graph.shape(name) == self._graph.shape(other) and any(
            layer.residual == name and layer.node.outputs[0] == other for layer in self._regions.layers
        )

    def _of_group(self, group: str) -> dict[str, Shift]:
        """Return the shifts of the tensors that are made in a group, all with one factor; none if they do not serve."""
        members = self._regions.members(group)
        names = [name for name in members if name not in self._regions.moved]
        scalable = all(self._takes_factor(name) for name in members)
        if not self._may_change(names, scalable):
            return {}
        step, flat = 2.0 ** -self._scales.groups[group], {name: self._flat_ends(name) for name in names}
        least = _LEAST_GAIN * sum(_error(self._statistics[name].values, _flattened(flat[name]), step) for name in names)
        best: dict[str, Shift] = {}
        for finer, factor in _steps(step, scalable):
            tried = {name: self._shift(name, flat[name], finer) for name in names}
            error = sum(each for _, each in tried.values())
            if error < least:
                least, best = error, {name: replace(shift, factor=factor) for name, (shift, _) in tried.items()}
        return best

    def _may_change(self, names: Collection[str], scalable: bool) -> bool:
        """Tell whether the makers and readers of a group's tensors let all of them be shifted, or scaled."""
        made = all(name in self._made or name in self._roots for name in names)
        return made and (scalable or all(self._freedoms[name] != _NONE for name in names))

    def _takes_factor(self, name: str) -> bool:
        """Tell whether the maker of a tensor and its readers can take up a factor; one that adds tensors cannot."""
        if name in self._made and self._made[name].residual:
            return False
        readers = self._consumers.get(name, [])
        return all(self._takes_up(reader, name) for reader in readers)

    def _takes_up(self, reader: OnnxNode, name: str) -> bool:
        layer = self._layers.get(id(reader))
        if layer is not None:
            return name == layer.data and _is_plain(reader)
        if reader.outputs[0] in self._restored.get(name, ()):
            return True
        return reader.outputs[0] in self._regions.moved and not self._reads_constants(reader)

    def _reads_constants(self, reader: OnnxNode) -> bool:
        return reader.op == "Concat" and bool(self._graph.constants.keys() & set(reader.inputs))

    def _shift(self, name: str, flat: tuple[float, float], step: float) -> tuple[Shift, float]:
        """Return the shift that loses least in steps of a size, and its error.

        Args:
            name: The tensor.
            flat: The values beyond which its readers do not tell values apart.
            step: The size.
        """
        found, freedom = self._statistics[name], self._freedoms[name]
        if freedom == _NONE:
            return _flattened(flat), _error(found.values, _flattened(flat), step)
        if self._is_linear(name) and freedom == _BY_CHANNEL and found.lows.ndim == 1:
            taken, widest = np.rint((found.lows + found.highs) / 2 / step) * step, (found.highs - found.lows).max()
            power = float(np.mean(found.values.astype(np.float64) ** 2)) + 1e-30
            return Shift(taken), step**2 / 12 / power if widest <= 255 * step * _LARGEST_EXCESS else np.inf
        ends = np.clip([found.lows.min(), found.highs.max()], *flat)
        places = (0.0, ends[0] / step + 128, ends.mean() / step, ends[1] / step - 127)
        tried = [Shift(np.asarray(np.rint(place) * step), 1.0, *flat) for place in places]
        errors = [_error(found.values, shift, step) for shift in tried]
        return tried[int(np.argmin(errors))], min(errors)

    def _is_linear(self, name: str) -> bool:
        """Tell whether a layer makes a tensor without a clip."""
        return name in self._made and self._producers[name].op not in ("Relu", "Clip")

    def _flat_ends(self, name: str) -> tuple[float, float]:
        """Return the values beyond which no reader tells values apart: where all expressions of them are flat."""
        readers = self._consumers.get(name, [])
        functions = all(self._roots.get(reader.outputs[0]) == name for reader in readers)
        if not self._is_linear(name) or not functions or name in self._regions.ends:
            return -np.inf, np.inf
        found = self._statistics[name]
        grid = np.linspace(found.lows.min(), found.highs.max(), _GRID).astype(np.float32)
        ends = [
            _flat_places(results(self._graph, nodes, name, output, grid), 2.0 ** -self._exponent(output) / 4)
            for output, root in self._roots.items()
            if root == name and output in self._tensors
            for nodes in [expression(self._graph, output, name, self._producers)]
        ]
        first, last = min(first for first, _ in ends), max(last for _, last in ends)
        return (
            float(grid[first]) if first > _LEAST_FLAT else -np.inf,
            float(grid[last]) if last < _GRID - 1 - _LEAST_FLAT else np.inf,
        )

    def _exponent(self, name: str) -> int:
        return self._scales.groups[self._regions.groups[name]]

    def _moved(self, maker: OnnxNode, shifts: Mapping[str, Shift]) -> Shift:
        """Return the shift of a tensor that an operator moves."""
        parts = [shifts.get(name, _NO_SHIFT) for name in self._graph.computed_inputs(maker)]
        taken = parts[0].taken
        if maker.op == "Concat":
            taken = self._joined([part.taken for part in parts], maker)
        return Shift(taken, parts[0].factor)

    def _joined(self, parts: Sequence[NDArray[np.float64]], concat: OnnxNode) -> NDArray[np.float64]:
        if not any(part.any() for part in parts):
            return np.zeros(())
        sizes = [self._graph.shape(name)[1] for name in concat.inputs]
        return np.concatenate([np.broadcast_to(*pair) for pair in zip(parts, sizes, strict=True)])


def expression_roots(graph: OnnxGraph, tensors: Collection[str], made: Collection[str]) -> dict[str, str]:
    """Return the int8 tensor of which each result that no layer makes is an expression."""
    roots: dict[str, str] = {}
    inner: dict[str, str] = {}
    for node in graph.nodes:
        root, name = root_of(graph, node, inner), node.outputs[0]
        if root is not None and name not in made:
            roots[name] = root
            if name not in tensors:
                inner[name] = root
    return roots


def restored_readers(graph: OnnxGraph, regions: Regions) -> dict[str, set[str]]:
    """Return for each int8 tensor the results of its readers that take a shift back first: functions, and floats."""
    tensors = set(regions.tensors)
    roots = expression_roots(graph, tensors, {layer.output for layer in regions.layers})
    inner = tensors | {layer.node.outputs[0] for layer in regions.layers} | set(_residual_sums(graph, regions))
    found: dict[str, set[str]] = {name: set() for name in tensors}
    for node in graph.nodes:
        for name in tensors.intersection(node.inputs):
            if inner.isdisjoint(node.outputs) or roots.get(node.outputs[0]) == name:
                found[name].add(node.outputs[0])
    return found


def _residual_sums(graph: OnnxGraph, regions: Regions) -> list[str]:
    """Return the results of the additions that are fused with a layer."""
    residuals = {layer.node.outputs[0]: layer.residual for layer in regions.layers if layer.residual}
    return [
        node.outputs[0]
        for node in graph.nodes
        if node.op == "Add" and any(residuals.get(name) in node.inputs for name in node.inputs)
    ]


def _steps(step: float, scalable: bool) -> Iterator[tuple[float, float]]:
    """Return the steps to try in place of one, each with the factor that makes it a power of two."""
    for tried in step * _STEPS:
        factor = float(2.0 ** np.round(np.log2(tried)) / tried)
        if factor == 1 or scalable:
            yield float(tried), factor


def _reads_no_padding(node: OnnxNode) -> bool:
    """Tell whether a layer reads nothing but its data, so that its bias can take up what these lack."""
    attributes = node.attributes
    if node.op == "Gemm":
        return _is_plain(node)
    padded = any(attributes.get("pads", ())) or attributes.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID")
    return node.op == "Conv" and not padded


def _is_plain(node: OnnxNode) -> bool:
    """Tell whether a layer has no factors of its own."""
    return all(node.attributes.get(name, 1.0) == 1 for name in ("alpha", "beta"))


def _flattened(flat: tuple[float, float]) -> Shift:
    """Return the shift that takes nothing off."""
    return Shift(np.zeros(()), 1.0, *flat)


def _flat_places(values: NDArray[np.float32], tolerance: float) -> tuple[int, int]:
    """Return up to which place, and from which on, results stay within a tolerance of the first and the last."""
    apart_first, apart_last = (np.flatnonzero(np.abs(values - end) > tolerance) for end in (values[0], values[-1]))
    if not len(apart_first) or not len(apart_last):
        return 0, len(values) - 1
    return max(int(apart_first[0]) - 1, 0), min(int(apart_last[-1]) + 1, len(values) - 1)


def _error(values: NDArray[np.float32], shift: Shift, step: float) -> float:
    """Return the power of the error of shifted values in int8, by that of the values."""
    wanted = np.clip(values.astype(np.float64), shift.low, shift.high)
    if not wanted.size:
        return 0.0
    scaled = (wanted - shift.taken) / step
    error = (np.clip(np.rint(scaled), -128, 127) - scaled) * step
    return float(np.mean(error**2) / (np.mean(values.astype(np.float64) ** 2) + 1e-30))
