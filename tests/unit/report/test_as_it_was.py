"""The words of a campaign's pages and the facts of its pictures, beside those that were accepted.

Where they are meant to change: `build/host-env/bin/pytest tests/unit/report/test_as_it_was.py --snapshot-update`.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from syrupy.assertion import SnapshotAssertion

from hilt.engine.campaign_results import load_result
from hilt.report.comparison import compare, comparison_page
from hilt.report.explanation import explain
from hilt.report.explanation_text import explanation_text, explanation_values
from hilt.report.facts import Facts, facts_of_campaign
from hilt.report.html import render
from hilt.report.interactive import Plot
from hilt.report.network_page import network_section
from hilt.report.perfetto import stage_timeline
from hilt.report.plots import pictures
from hilt.report.run_plots import comparison_plot, coordinates_plot, groups_of, importance_plot, trial_plot
from hilt.report.trials_file import write_csv
from hilt.run_choices import SpaceName
from hilt.schedule import load_workload, lower, space_for, verdicts
from hilt.simulator.device import MemoryModel
from hilt.simulator.twin import Twin
from hilt.store import Store, database_path
from hilt.vta.accelerator import Accelerator
from hilt.vta.parameters import load_parameters

from .campaign_store import make
from .test_one_figure import keep
from .views import long_view

_HIDDEN = re.compile(r"<(script|style|svg)\b.*?</\1>", re.DOTALL)
_VOLATILE = re.compile(r"\b[0-9a-f]{8,64}\b|20\d\d-\d\d-\d\d( \d\d:\d\d(:\d\d)?)?|(?<=hilt )\d+\.\d+\.\S*")


@pytest.fixture
def facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Facts]:
    campaign, _ = make(tmp_path)
    keep(tmp_path, campaign)
    with Store(database_path(tmp_path)) as store, monkeypatch.context() as zone:
        zone.setenv("TZ", "UTC")
        time.tzset()
        yield facts_of_campaign(store, load_result(store, campaign))
    time.tzset()


def words(page: str) -> str:
    """Return a page's words, a line for each row or block."""
    text = re.sub(r"</(tr|p|h\d|li|dt|dd|div|pre|figcaption)>", "\n", _HIDDEN.sub("", page))
    lines = (" ".join(re.sub(r"<[^>]*>", " ", line).split()) for line in text.splitlines())
    return _VOLATILE.sub("*", "\n".join(line for line in lines if line))


def test_words(facts: Facts, snapshot: SnapshotAssertion) -> None:
    assert words(render(facts, static=True)) == snapshot(name="report")
    compared = comparison_page(facts.runs, (), compare(facts.runs))
    bars = "\n".join(re.findall(r'class="difference"><i style="([^"]*)"', compared))
    assert words(compared) + bars == snapshot(name="comparison")
    styles = re.findall(r'style="([^"]*)"', network_section(long_view(6), static=True))
    assert words(network_section(long_view(6))) + "\n".join(styles) == snapshot(name="network")


def test_explanations(snapshot: SnapshotAssertion) -> None:
    """A row program, a schedule of the space that fits, and one that does not."""
    accelerator, memory = Accelerator.for_parameters(load_parameters("pynq")), MemoryModel(32, 16)
    lines: list[str] = []
    for layer, kind, wanted in (
        ("conv2d:n=1,ci=32,h=8,w=8,co=32,k=3x3,s=1x1,p=1x1", SpaceName.ROWS, True),
        ("conv2d:n=1,ci=64,h=6,w=10,co=32,k=3x1,s=2x1,p=1x0", SpaceName.AUTOTVM, True),
        ("resnet18.C2", SpaceName.AUTOTVM, False),
        ("dense:n=1,ci=64,co=48", SpaceName.AUTOTVM, True),
    ):
        workload = load_workload(layer)
        space = space_for(workload, accelerator, kind=kind)
        fits = verdicts(workload, accelerator, space.columns(range(len(space)))) == 0
        index = int(np.flatnonzero(fits == wanted)[-1])
        explained = explain(workload, space, index, accelerator, memory)
        lines.append(explanation_text(explained, assembly=len(lines) == 0))
        lines.append(json.dumps(explanation_values(explained)))
        if explained.prediction is not None:
            lines += [" ".join(f"{share:.3f}" for share in row) for row in explained.prediction.occupation]
    assert "\n\n".join(lines) == snapshot


