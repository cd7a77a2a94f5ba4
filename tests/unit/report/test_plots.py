"""The words in the pictures, and their legibility."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.text import Text

from hilt.engine.campaign_results import load_result
from hilt.report.facts import RunFacts, facts_of_campaign
from hilt.report.plots import _spread, _tick_labels, curve, roofline
from hilt.report.run_plots import trial_plot
from hilt.store import Store, database_path

from .campaign_store import make
from .test_comparison import facts as run_facts


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([100.0, 200.0, 3000.4], ["100", "200", "3,000"]),
        ([12.5, 12.8, 13.1, 13.5], ["12.5", "12.8", "13.1", "13.5"]),
        ([1.0001, 1.0002], ["1.000", "1.000"]),
        ([7.25] * 4, ["7"] * 4),
    ],
)
def test_different_latencies_read_differently(values: list[float], labels: list[str]) -> None:
    assert _tick_labels(values) == labels


@pytest.mark.parametrize("board", ["virtual:pynq", "dataset:pynq"])
def test_the_picture_and_the_interactive_plot_show_the_same_trials(board: str) -> None:
    facts = run_facts("a" * 32, [50.0, None, 40.0, 45.0, 30.0], board=board)
    if facts.recorded:  # a dataset compares no output
        facts = replace(facts, trials=[replace(trial, verification=None) for trial in facts.trials])
    (axes,) = curve(facts).axes
    drawn = {each.get_label(): each for each in (*axes.collections, *axes.lines)}
    traces = {trace["name"]: trace for trace in trial_plot(facts, "p").traces}
    points = next(drawn[name] for name in ("verified", "recorded") if name in drawn).get_offsets().tolist()
    assert points == [list(point) for point in zip(traces["trials"]["x"], traces["trials"]["y"], strict=True)]
    assert len(points) == 4
    for name in ("best so far", "roofline bound"):
        assert list(drawn[name].get_ydata()) == list(traces[name]["y"])
    assert list(drawn["failed"].get_xdata()) == traces["failed"]["x"] == [1]


@given(places=st.lists(st.floats(0.5, 3.0), min_size=1, max_size=60))
def test_words_are_moved_apart_in_their_order_and_stay_on_the_axis(places: list[float]) -> None:
    found = _spread(np.array(places), np.linspace(0.0, 3.5, 60))
    in_order = found[np.argsort(places, kind="stable")]
    assert in_order[0] >= 0 and in_order[-1] <= 3.5
    assert all(after - before > 0.99 * 3.5 * min(0.028, 1 / len(places)) for before, after in pairwise(in_order))


@pytest.mark.slow
def test_layers_of_a_model_that_lie_close_have_names_that_can_be_read(tmp_path: Path) -> None:
    """Neither over each other nor over the legend."""
    campaign, _ = make(tmp_path)
    with Store(database_path(tmp_path)) as store:
        facts = facts_of_campaign(store, load_result(store, campaign))
    runs = tuple(_named(each, f"/layer{place}/conv{place}/Conv") for place in range(6) for each in facts.runs)
    figure: Any = roofline(replace(facts, runs=runs))
    figure.draw_without_rendering()
    words = [each for each in figure.axes[0].texts if each.get_text().endswith("/Conv")]
    assert len(words) == len(runs) == len(figure.axes[0].texts), "no other word may lie on a layer's point"
    assert "peak: 51.2 GOP/s" in figure.axes[0].get_xlabel()
    label = figure.axes[0].xaxis.label.get_window_extent()
    assert figure.bbox.x0 <= label.x0 and label.x1 <= figure.bbox.x1
    boxes = [Text.get_window_extent(each).shrunk(0.9, 1) for each in words]  # without the lines to their points
    for one, other in combinations([*boxes, figure.legends[0].get_window_extent()], 2):
        assert not one.overlaps(other)
    assert all(box.y1 <= figure.bbox.y1 and figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)


def _named(each: RunFacts, node: str) -> RunFacts:
    """Return the run's facts with the name of a layer in a model that someone wrote."""
    layer = replace(each.layer, nodes=[node])
    return replace(each, run=replace(each.run, workload="conv2d:..."), result=replace(each.result, layer=layer))
