"""Fits a quantised model to calibration data; held-out samples decide each step, so that none costs quality."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from hilt.network.calibration import CalibrationError, HeldOut, spread
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.quantize.centre import centred
from hilt.network.quantize.counting import Counting, uncounted
from hilt.network.quantize.equalise import RULES, equalised
from hilt.network.quantize.keep import choose_kept
from hilt.network.quantize.qdq import Scales
from hilt.network.quantize.regions import Regions, find_regions
from hilt.network.quantize.rounding import rounded_weights
from hilt.network.quantize.scales import ScaleSearch, corrected_biases, initial_scales
from hilt.network.quantize.statistics import TensorStatistics, observe

_OBSERVED_SAMPLES = 32
_ROUNDING_SAMPLES = 8
_LEAST_ROUNDING_GAIN = 0.05
"""Decibels that rounding by effect must bring, since it is fitted to few samples."""
_LEAST_EQUALISING_GAIN = 0.1
"""Decibels that equalising must bring, since it changes the weights."""


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
    """

    graph: OnnxGraph
    regions: Regions
    scales: Scales
    equalised: bool
    centred: bool
    kept: tuple[str, ...]


@dataclass(frozen=True)
class _Start:
    """Scales tensor by tensor."""

    graph: OnnxGraph
    regions: Regions
    statistics: dict[str, TensorStatistics]
    scales: Scales
    search: ScaleSearch


@dataclass(frozen=True)
class _Candidate:
    """A start, how its graph was changed, and its mean decibels over all samples but the reported ones."""

    start: _Start
    equalised: bool
    centred: bool
    decibels: float


def fit(
    graph: OnnxGraph,
    samples: HeldOut,
    *,
    channel_block: int,
    search: bool,
    kept: Collection[str] = (),
    least_decibels: float | None = None,
    counting: Counting = uncounted,
) -> Fitted:
    """Return scales for a canonical graph.

    Args:
        graph: The graph.
        samples: The calibration data by its use.
        channel_block: Output channels that share a weight scale; 0 for one scale a layer.
        search: Improve the scales by their effect at the end of the int8 part.
        kept: Nodes that stay in float.
        least_decibels: Keep as few further layers in float as bring each output to so many; None for no further ones.
        counting: Counts the work of each phase.

    Raises:
        CalibrationError: The data cannot be computed.
    """
    advance = counting("quantising", "steps")
    chosen_start = _best_start(graph, samples, channel_block, kept, counting("fitting scales", "starts"))
    best = chosen_start.start
    if least_decibels is not None:
        chosen = choose_kept(
            best.graph, samples, least_decibels, kept=kept, channel_block=channel_block, on_step=advance
        )
        if chosen:
            kept = (*kept, *chosen)
            best = _start(best.graph, samples, channel_block, kept)
    scales = best.scales
    if search:
        scales = best.search.improve(scales, advance)
        if scales.biases:
            scales.biases = corrected_biases(best.graph, best.regions, scales, best.statistics)
    scales = _rounded(best, scales, samples, counting("rounding weights", "layers"))
    return Fitted(best.graph, best.regions, scales, chosen_start.equalised, chosen_start.centred, tuple(kept))


def _rounded(start: _Start, scales: Scales, samples: HeldOut, advance: Callable[[int, int], None]) -> Scales:
    """Return scales with weights rounded by their effect on the sums, if that serves the deciding samples."""
    start.search.use_constants_of(scales)
    level = start.search.measure(scales)
    fitted = spread(samples.fitted, _ROUNDING_SAMPLES)
    candidate = replace(scales, rounded=rounded_weights(start.graph, start.regions, scales, fitted, advance))
    if not candidate.rounded:
        return scales
    candidate.biases = corrected_biases(start.graph, start.regions, candidate, start.statistics)
    start.search.use_constants_of(candidate)
    return candidate if start.search.measure(candidate) > level + _LEAST_ROUNDING_GAIN else scales


def _best_start(
    graph: OnnxGraph,
    samples: HeldOut,
    channel_block: int,
    kept: Collection[str],
    advance: Callable[[int, int], None],
) -> _Candidate:
    """Return the best of the graph as it is and with its channels equalised by each rule, and of these with centring.

    The samples that fit the scales decide with the others, since all candidates are fitted to them alike.
    """
    advance(0, 1 + len(RULES))
    plain = _candidate(_start(graph, samples, channel_block, kept), equalised=False, centred=False)
    best = _better(plain, _centred_ones(plain, samples, channel_block, kept))
    for done, rule in enumerate(RULES, 1):
        advance(done, 1 + len(RULES))
        made = equalised(graph, plain.start.regions.ends, plain.start.statistics, rule)
        if made is None:
            break
        try:
            start = _start(made, samples, channel_block, kept)
        except CalibrationError:  # ONNX Runtime's pools know a smaller range of scales than VTA
            continue
        candidate = _candidate(start, equalised=True, centred=False)
        best = _better(best, [candidate, *_centred_ones(candidate, samples, channel_block, kept)])
    return best


def _candidate(start: _Start, *, equalised: bool, centred: bool) -> _Candidate:
    return _Candidate(start, equalised, centred, start.search.measure_all(start.scales))


def _better(best: _Candidate, others: Sequence[_Candidate]) -> _Candidate:
    for other in others:
        margin = _LEAST_EQUALISING_GAIN if other.equalised and not best.equalised else 0.0
        if other.decibels > best.decibels + margin:
            best = other
    return best


def _centred_ones(
    candidate: _Candidate, samples: HeldOut, channel_block: int, kept: Collection[str]
) -> list[_Candidate]:
    """Return a candidate with its tensors centred; none if none of them would be."""
    start = candidate.start
    made = centred(start.graph, start.regions, start.statistics, start.scales)
    if made is None:
        return []
    start = _start(made, samples, channel_block, kept)
    return [_candidate(start, equalised=candidate.equalised, centred=True)]


def _start(graph: OnnxGraph, samples: HeldOut, channel_block: int, kept: Collection[str]) -> _Start:
    """Return the scales that lose least tensor by tensor, with corrected biases if these serve."""
    regions = find_regions(graph, kept)
    statistics = observe(graph, regions.tensors, spread(samples.fitted, _OBSERVED_SAMPLES))
    scales = initial_scales(graph, regions, statistics, channel_block)
    search = ScaleSearch(graph, regions, scales, samples)
    level = search.measure(scales)
    corrected = replace(scales, biases=corrected_biases(graph, regions, scales, statistics))
    search.use_constants_of(corrected)
    reached = search.measure(corrected)
    if reached <= level:
        search.use_constants_of(scales)
        return _Start(graph, regions, statistics, scales, search)
    return _Start(graph, regions, statistics, corrected, search)
