"""Runs side by side: groups over seeds, ratios, importance, and pages that need no network and run no user's text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hilt.cli.main import run as hilt
from hilt.engine.campaign_results import LayerResult
from hilt.engine.run_files import RunFiles
from hilt.report.campaign_inference import INFERENCE
from hilt.report.comparison import compare, compare_views, comparison_page
from hilt.report.facts import RunFacts
from hilt.report.run_plots import comparison_plot, coordinates_plot, curve, groups_of, importance, trial_plot
from hilt.schedule.onnx_model import Layer
from hilt.store import RunState, Store, Trial, database_path
from hilt.trial import Outcome
from tests.unit.store.examples import run, trial

from .campaign_store import make
from .test_one_figure import LATENCY, keep
from .views import small_view


def facts(uuid: str, latencies: Sequence[float | None], **changes: object) -> RunFacts:
    """A run whose trials took these microseconds; None is a trial that was rejected."""
    record = run(uuid, **changes)
    trials = [
        Trial(place, place, {"tile_h": 1}, Outcome.REJECTED, "inp_overflow")
        if latency is None
        else trial(place, place, latency)
        for place, latency in enumerate(latencies)
    ]
    return RunFacts(record, trials, None, {}, 0.0, LayerResult(Layer(record.workload, nodes=["n"]), record))


def test_runs_of_other_seeds_are_one_group_and_others_are_labelled_by_their_difference() -> None:
    runs = [facts("a" * 32, [9, 5], seed=0), facts("b" * 32, [8, 3], seed=1), facts("c" * 32, [7], tuner="ga")]
    first, second = groups_of(runs)
    assert [len(first.runs), len(second.runs)] == [2, 1]
    assert (first.label, second.label) == (runs[0].run.tuner, "ga")


def test_campaigns_that_differ_in_nothing_else_are_compared_with_each_other() -> None:
    runs = [facts(name * 32, [took], campaign=of * 32) for name, took, of in (("a", 4, "d"), ("b", 6, "e"))]
    assert [(group.label, len(group.runs)) for group in groups_of(runs)] == [("d" * 8, 1), ("e" * 8, 1)]
    assert [(group.ratio, group.seeds) for group in compare(runs)] == [(1, (1,)), (1.5, (1,))]
    again = [facts("a" * 32, [4]), facts("b" * 32, [6])]
    page = comparison_page(again)
    assert '<td data-label="seeds">1</td>' in page, "two runs of one seed are of one seed"


def test_the_ratio_is_of_medians_to_the_first_group() -> None:
    runs = [facts("a" * 32, [9, 4], seed=0), facts("b" * 32, [8, 6], seed=1), facts("c" * 32, [None, 10], tuner="ga")]
    first, second = compare(runs)
    assert (first.median, first.least, first.largest, first.ratio) == (5, 4, 6, 1)
    assert (second.median, second.ratio, second.valid_share) == (10, 2, 0.5)


def test_a_group_without_a_right_trial_has_no_latency_and_the_first_that_has_one_is_the_measure() -> None:
    runs = [
        facts("a" * 32, [None, None], tuner="random"), facts("b" * 32, [], tuner="sa"),
        facts("c" * 32, [9, 8, 12], tuner="ga"), facts("d" * 32, [16, None, None, None], tuner="hilt"),
    ]  # fmt: skip
    failed, empty, first, second = compare(runs)
    for group, trials in ((failed, 2), (empty, 0)):
        assert (group.median, group.least, group.largest, group.ratio, group.valid_share) == (None,) * 4 + (0.0,)
        assert group.trials == trials
    assert (first.median, first.ratio, first.trials, first.valid_share) == (8, 1, 3, 1.0)
    assert (second.median, second.ratio, second.trials, second.valid_share) == (16, 2, 4, 0.25)
    assert (second.runs, second.seeds) == (("d" * 32,), (1,))


def test_a_curve_is_steps_and_a_band_spans_the_seeds() -> None:
    runs = [facts("a" * 32, [None, 8, 9, 4], seed=0), facts("b" * 32, [6, 7, 5, 5], seed=1)]
    assert np.array_equal(curve(runs[0], 5), [np.nan, 8, 8, 4, 4], equal_nan=True)
    high, low, median = comparison_plot(groups_of(runs), "x").traces
    assert (low["x"], low["y"], high["y"], median["y"]) == ([1, 2, 3], [6, 5, 4], [8, 8, 5], [7, 6.5, 4.5])
    assert median["line"]["shape"] == "hv"


def test_the_knob_that_decides_is_the_important_one() -> None:
    generator = np.random.default_rng(3)
    trials = [
        replace(
            trial(place, place, float(100 * 2 ** (place % 2) + generator.random())),
            knobs={"decides": place % 2, "idle": place % 3},
        )
        for place in range(40)
    ]
    record = run("a" * 32)
    shares = importance(RunFacts(record, trials, None, {}, 0.0, LayerResult(Layer("w", nodes=["n"]), record)))
    assert next(iter(shares)) == "decides" and shares["decides"] > 0.99 and shares["idle"] < 0.2
    assert importance(facts("b" * 32, [1, 2, 3])) == {}


def test_the_importance_is_epsilon_squared_of_the_log_latency() -> None:
    """Eight trials: 40 squares in all and 8 within the knob's two values, with 7 and 6 degrees of freedom."""
    record = run("a" * 32)

    def shares(logs: list[float], **knobs: list[int]) -> dict[str, float]:
        trials = [
            replace(trial(place, place, float(np.exp(log))), knobs={name: of[place] for name, of in knobs.items()})
            for place, log in enumerate(logs)
        ]
        return importance(RunFacts(record, trials, None, {}, 0.0, LayerResult(Layer("w", nodes=["n"]), record)))

    half, fixed, own = [1, 1, 2, 2] * 2, [3] * 8, list(range(8))
    found = shares([0, 2, 4, 6] * 2, fixed=fixed, own=own, half=half)
    assert found == {"half": pytest.approx(1 - (8 / 6) / (40 / 7))}
    assert shares([1.0] * 8, half=half) == {}, "nothing varies"
    assert shares([0, 4, 0, 4] * 2, half=half) == {"half": 0.0}, "no less than nothing"


