"""Chooses constants to take off the tensors of an int8 part, so that int8's steps lie where the values are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from hilt.network.elementwise import expression, results
from hilt.network.onnx_graph import OnnxGraph, OnnxNode
from hilt.network.onnx_means import MEANS
from hilt.network.quantize.followers import expression_roots, following, restored_readers
from hilt.network.quantize.qdq import Scales
from hilt.network.quantize.regions import MAXIMA, Regions
from hilt.network.quantize.statistics import TensorStatistics, least_loss

_NONE, _UNIFORM, _BY_CHANNEL = range(3)
"""Readers allow to be taken off a tensor: nothing, one constant, or one for each channel."""
_ROUNDS = 2
WEIGHTS_SHARES = (0.4, 0.0)
"""How much the error of weights may count beside that of tensors: rounding by effect, and biases, make up for some."""
_MOST_WEIGHTS = 1 << 14
"""Weights of a layer, evenly spread, whose error is computed."""
_FINER_AVERAGES = 7
"""Octaves, from 0 on, by which the step of an average may be finer than that of its data."""
_PRODUCT_GRID = 4
"""A product adds multiples of so many steps, so that they stay whole if a scale becomes coarser."""
_LARGEST_OFFSET = 124
"""The most steps that it adds: an input of int8, and two of a scale that is finer by one."""
_MOST_OWN_STEPS = 1 << 12
"""The most steps that an average adds; two octaves are left for finer ones."""
_ROUNDING = 1e-9
"""Errors that differ by less are the same."""
_LEAST_GAIN = 0.8
"""A group is changed if that leaves so much of its error at most."""
_FRACTIONS = 8
_STEPS = 2.0 ** (np.arange(-6, 13) / -_FRACTIONS)
"""Steps that are tried, by the one that serves best without a change; whole octaves alone where no factor passes."""
_GRID = 4096
"""Places at which an expression is computed to find where it is flat."""
_LEAST_FLAT = _GRID // 32
"""A flat end of fewer places is not worth a clip."""


class Borders(Enum):
    """The padded convolutions that read a constant around their data, in place of zeros."""

    NONE = "none"
    DENSE = "dense"
    """All of one group: depthwise ones take VTA longest by it."""
    ALL = "all"

    def hold(self, layer: OnnxNode) -> bool:
        """Tell whether a padded convolution is among them."""
        return self is Borders.ALL or (self is Borders.DENSE and layer.attributes.get("group", 1) == 1)


@dataclass(frozen=True)
class Shift:
    """A constant, or one for each channel, to take off a tensor, and a factor of the rest.

    Attributes:
        taken: A scalar, or one number a channel (the second axis).
        factor: The factor.
        low: No reader tells values below it apart.
        high: The same of values above it.
        own: The part of `taken` that the maker of an average, product or PRelu takes off, beside that of its data.
    """

    taken: NDArray[np.float64]
    factor: float = 1.0
    low: float = -np.inf
    high: float = np.inf
    own: float = 0.0

    @property
    def changes(self) -> bool:
        """Tell whether it changes the tensor."""
        return bool(np.any(self.taken != 0)) or self.factor != 1 or self.low > -np.inf or self.high < np.inf

    def of(self, value: float) -> float:
        """Return a value with the one constant of the whole tensor taken off, times the factor."""
        return (value - float(self.taken)) * self.factor


_NO_SHIFT = Shift(np.zeros(()))


def choose_shifts(
    graph: OnnxGraph,
    regions: Regions,
    statistics: Mapping[str, TensorStatistics],
    scales: Scales,
    weights_share: float = WEIGHTS_SHARES[0],
    *,
    borders: Borders = Borders.NONE,
) -> dict[str, Shift]:
    """Return the shift of each tensor of a graph's int8 part; one that changes nothing where none serves.

    Args:
        graph: The float graph.
        regions: Its int8 part.
        statistics: Of the tensors of the int8 part.
        scales: Those of the graph as it is.
        weights_share: How much the error of weights counts beside that of tensors.
        borders: Padded convolutions whose inputs are shifted, too: a constant comes around them.
    """
    return _Chooser(graph, regions, statistics, scales, weights_share, borders).choose()


class _Chooser:
    """The state of choose_shifts."""

    def __init__(
        self,
        graph: OnnxGraph,
        regions: Regions,
        statistics: Mapping[str, TensorStatistics],
        scales: Scales,
        weights_share: float,
        borders: Borders,
    ) -> None:
        self._weights_share, self._borders = weights_share, borders
        self._graph, self._regions, self._statistics, self._scales = graph, regions, statistics, scales
        self._consumers, self._producers = graph.consumers(), graph.producers()
        self._layers = {id(layer.node): layer for layer in regions.layers}
        self._made = {layer.output: layer for layer in regions.layers}
        self._tensors = set(regions.tensors)
        self._roots = expression_roots(graph, self._tensors, self._made)
        self._restored = restored_readers(graph, regions)
        self._following = following(graph, regions)
        self._pools: dict[str, list[str]] = {}
        """The averages that are made of each tensor."""
        for pool, (source, *_) in self._following.items():
            if self._producers[pool].op in MEANS:
                self._pools.setdefault(source, []).append(pool)
        self._averages = {pool for pools in self._pools.values() for pool in pools}
        self._levelled: set[str] = set()
        """The groups whose tensors have one constant."""
        self._freedoms: dict[str, int] = {}
        self._factors: dict[str, float] = {}
        """The factors chosen so far, by group."""
        self._weights = WeightLosses(graph)
        self._read = Counter(layer.node.inputs[1] for layer in regions.layers)

    def choose(self) -> dict[str, Shift]:
        self._levelled = {group for group in self._regions.groups.values() if self._may_be_level(group)}
        for name in reversed(self._regions.tensors):
            self._freedoms[name] = self._freedom(name)
        self._levelled = {group for group in self._levelled if self._is_level(group)}
        shifts = self._made_shifts()
        for name in self._regions.tensors:
            if name in self._regions.moved or name in self._following:
                shifts[name] = self._followed(name, shifts)
            shifts.setdefault(name, _NO_SHIFT)
        return shifts

    def _made_shifts(self) -> dict[str, Shift]:
        """Return the shifts of the tensors that are no mere results of others, each class in turn, a second time."""
        classes = [_Class(tuple(groups), *self._tried(groups, scalable)) for groups, scalable in self._classes()]
        found: dict[tuple[str, ...], dict[str, Shift]] = {}
        for _ in range(_ROUNDS):
            for each in classes:
                factor = self._best(each)
                self._factors.update(dict.fromkeys(each.groups, factor or 1.0))
                found[each.groups] = each.tried[factor][1] if factor else {}
        return {name: shift for shifts in found.values() for name, shift in shifts.items()}

    def _classes(self) -> Iterator[tuple[list[str], bool]]:
        """Yield the groups that have one factor, those of tensors that are added, say; tell whether they can have one.

        Where they cannot, each group is a class by itself.
        """
        groups = self._regions.groups
        homes = {group: group for group in groups.values()}
        for first, second in self._pairs():
            old, new = homes[groups[first]], homes[groups[second]]
            homes = {group: new if home == old else home for group, home in homes.items()}
        for home in dict.fromkeys(homes.values()):
            together = [group for group in homes if homes[group] == home]
            if all(self._takes_factor(name) for group in together for name in self._regions.members(group)):
                yield together, True
            else:
                yield from (([group], False) for group in together)

    def _pairs(self) -> Iterator[tuple[str, str]]:
        """Yield the pairs of tensors that have one factor."""
        for layer in self._regions.layers:
            if layer.residual:
                yield layer.output, layer.residual
        for name, sources in self._following.items():
            yield from ((name, source) for source in sources)

    def _freedom(self, name: str) -> int:
        """Return how much the readers of a tensor allow to be taken off it; for the caller it is added again."""
        let = [self._let_by(reader, name) for reader in self._consumers.get(name, [])]
        return min(let + [_UNIFORM] * (name in self._graph.outputs), default=_NONE)

    def _let_by(self, reader: OnnxNode, name: str) -> int:
        layer = self._layers.get(id(reader))
        if layer is not None:
            return self._let_by_layer(reader) if name == layer.data else _NONE
        if self._takes_back(reader, name):
            return _UNIFORM
        further = self._freedoms.get(reader.outputs[0], _NONE)
        if reader.op == "Add":
            return self._let_by_sum(reader, name, further)
        if reader.op in MEANS and reader.outputs[0] in self._following:
            return further if self._share(reader) else _NONE
        return self._let_by_move(reader, further) if reader.outputs[0] in self._regions.moved else _NONE

    def _let_by_layer(self, layer: OnnxNode) -> int:
        """Return the freedom that a layer leaves: its bias takes up the constant, but for the zeros of its padding."""
        if layer.op == "Gemm":
            return _BY_CHANNEL if _is_plain(layer) else _NONE
        if layer.op != "Conv":
            return _NONE
        if is_padded(layer):
            return _UNIFORM if self._borders.hold(layer) else _NONE
        return _BY_CHANNEL

    def _let_by_sum(self, add: OnnxNode, name: str, further: int) -> int:
        """Return how much an Add allows: a bias takes up a fused one's residual's constant, another's sum lacks it."""
        if self._is_residual(add, name):
            return _BY_CHANNEL
        return min(further, _UNIFORM) if add.outputs[0] in self._regions.adds else _NONE

    def _takes_back(self, reader: OnnxNode, name: str) -> bool:
        """Tell whether a reader adds a constant of the whole tensor again: a function, or a product to its data."""
        return reader.outputs[0] in self._restored.get(name, ()) or self._multiplies(reader, name)

    def _multiplies(self, reader: OnnxNode, name: str) -> bool:
        """Tell whether a reader is a product whose data a tensor is."""
        data, factor = self._regions.products.get(reader.outputs[0], ("", ""))
        return reader.op == "Mul" and name == data != factor

    def _share(self, pool: OnnxNode) -> float:
        """Return the mean that an average makes of ones, 0 if it is not the same everywhere."""
        if not pool.attributes.get("count_include_pad", 0):
            return 1.0
        if not any(pool.attributes.get("pads", ())):
            return 0.0 if pool.attributes.get("ceil_mode", 0) else 1.0
        image, kernel = self._graph.shape(pool.inputs[0])[2:], pool.attributes["kernel_shape"]
        pads = np.add(*np.split(np.array(pool.attributes["pads"]), 2))
        return float(np.prod(image) / np.prod(kernel)) if np.array_equal(image + pads, kernel) else 0.0

    def _let_by_move(self, reader: OnnxNode, further: int) -> int:
        """Return how much a moving operator allows if its readers allow so much."""
        if reader.op == "Concat":
            return _NONE if self._reads_constants(reader) else self._let_by_join(reader, further)
        if reader.op == "Pad" or any(reader.attributes.get("pads", ())):
            return _NONE
        return further if self._keeps_channels(reader) else min(further, _UNIFORM)

    def _keeps_channels(self, reader: OnnxNode) -> bool:
        """Tell whether a moving operator of one input leaves each value in its channel, the second axis."""
        before, after = self._graph.shape(reader.inputs[0]), self._graph.shape(reader.outputs[0])
        alike = len(before) == len(after) and before[1:2] == after[1:2]
        return reader.op in MAXIMA | {"Resize"} or (reader.op == "Expand" and alike)

    def _let_by_join(self, concat: OnnxNode, further: int) -> int:
        """Return how much a Concat of no constants allows: each part its own channels, or one constant for all."""
        if further == _BY_CHANNEL and concat.attributes.get("axis", 0) == 1:
            return _BY_CHANNEL
        return min(further, _UNIFORM) if self._regions.groups[concat.outputs[0]] in self._levelled else _NONE

    def _may_be_level(self, group: str) -> bool:
        """Tell whether all tensors of a group can have one constant: none has that of others, or has it in steps."""
        return not any(name in self._following or self._is_in_steps(name) for name in self._regions.members(group))

    def _is_level(self, group: str) -> bool:
        """Tell whether a Concat lets the tensors of a group have one constant alone."""
        joined = [name for name in self._regions.members(group) if name in self._regions.moved]
        return any(
            self._producers[name].op == "Concat"
            and self._let_by_join(self._producers[name], self._freedoms[name]) == _UNIFORM
            for name in joined
        )

    def _is_residual(self, add: OnnxNode, name: str) -> bool:
        """Tell whether an addition is fused with a layer and reads a tensor of its own size beside its sums."""
        other = add.inputs[1 - add.inputs.index(name)]
        return self._graph.shape(name) == self._graph.shape(other) and any(
            layer.residual == name and layer.node.outputs[0] == other for layer in self._regions.layers
        )

    def _made_in(self, group: str) -> list[str]:
        """Return the tensors of a group that no operator moves."""
        return [name for name in self._regions.members(group) if name not in self._regions.moved]

    def _tried(
        self, groups: Sequence[str], scalable: bool
    ) -> tuple[float, dict[float, tuple[float, dict[str, Shift]]]]:
        """Return the error of groups as they are, and that with each factor, with the shifts that go with it."""
        names = [name for group in groups for name in self._made_in(group)]
        free = scalable or all(self._freedoms[name] != _NONE for name in names)
        if not free or not all(self._is_made(name) for name in names):
            return 0.0, {}
        least, tried = 0.0, dict[float, tuple[float, dict[str, Shift]]]()
        for group in groups:
            step = 2.0 ** -self._scales.groups[group]
            flat = {each: self._flat_ends(each) for each in self._made_in(group)}
            least += sum(self._error(each, _flattened(ends), step) for each, ends in flat.items())
            for factor, finer in _steps(step, scalable).items():
                error, shifts = min((self._in_steps(flat, each, factor) for each in finer), key=lambda each: each[0])
                before = tried.get(factor, (0.0, {}))
                tried[factor] = before[0] + error, before[1] | shifts
        return least, tried

    def _best(self, each: _Class) -> float | None:
        """Return the factor of a class that loses least; None if no shift serves."""
        errors = {
            factor: error + self._loss_of_weights(each.groups, factor) for factor, (error, _) in each.tried.items()
        }
        factor = min(errors, key=lambda tried: errors[tried], default=None)
        bound = _LEAST_GAIN * each.least + self._loss_of_weights(each.groups, 1.0)
        return None if factor is None or errors[factor] >= bound else factor

    def _in_steps(
        self, flat: Mapping[str, tuple[float, float]], step: float, factor: float
    ) -> tuple[float, dict[str, Shift]]:
        """Return the error of a group's tensors in steps of a size, and their shifts."""
        if any(self._regions.groups[name] in self._levelled for name in flat):
            found = self._level(flat, step)
        else:
            found = {name: self._shift(name, ends, step) for name, ends in flat.items()}
        shifts = {name: replace(shift, factor=factor) for name, (shift, _) in found.items()}
        return sum(error for _, error in found.values()), shifts

    def _level(self, flat: Mapping[str, tuple[float, float]], step: float) -> dict[str, tuple[Shift, float]]:
        """Return the shifts of a group's tensors with the one constant that loses least, and their errors."""
        places = [0.0, *(place for name, ends in flat.items() for place in self._places(name, ends, step))]
        places = places if all(self._freedoms[name] != _NONE for name in flat) else [0.0]
        tried = [{name: Shift(np.asarray(place * step), 1.0, *flat[name]) for name in flat} for place in places]
        errors = [{name: self._error(name, each, step) for name, each in shifts.items()} for shifts in tried]
        best = _first_least([sum(each.values()) for each in errors])
        return {name: (tried[best][name], errors[best][name]) for name in flat}

    def _ends(self, name: str) -> NDArray[np.float64]:
        """Return a tensor's least and largest value."""
        found = self._statistics[name]
        return np.array([found.lows.min(), found.highs.max()])

    def _is_made(self, name: str) -> bool:
        """Tell whether the maker of a tensor can shift it, or shifts it as its sources are."""
        return name in self._made or name in self._roots or name in self._following

    def _takes_factor(self, name: str) -> bool:
        """Tell whether the maker of a tensor and its readers can take up a factor."""
        if name in self._made and not self._is_alone(self._made[name].node):
            return False
        return (self._is_made(name) or name in self._regions.moved) and all(
            self._takes_up(reader, name) for reader in self._consumers.get(name, [])
        )

    def _is_alone(self, layer: OnnxNode) -> bool:
        """Tell whether no other layer has a layer's weights: those that are shared lie in memory once."""
        return self._read[layer.inputs[1]] == 1

    def _takes_up(self, reader: OnnxNode, name: str) -> bool:
        layer, result = self._layers.get(id(reader)), reader.outputs[0]
        if layer is not None:
            return name == layer.data and _is_plain(reader) and self._is_alone(reader)
        if result in self._restored.get(name, ()) or name in self._following.get(result, ()):
            return True
        if reader.op == "Add" and self._is_residual(reader, name):
            return True
        return result in self._regions.moved and not self._reads_constants(reader)

    def _loss_of_weights(self, groups: Collection[str], factor: float) -> float:
        """Return the error of the weights that take up a factor of groups, beside the factors of the others."""
        total = 0.0
        for layer in self._regions.layers:
            ends = [self._regions.groups[name] for name in (layer.output, layer.data)]
            if (ends[0] in groups) != (ends[1] in groups):
                made, read = (factor if end in groups else self._factors.get(end, 1.0) for end in ends)
                total += self._weights_share * self._weights.of(layer.node.inputs[1], made / read)
        return total

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
        if freedom == _NONE or (name in self._following and not self._adds_steps(name)):
            return _flattened(flat), self._error(name, _flattened(flat), step)
        if self._is_linear(name) and freedom == _BY_CHANNEL and found.lows.ndim == 1:
            taken, widest = np.rint((found.lows + found.highs) / 2 / step) * step, (found.highs - found.lows).max()
            return Shift(taken), step**2 / 12 / (found.power + 1e-30) if widest <= 255 * step else np.inf
        tried = [Shift(np.asarray(place * step), 1.0, *flat) for place in self._places(name, flat, step)]
        errors = [self._error(name, shift, step) for shift in tried]
        best = _first_least(errors)
        return tried[best], errors[best]

    def _error(self, name: str, shift: Shift, step: float) -> float:
        """Return the error of a shifted tensor, and of the averages that are made of it; of an average none."""
        if name in self._averages:
            return 0.0
        return _error(self._statistics[name], shift, step) + sum(
            min(_error(self._statistics[pool], taken, step / 2**finer) for finer in range(_FINER_AVERAGES))
            for pool in self._pools.get(name, ())
            for taken in [self._shift_of_mean(pool, shift)]
        )

    def _shift_of_mean(self, mean: str, data: Shift) -> Shift:
        """Return the shift of an average of shifted data: its readers may let it take a constant off by itself."""
        taken = data.taken * self._share(self._producers[mean])
        if self._freedoms[mean] == _NONE:
            return Shift(taken, data.factor)
        found = self._statistics[mean]
        low, high = (found.lows - taken).min(), (found.highs - taken).max()
        own = _few_steps((low + high) / 2 * data.factor, (high - low) / 2 * data.factor) / data.factor
        return Shift(taken + own, data.factor, own=own)

    def _places(self, name: str, flat: tuple[float, float], step: float) -> NDArray[np.float64]:
        """Return the constants in steps that may be taken off a tensor whose values count between two ends.

        Those that leave values beyond these the most room come first: at the bottom where none is below zero.
        """
        ends = np.clip(self._ends(name), *flat) / step
        tied = [pool for pool in self._pools.get(name, ()) if self._freedoms[pool] == _NONE]
        middles = [self._ends(pool).mean() / step for pool in tied]
        bottom, middle, top = ends[0] + 128, ends.mean(), ends[1] - 127
        first = (bottom, middle) if ends[0] >= 0 else (middle, bottom)
        places: NDArray[np.float64] = np.array([*first, 0.0, top, *middles])
        if self._is_in_steps(name):
            places = np.clip(np.rint(places / _PRODUCT_GRID) * _PRODUCT_GRID, -_LARGEST_OFFSET, _LARGEST_OFFSET)
        whole: NDArray[np.float64] = np.rint(places)
        return whole

    def _adds_steps(self, name: str) -> bool:
        """Tell whether the maker of a tensor adds whole steps to it: a product, or a PRelu with slopes by channel."""
        return name in self._regions.products or name in self._regions.bends

    def _is_in_steps(self, name: str) -> bool:
        """Tell whether a tensor's maker or a reader adds whole steps to it."""
        readers = self._consumers.get(name, [])
        return self._adds_steps(name) or any(self._multiplies(reader, name) for reader in readers)

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

    def _followed(self, name: str, shifts: Mapping[str, Shift]) -> Shift:
        """Return the shift of a tensor that an operator moves, averages, adds, bends, or multiplies by a gate."""
        maker = self._producers[name]
        if name in self._averages:
            return self._shift_of_mean(name, shifts[maker.inputs[0]])
        parts = [shifts.get(source, _NO_SHIFT) for source in self._graph.computed_inputs(maker)]
        if name in self._following:
            parts = [shifts[source] for source in self._following[name]]
        if self._adds_steps(name):
            taken = shifts.get(name, _NO_SHIFT).taken
            return Shift(taken, parts[0].factor, own=float(taken))
        return Shift(self._taken(maker, parts), parts[0].factor)

    def _taken(self, maker: OnnxNode, parts: Sequence[Shift]) -> NDArray[np.float64]:
        """Return the constant that is off a tensor made of shifted `parts`."""
        if maker.op == "Add":
            return np.asarray(sum(float(part.taken) for part in parts))
        return self._joined([part.taken for part in parts], maker) if maker.op == "Concat" else parts[0].taken

    def _joined(self, parts: Sequence[NDArray[np.float64]], concat: OnnxNode) -> NDArray[np.float64]:
        if all(part.ndim == 0 and part == parts[0] for part in parts):
            return parts[0]
        sizes = [self._graph.shape(name)[1] for name in concat.inputs]
        return np.concatenate([np.broadcast_to(*pair) for pair in zip(parts, sizes, strict=True)])


