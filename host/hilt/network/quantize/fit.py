"""Fits a quantised model to calibration data; held-out samples decide each step, so that none costs quality."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np

from hilt.network.calibration import HeldOut, spread
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.quantize.centre import centred
from hilt.network.quantize.counting import Counting, uncounted
from hilt.network.quantize.equalise import RULES, equalised
from hilt.network.quantize.free_factors import FreeFactors
from hilt.network.quantize.keep import choose_kept
from hilt.network.quantize.qdq import Scales
from hilt.network.quantize.regions import Regions, find_regions
from hilt.network.quantize.rounding import rounded_weights
from hilt.network.quantize.scales import ScaleSearch, corrected_biases, initial_scales, layer_macs
from hilt.network.quantize.shifts import WEIGHTS_SHARES, Borders, is_padded
from hilt.network.quantize.statistics import TensorStatistics, observe

_OBSERVED_SAMPLES = 48
"""Ranges are taken of so many samples at most, of those that decide, too: the largest values lie in few."""
_ROUNDING_SAMPLES = 8
_MOST_ROUNDING_LOSS = 0.2
"""Decibels that rounding by effect may seem to cost: each layer's sums are nearer by it, and so few tell by chance."""
_FACTOR_LOSS = 0.5
"""Decibels that free factors may seem to cost: steps are finer by them, and so few tell by chance."""
_LEAST_EQUALISING_GAIN = 0.1
"""Decibels that equalising must bring, since it changes the weights."""
_ENOUGH_DECIBELS = 20.0
"""A start below so many is tried with weight scales by blocks of channels, and with all borders: both take VTA longer,
blocks by 4 % on a hand model of MobileNet's kind, borders by 0.7 % on ResNet-18, 19 % on MobileNet."""
SHARED_BLOCK = 32
"""Channels of such a block: those of the widest accelerators' blocks that hilt ships, or a multiple of the others'."""
_LEAST_BLOCK_GAIN = 0.5
"""Decibels that blocks must bring."""
_LEAST_BORDER_GAIN = {Borders.ALL: 0.1, Borders.DENSE: 0.25}
"""Decibels that borders must bring, on samples that the search does not decide on: enough decibels are not bought by a
longer time of depthwise layers."""
_REFINED_MACS, _MOST_REFINED = 1e8, 2
"""Starts that are refined: as many as make so many multiply-accumulates an inference together, two at most."""
_STARTS = 4 + len(RULES) + 8 * len(WEIGHTS_SHARES)
"""Starts that are tried at most: the graph, with free factors of all tensors and of some, equalised by each rule, four
of these centred in each way, and with borders, and one in blocks."""


@dataclass(frozen=True)
class Fitted:
    """A float graph with the scales that were fitted to it.

    Attributes:
        graph: The graph, its channels equalised if that served.
        regions: Its int8 part.
        scales: The scales, biases and rounded weights.
        equalised: Tells whether channels were equalised.
        centred: Tells whether tensors were centred.
        kept: The nodes that stay in float.
        channel_block: Output channels that share a weight scale; 0: one scale a layer.
    """

    graph: OnnxGraph
    regions: Regions
    scales: Scales
    equalised: bool
    centred: bool
    kept: tuple[str, ...]
    channel_block: int


@dataclass(frozen=True)
class _Start:
    """Scales tensor by tensor, and their decibels on the deciding samples."""

    graph: OnnxGraph
    regions: Regions
    statistics: dict[str, TensorStatistics]
    scales: Scales
    search: ScaleSearch
    decibels: float


@dataclass(frozen=True)
class _Candidate:
    """A start, how its graph was changed, and its mean decibels over all samples but the reported ones."""

    start: _Start
    equalised: bool
    centred: bool
    bordered: Borders
    decibels: float


