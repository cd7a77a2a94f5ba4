"""The page of an exploration: latency and throughput over area with the Pareto front, and the table of all designs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from hilt.explore.area import check_error, figure_count, model_error, over
from hilt.explore.exploration import Evaluation, front
from hilt.report.interactive import COLOURS, Plot, html_table, page

_MEASURES = (("lut", "look-up tables"), ("bram36", "block RAM, 36 Kb"), ("dsp", "DSP slices"))


def exploration_page(
    network: str,
    evaluations: Sequence[Evaluation],
    refused: Sequence[str],
    part: str | None,
    verified: Sequence[str],
    base: int | None,
) -> str:
    """Return the page as HTML. Raises MissingLibraryError without plotly.

    Args:
        network: Its name.
        evaluations: All designs.
        refused: A line for each reason why combinations were refused.
        part: The front's designs fit it; None for any.
        verified: A line for each design that ran on the RTL.
        base: The place of the sweep's base, which table and plots mark; None if it is not among the designs.
    """
    on_front = front(evaluations, part)
    sections = [f"<p>{escape(summary(network, evaluations, on_front))} {escape(area_statement(evaluations))}</p>"]
    sections += [_plot(name, words, evaluations, on_front, part, base).html() for name, words in _MEASURES]
    sections.append("<h2>Pareto front</h2>" + _table(evaluations, on_front, base))
    if verified:
        sections.append("<h2>On the RTL</h2><ul>" + "".join(f"<li>{escape(line)}</li>" for line in verified) + "</ul>")
    others = [place for place in range(len(evaluations)) if place not in on_front]
    others.sort(key=lambda place: evaluations[place].microseconds)
    sections.append("<h2>Other designs</h2>" + _table(evaluations, others, base))
    if refused:
        lines = "".join(f"<li>{escape(line)}</li>" for line in refused)
        sections.append(f"<h2>Refused combinations</h2><ul>{lines}</ul>")
    return page(f"Designs for {network}", sections)


HEADER = ("design", "latency ms", "VTA ms", "images/s", "LUT", "FF", "DSP", "BRAM36", "note")


def _table(evaluations: Sequence[Evaluation], places: Sequence[int], base: int | None) -> str:
    return html_table(HEADER, [_row(evaluations[place], place == base) for place in places])


def title(evaluation: Evaluation, is_base: bool) -> str:
    """Return a design's title, marked where it is the sweep's base."""
    return f"{evaluation.design.title} (base)" if is_base else evaluation.design.title


def _row(evaluation: Evaluation, is_base: bool) -> tuple[str, ...]:
    """Return a design's cells under HEADER."""
    area = evaluation.area
    return (
        title(evaluation, is_base),
        latency_text(evaluation),
        vta_text(evaluation),
        throughput_text(evaluation),
        f"{area.lut:,.0f}",
        f"{area.ff:,.0f}",
        f"{area.dsp:,.0f}",
        f"{area.bram36:,.1f}",
        evaluation.inference.reason,
    )


def latency_text(evaluation: Evaluation) -> str:
    """Return milliseconds from a batch's first input to its last output, or a dash where a layer has no schedule."""
    return "-" if math.isinf(evaluation.microseconds) else f"{evaluation.microseconds / 1e3:,.3f}"


def vta_text(evaluation: Evaluation) -> str:
    """Return VTA's own milliseconds of a pass, or a dash where a layer has no schedule."""
    return "-" if math.isinf(evaluation.microseconds) else f"{evaluation.inference.latency.vta / 1e3:,.3f}"


def throughput_text(evaluation: Evaluation) -> str:
    """Return images a second, or a dash where a layer has no schedule."""
    return f"{evaluation.images_a_second:,.1f}" if evaluation.images_a_second else "-"


def summary(network: str, evaluations: Sequence[Evaluation], on_front: Sequence[int]) -> str:
    """Return a sentence: how many designs, how many on the front, how many without a schedule."""
    without = sum(bool(evaluation.inference.reason) for evaluation in evaluations)
    text = (
        f"{len(evaluations)} designs for {network}, {len(on_front)} on the Pareto front of latency, throughput, "
        "LUT, DSP and BRAM"
    )
    return f"{text}, {without} without a schedule for a layer." if without else f"{text}."


def area_statement(evaluations: Sequence[Evaluation]) -> str:
    """Return the sentence that says where latency and area come from."""
    method = evaluations[0].area.method
    latency = (
        "Latency: the whole inference as hilt compile makes it, VTA by the twin at the clock that the set gives, the "
        "processor assumed."
        if evaluations[0].inference.whole
        else "Latency: VTA's part alone, the twin's cycles of the best schedule of each layer at the clock of the set."
    )
    if method == "yosys":
        return f"{latency} Area: Yosys, 7 series."
    fitted = f"Area: a model fitted to {figure_count()} Yosys syntheses of the RTL"
    checked = f"where it was not fitted: {_percents(check_error())}"
    return f"{latency} {fitted}; its largest errors there: {_percents(model_error())}; {checked}."


def _percents(errors: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {100 * error:.0f} %" for name, error in errors.items())


def _plot(
    name: str,
    words: str,
    evaluations: Sequence[Evaluation],
    on_front: Sequence[int],
    part: str | None,
    base: int | None,
) -> Plot:
    others = [
        place
        for place, evaluation in enumerate(evaluations)
        if not evaluation.inference.reason and place not in on_front
    ]
    too_large = [place for place in others if part and over(evaluations[place].area, part)]
    fitting = [place for place in others if place not in too_large]
    traces = [
        _points(evaluations, fitting, name, "other designs", "#9aa3ad", 7),
        _points(evaluations, too_large, name, f"too large for {part}", COLOURS[4], 7, symbol="x") if part else None,
        _points(evaluations, on_front, name, "Pareto front", COLOURS[0], 10),
        _points(evaluations, [base], name, "base", COLOURS[1], 16, symbol="circle-open")
        if base is not None and not evaluations[base].inference.reason
        else None,
    ]
    layout: dict[str, Any] = {
        "xaxis": {"title": {"text": words}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": "latency, ms"}, "type": "log"},
    }
    caption = f"Latency over {words}. Hover shows the parameters."
    return Plot(f"front-{name}", caption, [trace for trace in traces if trace is not None], layout)


def _points(
    evaluations: Sequence[Evaluation], places: Sequence[int], measure: str, name: str, colour: str, size: int,
    symbol: str = "circle",
) -> dict[str, Any]:  # fmt: skip
    chosen = [evaluations[place] for place in places]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [getattr(evaluation.area, measure) for evaluation in chosen],
        "y": [evaluation.microseconds / 1e3 for evaluation in chosen],
        "text": [escape(_hover(evaluation)).replace("\n", "<br>") for evaluation in chosen],
        "hoverinfo": "text",
        "cliponaxis": False,
        "marker": {"color": colour, "size": size, "symbol": symbol},
    }


def _hover(evaluation: Evaluation) -> str:
    area, design = evaluation.area, evaluation.design
    lines = [
        design.title,
        f"{latency_text(evaluation)} ms (VTA {vta_text(evaluation)}), {throughput_text(evaluation)} images/s, "
        f"{evaluation.inference.images} at once",
    ]
    lines.append(f"{design.parameters.name}, bus {design.accelerator.bus}, {design.clock_hz / 1e6:g} MHz")
    lines.append(f"LUT {area.lut:,.0f}, FF {area.ff:,.0f}, DSP {area.dsp:,.0f}, BRAM {area.bram36:,.1f}")
    return "\n".join(lines)