def test_files(facts: Facts, snapshot: SnapshotAssertion, tmp_path: Path) -> None:
    at_once = [replace(run, trials=[replace(trial, recorded_at=5.0) for trial in run.trials]) for run in facts.runs]
    write_csv(tmp_path / "trials.csv", at_once)
    assert _VOLATILE.sub("*", (tmp_path / "trials.csv").read_text()) == snapshot(name="trials")
    accelerator, memory = Accelerator.for_parameters(load_parameters("pynq")), MemoryModel(read_latency=32)
    workload = load_workload("conv2d:n=1,ci=32,h=4,w=4,co=32,k=1x1,s=1x1,p=0x0")
    space = space_for(workload, accelerator, kind=SpaceName.AUTOTVM)
    fits = np.flatnonzero(verdicts(workload, accelerator, space.columns(range(len(space)))) == 0)
    program = lower(workload, space.knobs_at(int(fits[-1])), accelerator)
    spans = Twin(accelerator).timeline(program, memory)
    trace = stage_timeline("small", program.instructions, accelerator, spans, 77)
    assert "\n".join(map(str, trace["traceEvents"])) == snapshot(name="trace")


def test_pictures(facts: Facts, snapshot: SnapshotAssertion) -> None:
    lines = []
    for name, description, figure in pictures(facts):
        lines.append(f"{name}: {description}; {figure.get_size_inches().round(2).tolist()} inches")
        for axes in figure.axes:
            lines += _axes(axes)
    assert _VOLATILE.sub("*", "\n".join(lines)) == snapshot


def _axes(axes: Axes) -> Iterator[str]:
    yield f"  {axes.get_xlabel()} by {axes.get_ylabel()}, {axes.get_xscale()} by {axes.get_yscale()}"
    yield f"  from {_digits([*axes.get_xlim(), *axes.get_ylim()])}"
    for line in axes.lines:
        style = f"{line.get_drawstyle()} {line.get_color()} {line.get_linewidth()} {line.get_alpha()}"
        yield f"  line {line.get_label()} {style}: {_digits(line.get_xydata())}"
    for each in axes.collections:
        if isinstance(each, PathCollection):
            yield f"  points {each.get_label()}: {_digits(each.get_offsets())}"
    for bar in axes.patches:
        yield f"  bar {_digits(bar.get_extents().bounds[2:])}"
    for image in axes.images:
        yield f"  image {np.shape(image.get_array())}, {np.asarray(image.get_array(), dtype=float).sum():.5g} in all"
    yield f"  words {[text.get_text() for text in axes.texts]}"


def _digits(values: Any) -> str:
    found = np.asarray(values, dtype=float).ravel()
    shown = " ".join(f"{value:.4g}" for value in found[:16])
    return (
        shown if len(found) <= 16 else f"{shown} ... {len(found)} numbers, {found[np.isfinite(found)].sum():.5g} in all"
    )


def test_plots(facts: Facts, snapshot: SnapshotAssertion) -> None:
    run = facts.runs[0]
    plots = [trial_plot(run, "t"), importance_plot(run, "i"), coordinates_plot(run, "c")]
    plots.append(comparison_plot(groups_of(facts.runs), "compared"))
    assert [_plot(plot) for plot in plots] == snapshot


def _plot(plot: Plot | None) -> Any:
    if plot is None:
        return None
    values = json.loads(json.dumps([plot.traces, plot.layout]), parse_float=lambda text: f"{float(text):.6g}")
    return [plot.caption, values]