def fit(
    graph: OnnxGraph,
    samples: HeldOut,
    *,
    channel_block: int | None,
    search: bool,
    kept: Collection[str] = (),
    least_decibels: float | None = None,
    borders: bool | None = None,
    counting: Counting = uncounted,
) -> Fitted:
    """Return scales for a canonical graph.

    Args:
        graph: The graph.
        samples: The calibration data by its use.
        channel_block: Output channels that share a weight scale; 0 for one scale a layer; None for blocks where the
            network has few decibels else.
        search: Improve the scales by their effect at the end of the int8 part, if samples are held out to decide.
        kept: Nodes that stay in float.
        least_decibels: Keep as few further layers in float as bring each output to so many; None for no further ones.
        borders: Centre the inputs of padded convolutions; None does so if it brings enough, and spares depthwise ones
            where the network has enough decibels.
        counting: Counts the work of each phase.

    Raises:
        CalibrationError: The data cannot be computed.
    """
    advance, starts = _Rounds(counting("quantising", "steps")), counting("fitting scales", "starts")
    refining = _Refining(samples, search, advance, _Rounds(counting("rounding weights", "layers")))
    candidates = _Candidates(graph, samples, channel_block or 0, kept, starts)
    best = refining.best_of(candidates.best())
    enough = max(_ENOUGH_DECIBELS, least_decibels or 0.0)
    if channel_block is None and best.candidate.decibels < enough:
        best, candidates = _with_blocks_if_better(best, candidates, refining)
    if borders is not False:
        some = Borders.ALL if borders or best.candidate.decibels < enough else Borders.DENSE
        best = _with_borders_if_better(best, candidates, refining, some, asked=bool(borders))
    if least_decibels is not None:
        advance.begin()
        chosen = choose_kept(
            best.candidate.start.graph, graph, samples, least_decibels,
            kept=kept, channel_block=candidates.channel_block, on_step=advance,
        )  # fmt: skip
        if chosen:
            kept = (*kept, *chosen)
            best = _with_floats(best, _Candidates(graph, samples, candidates.channel_block, kept, starts), refining)
    start = best.candidate.start
    changes = best.candidate.equalised, best.candidate.centred
    return Fitted(start.graph, start.regions, best.scales, *changes, tuple(kept), candidates.channel_block)


@dataclass(frozen=True)
class _Refined:
    """A candidate with its scales improved and weights rounded, and its decibels over all samples but the reported."""

    candidate: _Candidate
    scales: Scales
    decibels: float


class _Rounds:
    """Counts work that is done several times over from where the last round ended."""

    def __init__(self, advance: Callable[[int, int], None]) -> None:
        self._advance, self._before, self._done = advance, 0, 0

    def begin(self) -> None:
        """Begin a round."""
        self._before += self._done
        self._done = 0

    def __call__(self, done: int, count: int) -> None:
        self._done = done
        self._advance(self._before + done, self._before + count)


@dataclass(frozen=True)
class _Refining:
    """Refines candidates: by a search, if it is wanted, and by rounding."""

    samples: HeldOut
    search: bool
    on_step: _Rounds
    on_layer: _Rounds

    def refined(self, candidate: _Candidate) -> _Refined:
        """Return a candidate refined."""
        self.on_step.begin()
        self.on_layer.begin()
        start = candidate.start
        scales = start.scales
        if self.search and self.samples.unseen:
            scales = start.search.improve(scales, self.on_step)
            if scales.biases:
                scales.biases = corrected_biases(start.graph, start.regions, scales, start.statistics)
        scales = _rounded(start, scales, self.samples, self.on_layer)
        start.search.use_constants_of(scales)
        return _Refined(candidate, scales, start.search.measure_shaken(scales))

    def best_of(self, candidates: Sequence[_Candidate]) -> _Refined:
        """Return the candidate that is best refined: a better start may be refined less."""
        best, *others = map(self.refined, candidates)
        for other in others:
            if other.decibels > best.decibels + _margin(best.candidate, other.candidate):
                best = other
        return best


def _with_floats(best: _Refined, candidates: _Candidates, refining: _Refining) -> _Refined:
    """Return the best candidate with more nodes in float, in the form of the one that chose them or in another."""
    found = candidates.best()
    bordered = candidates.bordered(best.candidate.bordered, best.candidate)
    return refining.best_of([*(bordered or found), candidates.again(best.candidate)])