def test_hover_has_the_configuration_and_failures_are_shown() -> None:
    plot = trial_plot(facts("a" * 32, [None, 9, 5]), "p")
    texts = [text for trace in plot.traces for text in trace.get("text", [])]
    assert any("trial 2, configuration 2<br>5.0 µs<br>tile_h=2" in text for text in texts)
    assert any("rejected inp_overflow" in text for text in texts)


def test_a_plot_of_a_layer_that_is_spelled_out_has_its_name_in_the_model() -> None:
    found = facts("a" * 32, [9, 5], workload="conv2d:n=1,ci=16,h=8,w=8,co=16,k=3x3,s=1x1,p=1x1")
    for plot in (trial_plot(found, "p"), coordinates_plot(found, "p")):
        assert plot is not None and " of n" in plot.caption and "conv2d" not in plot.caption


def test_the_page_is_one_file_and_a_users_text_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plotly.offline.get_plotlyjs", lambda: "")
    evil = "</script><script>alert(1)</script>"
    page = comparison_page([facts("a" * 32, [9, 5], tuner=evil), facts("b" * 32, [8], tuner="ga")])
    body = page[page.index("</head>") :]
    assert "alert(1)</script>" not in body and "\\u003c" in body
    assert not re.search(r'(src|href)="(https?:)?//', page)


def test_commands_over_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                               capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with Store(database_path(tmp_path)) as store:
        for uuid, latency, seed in (("a", 9_000.0, 1), ("b", 6_000.0, 2), ("c", 4_500.0, 1)):
            store.create_run(run(uuid * 32, seed=seed, tuner="ga" if uuid == "c" else "random"))
            store.record(uuid * 32, [trial(0, 7, latency)])
            store.set_state(uuid * 32, RunState.FINISHED)
    assert hilt(["compare", "a", "b", "c", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["kind"] == "comparison" and [group["median"] for group in said["groups"]] == [7_500, 4_500]
    assert hilt(["compare", "a", "c"]) == 0
    assert "0.500" in capsys.readouterr().out
    assert hilt(["report", "a", "c"]) == 0 and (tmp_path / "hilt-report-a-c.html").is_file()
    assert hilt(["report", "a", "c", "--csv", "x.csv"]) == 2
    assert "a report of several runs is a page" in capsys.readouterr().err


def test_whole_networks_come_first_and_layers_have_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    campaign, _ = make(tmp_path)
    keep(tmp_path, campaign)
    assert hilt(["compare", campaign.uuid[:8], campaign.uuid[:8], "--html", str(tmp_path / "c.html")]) == 0
    first, _, networks = capsys.readouterr().out.partition("\n")
    assert first.split()[:4] == ["campaign", "network", "board", "µs"] and f"≈{LATENCY.total:,.1f}" in networks
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert page.index("<h2>Networks</h2>") < page.index("<h2>Layers</h2>")
    assert '<td data-label="seeds">1</td>' in page


@pytest.mark.slow
def test_bundles_are_compared_node_by_node() -> None:
    slow, fast = small_view(), small_view()
    for node in fast["nodes"]:
        node["microseconds"] /= 2
    rows = compare_views({"a.hilt": slow, "b.hilt": fast})
    assert [row.ratio for row in rows] == [1.0, 0.5, 1.0, 0.5]
    assert [row.name for row in rows] == ["conv0", "conv0", "conv1", "conv1"]


@pytest.mark.slow
def test_a_campaign_beside_a_bundle_is_compared_by_its_own_bundles_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    campaign, _ = make(tmp_path)
    keep(tmp_path, campaign)
    kept = RunFiles(tmp_path, campaign.uuid).directory / INFERENCE
    slow, fast = small_view(), small_view()
    for node in fast["nodes"]:
        node["microseconds"] /= 2
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"view": slow}))
    monkeypatch.setattr("hilt.cli.compare.view_of", lambda path: fast)
    assert hilt(["compare", campaign.uuid[:8], "b.hilt", "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert [(row["name"], row["label"], row["ratio"]) for row in groups[:2]] == [
        ("conv0", campaign.uuid[:8], 1.0),
        ("conv0", "b.hilt", 0.5),
    ]
    assert hilt(["compare", campaign.uuid[:8], campaign.uuid[:8], "--json"]) == 0
    assert {row["label"] for row in json.loads(capsys.readouterr().out)["groups"]}.isdisjoint({campaign.uuid[:8]})
