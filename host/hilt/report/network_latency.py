"""A network's latency: the whole inference where one ran, else the sum over its layers.

In words, the measured part and the predicted parts are told apart. It is never a partial sum.
"""

from __future__ import annotations

from dataclasses import dataclass

from hilt.engine.campaign_results import CampaignResult, LayerResult, Source
from hilt.network.latency import latency_text, scaled
from hilt.report.campaign_inference import CampaignInference

_WORDS = {
    Source.MEASURED: "measured",
    Source.TWIN: "predicted by the twin",
    Source.BOUND: "at least, by the roofline bound,",
}
_MARKS = {Source.MEASURED: "", Source.TWIN: "~", Source.BOUND: "≥"}
LEGEND = "~ the fallback schedule by the twin, ≥ the roofline bound: not measured"
"""Says the meaning of the marks of `layer_latency`."""


_ASSUMED = "≈"
ASSUMED_LEGEND = "≈ VTA's part is measured, the processor's assumed"


@dataclass(frozen=True)
class NetworkFigure:
    """A network's latency as every command, screen and report shows it.

    Attributes:
        microseconds: The whole inference, or the sum over the layers.
        mark: The mark of its source; empty if all of it is measured.
        fallback: The same with the fallback schedules; None if there is none to compare.
        whole: Whether it is a whole inference.
        text: It in words.
    """

    microseconds: float
    mark: str
    fallback: float | None
    whole: bool
    text: str

    @property
    def gain(self) -> float | None:
        """The factor by which it is faster than with the fallback schedules."""
        return self.fallback / self.microseconds if self.fallback and self.microseconds else None

    @property
    def legend(self) -> str:
        """The meaning of the mark."""
        return ASSUMED_LEGEND if self.mark == _ASSUMED else LEGEND if self.mark else ""


def network_figure(result: CampaignResult, inference: CampaignInference | None) -> NetworkFigure:
    """Return a campaign's latency of its network: of the inference that it ended with, else of its layers so far."""
    if inference is not None:
        after = inference.after
        mark = _ASSUMED if after.assumed else ""
        return NetworkFigure(after.total, mark, inference.before.total, True, latency_text(after))
    estimate = result.estimate.microseconds
    fallback = estimate * result.gain if result.gain is not None else None
    return NetworkFigure(estimate, network_mark(result), fallback, False, latency_words(result))


def latency_words(result: CampaignResult) -> str:
    """Return the network's latency, as in `about 1,091.80 ms in all its layers: 347.51 ms measured in 6, ...`."""
    estimate, layers = result.estimate, len(result.layers)
    if estimate.layers < layers:
        return f"no latency of the network yet: {layers - estimate.layers} of its {layers} layers have no run"
    where = "in its layers for VTA" if result.network.unsupported else "in all its layers"
    if estimate.complete:
        return f"{scaled(estimate.microseconds)} {where} on the board"
    parts = [
        f"{scaled(estimate.microseconds_by[source])} {words} in {estimate.layers_by[source]}"
        for source, words in _WORDS.items()
        if source in estimate.layers_by
    ]
    return f"about {scaled(estimate.microseconds)} {where}: {', '.join(parts)}"


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