def _with_blocks_if_better(
    best: _Refined, candidates: _Candidates, refining: _Refining
) -> tuple[_Refined, _Candidates]:
    """Return the best candidate with weight scales by blocks of channels, if that brings enough, else the best one."""
    start = best.candidate.start
    if all(len(start.graph.constants[layer.node.inputs[1]]) <= SHARED_BLOCK for layer in start.regions.layers):
        return best, candidates
    blocked = candidates.in_blocks(SHARED_BLOCK)
    refined = refining.refined(blocked.again(best.candidate))
    return (refined, blocked) if refined.decibels > best.decibels + _LEAST_BLOCK_GAIN else (best, candidates)


def _with_borders_if_better(
    best: _Refined, candidates: _Candidates, refining: _Refining, borders: Borders, *, asked: bool
) -> _Refined:
    """Return the best candidate with borders, if there is one and it is `asked` for or brings enough.

    Where a network has enough decibels, those that bring little before they are refined are not.
    """
    least, bordered = _LEAST_BORDER_GAIN[borders], candidates.bordered(borders, best.candidate)
    if borders is Borders.DENSE:
        bordered = [each for each in bordered if each.decibels > best.candidate.decibels + least]
    if not bordered:
        return best
    refined = refining.best_of(bordered)
    return refined if asked or refined.decibels > best.decibels + least else best


def _rounded(start: _Start, scales: Scales, samples: HeldOut, advance: Callable[[int, int], None]) -> Scales:
    """Return scales with weights rounded by their effect on the sums, unless the samples lose by it."""
    start.search.use_constants_of(scales)
    level = start.search.measure_shaken(scales)
    fitted = spread(samples.fitted, _ROUNDING_SAMPLES)
    candidate = replace(scales, rounded=rounded_weights(start.graph, start.regions, scales, fitted, advance))
    if not candidate.rounded:
        return scales
    candidate.biases = corrected_biases(start.graph, start.regions, candidate, start.statistics)
    start.search.use_constants_of(candidate)
    return candidate if start.search.measure_shaken(candidate) > level - _MOST_ROUNDING_LOSS else scales


