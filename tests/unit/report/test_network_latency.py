"""A network's latency: over all layers from the begin, measured and predicted parts apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hilt.cli.network_text import format_total, result_values
from hilt.engine.campaign_results import CampaignResult, load_result
from hilt.report.facts import facts_of_campaign
from hilt.report.html import render
from hilt.report.network_latency import latency_words, layer_latency, layer_share, network_mark
from hilt.store import Store, database_path
from hilt.store.labels import Labels

from .campaign_store import make


@pytest.fixture
def result(tmp_path: Path) -> CampaignResult:
    """Two measured layers: 3 x 4,700.5 us and 1 x 350.75 us."""
    campaign, _ = make(tmp_path)
    with Store(database_path(tmp_path)) as store:
        return load_result(store, campaign)


def partly(result: CampaignResult, predicted: float | None) -> CampaignResult:
    """The same without a measurement of the first layer, whose fallback the twin predicts."""
    first, second = result.layers
    assert first.run is not None
    run = replace(first.run, predicted_microseconds=predicted)
    return replace(result, layers=(replace(first, run=run, best=None, fallback=None), second))


def test_the_sum_is_measured_where_every_layer_is(result: CampaignResult) -> None:
    assert latency_words(result) == "14.45 ms in its layers for VTA on the board"
    assert [layer_latency(each) for each in result.layers] == ["4,700.5", "350.8"]


def test_a_layer_that_is_not_measured_counts_with_the_twins_prediction(result: CampaignResult) -> None:
    half = partly(result, 44_000.0)
    assert latency_words(half) == (
        "about 132.35 ms in its layers for VTA: 350.8 µs measured in 1, 132.00 ms predicted by the twin in 1"
    )
    assert [layer_latency(each) for each in half.layers] == ["~44,000.0", "350.8"]
    assert layer_share(half.layers[0], half) == pytest.approx(132_000 / 132_350.75)


def test_without_a_prediction_the_bound_counts_and_is_marked(result: CampaignResult) -> None:
    half = partly(result, None)
    run = half.layers[0].run
    assert run is not None and layer_latency(half.layers[0]) == f"≥{run.bound_microseconds:,.1f}"
    assert "at least, by the roofline bound, in 1" in latency_words(half)
    assert half.estimate.microseconds == pytest.approx(350.75 + 3 * run.bound_microseconds)
    assert [network_mark(each) for each in (half, partly(result, 44_000.0), result)] == ["≥", "~", ""]


def test_a_layer_without_a_run_leaves_no_sum(result: CampaignResult) -> None:
    first, second = result.layers
    without = replace(result, layers=(replace(first, run=None, best=None, fallback=None), second))
    assert latency_words(without) == "no latency of the network yet: 1 of its 2 layers have no run"
    assert layer_latency(without.layers[0]) == "-"


@pytest.mark.slow
def test_a_report_of_a_part_says_about_and_shows_both_parts(result: CampaignResult, tmp_path: Path) -> None:
    half = partly(result, 44_000.0)
    with Store(database_path(tmp_path)) as store:
        facts = facts_of_campaign(store, half)
    page = render(facts)
    assert "<b>about 132.35 ms</b>" in page and "<b>132.00 ms</b><span>the predicted part" in page
    assert "<b>350.8 µs</b><span>the measured part" in page and "~44,000.0" in page
    assert "tuned, all layers on the board" not in page


def test_a_part_of_a_network_is_never_complete(result: CampaignResult) -> None:
    assert result.network.unsupported and result.estimate.complete
    assert result_values(result, Labels())["estimate"]["complete"] is False
    assert " % of " in format_total(result).split(":")[0]
