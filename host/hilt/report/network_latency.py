"""A network's latency in words: the measured part and the predicted parts told apart. It is never a partial sum."""

from __future__ import annotations

from hilt.engine.campaign_results import CampaignResult, LayerResult, Source

_WORDS = {
    Source.MEASURED: "measured",
    Source.TWIN: "predicted by the twin",
    Source.BOUND: "at least, by the roofline bound,",
}
_MARKS = {Source.MEASURED: "", Source.TWIN: "~", Source.BOUND: "≥"}
LEGEND = "~ the fallback schedule by the twin, ≥ the roofline bound: not measured"
"""Says the meaning of the marks of `layer_latency`."""


def scaled_latency(microseconds: float) -> str:
    """Return a latency in the unit that fits, as in `812.3 µs` or `68.03 ms`."""
    return f"{microseconds:,.1f} µs" if microseconds < 10_000 else f"{microseconds / 1e3:,.2f} ms"


def latency_words(result: CampaignResult) -> str:
    """Return the network's latency, as in `about 1,091.80 ms in all its layers: 347.51 ms measured in 6, ...`."""
    estimate, layers = result.estimate, len(result.layers)
    if estimate.layers < layers:
        return f"no latency of the network yet: {layers - estimate.layers} of its {layers} layers have no run"
    where = "in its layers for VTA" if result.network.unsupported else "in all its layers"
    if estimate.complete:
        return f"{scaled_latency(estimate.microseconds)} {where} on the board"
    parts = [
        f"{scaled_latency(estimate.microseconds_by[source])} {words} in {estimate.layers_by[source]}"
        for source, words in _WORDS.items()
        if source in estimate.layers_by
    ]
    return f"about {scaled_latency(estimate.microseconds)} {where}: {', '.join(parts)}"


def network_mark(result: CampaignResult) -> str:
    """Return the mark of the network's latency: of its parts, that which is known least."""
    parts = result.estimate.layers_by
    return next((_MARKS[source] for source in (Source.BOUND, Source.TWIN) if source in parts), "")


def layer_latency(each: LayerResult) -> str:
    """Return the latency of one instance with a mark for its source, as in `~4,618.6`; a dash without a run."""
    if each.estimate is None:
        return "-"
    source, microseconds = each.estimate
    return f"{_MARKS[source]}{microseconds / each.layer.count:,.1f}"


def layer_share(each: LayerResult, result: CampaignResult) -> float | None:
    """Return the layer's share of the network's estimated latency, from 0 to 1; None without a run."""
    total = result.estimate.microseconds
    return each.estimate[1] / total if each.estimate is not None and total else None