class _Candidates:
    """Makes starts of a graph in several forms, and chooses among them.

    The samples that fit the scales decide with the others, since all candidates are fitted to them alike.
    """

    def __init__(
        self,
        graph: OnnxGraph,
        samples: HeldOut,
        channel_block: int,
        kept: Collection[str],
        advance: Callable[[int, int], None],
    ) -> None:
        """Count starts with `advance`."""
        self.graph, self._samples, self.channel_block, self._kept = graph, samples, channel_block, kept
        regions = find_regions(graph)
        self._ends = regions.ends
        macs = sum(layer_macs(graph, layer) for layer in regions.layers)
        self._refined = int(np.clip(_REFINED_MACS / max(macs, 1), 1, _MOST_REFINED))
        self._search: ScaleSearch | None = None
        self._advance, self._done = advance, 0
        self._forms: tuple[_Candidate, ...] = ()

    def best(self) -> list[_Candidate]:
        """Return the best of the graph with free factors, equalised, and each of its forms with centred tensors: a few.

        With free factors unless they cost, as it is else. Of a small network the others are centred, too.
        """
        first = self._made(self.graph)
        factored = islice(self._factored(first), self._refined if self._samples.unseen else 0)
        plain, *others = *factored, first
        equalised = best_starts(self._equalised(plain.start), self._refined)
        self._forms = (plain, *equalised[:1], *(others if self._refined > 1 else ()))
        centred = (made for each in self._forms for made in self._centred(each))
        return best_starts(chain((plain, *equalised), centred), self._refined)

    def in_blocks(self, channel_block: int) -> _Candidates:
        """Return candidates of the forms that `best` found, with weight scales by blocks of channels."""
        made = _Candidates(self.graph, self._samples, channel_block, self._kept, self._advance)
        made._search, made._done, made._forms = self._search, self._done, self._forms
        return made

    def bordered(self, borders: Borders, like: _Candidate) -> list[_Candidate]:
        """Return the best of the forms that `best` found with the inputs of padded convolutions centred, too.

        Of a large network it is the form that is equalised `like` a candidate.
        """
        layers = [layer.node for layer in self._forms[0].start.regions.layers]
        if not any(is_padded(node) and borders.hold(node) for node in layers):
            return []
        forms = [each for each in self._forms if self._refined > 1 or each.equalised == like.equalised]
        return best_starts((made for each in forms for made in self._centred(each, borders)), self._refined)

    def again(self, candidate: _Candidate) -> _Candidate:
        """Return a start in the form of a candidate: the nodes to keep were chosen by it."""
        equalised, centred, bordered = candidate.equalised, candidate.centred, candidate.bordered
        return self._made(candidate.start.graph, equalised=equalised, centred=centred, bordered=bordered)

    def _centred(self, candidate: _Candidate, borders: Borders = Borders.NONE) -> Iterator[_Candidate]:
        """Yield a candidate with its tensors centred; too few samples do not show where values end."""
        start = candidate.start
        for share in WEIGHTS_SHARES if self._samples.unseen else ():
            made = centred(start.graph, start.regions, start.statistics, start.scales, share, borders=borders)
            if made is not None:
                yield self._made(made, equalised=candidate.equalised, centred=True, bordered=borders)

    def _factored(self, first: _Candidate) -> Iterator[_Candidate]:
        """Yield the graph with free factors of all tensors, and of inputs and tables alone, unless they cost."""
        factors = FreeFactors(self.graph, first.start.regions, first.start.statistics, self._ends)
        for make in (factors.together, factors.alone):
            graph = make()
            free = None if graph is None else self._made(graph)
            if free is not None and free.decibels > first.decibels - _FACTOR_LOSS:
                yield free

    def _equalised(self, plain: _Start) -> Iterator[_Candidate]:
        """Yield the graph equalised by each rule; too few samples do not show where a channel's values end."""
        for rule in RULES if self._samples.unseen else ():
            made = equalised(plain.graph, self._ends, plain.statistics, rule)
            if made is None:
                return
            yield self._made(made, equalised=True)

    def _made(
        self, graph: OnnxGraph, *, equalised: bool = False, centred: bool = False, bordered: Borders = Borders.NONE
    ) -> _Candidate:
        self._advance(self._done, _STARTS)
        self._done += 1
        start = self._start(graph)
        return _Candidate(start, equalised, centred, bordered, start.search.measure_shaken(start.scales))

    def _start(self, graph: OnnxGraph) -> _Start:
        """Return the scales of a form of the graph that lose least tensor by tensor, biases corrected if it serves.

        The tensors to reach are the ends of an int8 part without nodes kept in float: such nodes read no end.
        """
        regions = find_regions(graph, self._kept)
        unseen, seen = self._samples.unseen, self._samples.fitted
        seen = spread((*seen, *self._samples.deciding) if unseen else seen, _OBSERVED_SAMPLES)
        statistics = observe(graph, regions.tensors, seen, headroom=not unseen)
        scales = initial_scales(graph, regions, statistics, self.channel_block)
        search = ScaleSearch(graph, regions, scales, self._samples, self.graph, self._ends, self._search)
        self._search = self._search or search
        level = search.measure(scales)
        corrected = replace(scales, biases=corrected_biases(graph, regions, scales, statistics))
        search.use_constants_of(corrected)
        reached = search.measure(corrected)
        if reached <= level:
            search.use_constants_of(scales)
            return _Start(graph, regions, statistics, scales, search, level)
        return _Start(graph, regions, statistics, corrected, search, reached)


def best_starts(candidates: Iterable[_Candidate], count: int) -> list[_Candidate]:
    """Return so many of the best candidates, the best first; the others' memory is free.

    The second one is the best of those that are equalised if the first is not, or the other way round, if there is one.
    """
    best: list[_Candidate] = []
    for each in candidates:
        ranked = sorted([*best, each], key=lambda one: one.equalised * _LEAST_EQUALISING_GAIN - one.decibels)
        others = [one for one in ranked[1:] if one.equalised != ranked[0].equalised]
        best = [ranked[0], *(others or ranked[1:])][:count]
    return best


def _margin(best: _Candidate, other: _Candidate) -> float:
    """Return the decibels that another candidate must bring more than the best one so far."""
    return _LEAST_EQUALISING_GAIN if other.equalised and not best.equalised else 0.0
