"""The order of a campaign's trials is the one in which they were asked for, whatever the host's clock did meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hilt.campaign.budget import Budget
from hilt.campaign.design import make_campaign, make_runs
from hilt.engine.campaign_results import load_result
from hilt.engine.run_spec import RunSpec
from hilt.report.facts import Facts, facts_of_campaign
from hilt.schedule.onnx_model import Layer, Network
from hilt.store import Run, Slice, Store, Trial, database_path
from hilt.store.campaigns import record_slice
from hilt.trial import Outcome, Verification
from tests.unit.engine.table import TableBoards

NETWORK = Network("net", (Layer("resnet18.C5", nodes=["a", "b"]), Layer("resnet18.C10", nodes=["c"])), {})
C5, C10 = (layer.workload for layer in NETWORK.layers)
SLICES = [Slice(0, C10, 2, 0.0), Slice(1, C5, 3, 9.0), Slice(2, C10, 1, 4.0), Slice(3, C5, 2, 1.0)]
ASKED = [(C5, None), (C5, 900.0), (C10, 70.0), (C10, 60.0), (C10, None), (C5, 950.0), (C5, 800.0), (C5, None),
         (C10, 50.0), (C5, 700.0)]  # fmt: skip
"""Layer and microseconds, in order: the second of C5 is its first that is right, and the last slice is not done yet."""


def recorded(home: Path, now: Callable[[], float]) -> Facts:
    settings = RunSpec(workload="net.onnx", board="table:plain", tuner="hilt", trials=1, seed=7)
    campaign = make_campaign(NETWORK, settings, Budget(trials=30))
    runs = {run.workload: run for run in make_runs(campaign, TableBoards().describe_board("table:plain"))}
    with Store(database_path(home), now=now) as store:
        store.create_campaign(campaign)
        for run in runs.values():
            store.create_run(run)
        for each in SLICES:
            record_slice(store, campaign.uuid, each)
        asked = dict.fromkeys(runs, 0)
        for name, latency in ASKED:
            store.record(runs[name].uuid, [trial(runs[name], asked[name], latency)])
            asked[name] += 1
        return facts_of_campaign(store, load_result(store, campaign))


def trial(run: Run, ordinal: int, latency: float | None) -> Trial:
    if latency is None:
        return Trial(ordinal, ordinal, {}, Outcome.TIMEOUT, "late", board="table:plain")
    seen = Verification(run.output_elements, 0)
    return Trial(
        ordinal, ordinal, {}, Outcome.OK, "", int(latency * 100), latency, (latency,), seen, run.output_elements, "b"
    )


@pytest.mark.parametrize("now", [iter(range(100)).__next__, iter(range(100, 0, -1)).__next__, lambda: 5.0])
def test_the_networks_curve_is_in_the_order_of_the_trials(tmp_path: Path, now: Callable[[], float]) -> None:
    facts = recorded(tmp_path, now)
    assert facts.total_curve == [
        (3, 2 * 900.0 + 70.0), (4, 2 * 900.0 + 60.0), (5, 2 * 900.0 + 60.0), (6, 2 * 900.0 + 60.0),
        (7, 2 * 800.0 + 60.0), (8, 2 * 800.0 + 60.0), (9, 2 * 800.0 + 50.0), (10, 2 * 700.0 + 50.0),
    ]  # fmt: skip
    row = replace(facts, slices=())  # `hilt tune` of a model: layer after layer
    assert row.total_curve == [(7, 2 * 700.0 + 70.0), (8, 2 * 700.0 + 60.0), (9, 2 * 700.0 + 60.0), (10, 1450.0)]