@dataclass(frozen=True)
class _Class:
    """Groups of one factor: their error as they are, and by factor that of the best shifts, with these."""

    groups: tuple[str, ...]
    least: float
    tried: dict[float, tuple[float, dict[str, Shift]]]


class WeightLosses:
    """The errors of weights in int8 with one scale that is a power of two, if they are multiplied by a factor."""

    def __init__(self, graph: OnnxGraph) -> None:
        self._graph = graph
        self._known: dict[tuple[str, int], float] = {}

    def of(self, name: str, factor: float) -> float:
        """Return the power of the error by that of the weights; octaves of the factor do not matter."""
        key = name, round(_FRACTIONS * np.log2(factor)) % _FRACTIONS
        if key not in self._known:
            values = self._graph.constants[name].reshape(-1)
            some = values[:: max(values.size // _MOST_WEIGHTS, 1)] * np.float32(factor)
            some = np.append(some, np.abs(values).max(initial=0) * np.float32(factor))
            self._known[key] = least_loss(some)
        return self._known[key]


def _steps(step: float, scalable: bool) -> dict[float, list[float]]:
    """Return the steps to try in place of one, by the factor that makes them powers of two."""
    found: dict[float, list[float]] = {}
    for tried in step * _STEPS:
        factor = float(2.0 ** np.round(np.log2(tried)) / tried)
        if factor == 1 or scalable:
            found.setdefault(round(factor, 9), []).append(float(tried))
    return found


def is_padded(layer: OnnxNode) -> bool:
    """Tell whether a layer reads zeros beside its data."""
    attributes = layer.attributes
    return any(attributes.get("pads", ())) or attributes.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID")


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


def _few_steps(middle: float, reach: float) -> float:
    """Return the number next to the middle of values that an average can add in whole steps of their int8.

    Args:
        middle: The middle.
        reach: How far values lie from it at most.
    """
    exponents = [
        np.floor(np.log2(most / size)) for most, size in ((127, reach), (_MOST_OWN_STEPS, abs(middle))) if size
    ]
    grid = _PRODUCT_GRID * 2.0 ** -min(exponents, default=0.0)
    return float(np.rint(middle / grid) * grid)


def _first_least(errors: Sequence[float]) -> int:
    """Return the place of the first error that is the least, but for rounding.

    Constants of whole steps make one error where none clips a value; rounding differs from processor to processor.
    """
    return int(np.flatnonzero(np.asarray(errors) <= min(errors) * (1 + _ROUNDING))[0])


def _error(found: TensorStatistics, shift: Shift, step: float) -> float:
    """Return the power of the error of shifted values in int8, by that of the values."""
    return found.error_of_shifted(shift.low, shift.high, float(shift.taken), step)
