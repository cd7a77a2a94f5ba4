"""The schedules that a campaign's bundle chooses among, and the graph that is kept for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hilt.campaign.network_bundle import _fastest, has_graph, keep_graph, tuned_schedules
from hilt.schedule import convolution, load_workload
from hilt.schedule.onnx_model import Layer, Network
from hilt.store import Campaign, Store, Trial
from tests.unit.store.examples import run, trial

LAYERS = ("resnet18.C5", "resnet18.C2")
CAMPAIGN = Campaign(
    "c" * 32, "net", Network("net", tuple(Layer(name, nodes=["x"]) for name in LAYERS), {}).to_dict(), {}, 1.0, {}
)
SHAPES = {name: convolution(load_workload(name)).schedule_shape for name in LAYERS}


def knobs(number: int) -> dict[str, int]:
    return {"tile_h": number, "tile_w": 7}


def timed(ordinal: int, microseconds: float, number: int) -> Trial:
    return replace(trial(ordinal, ordinal, microseconds), knobs=knobs(number))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store of the campaign: its first layer has these trials, its second none."""
    made = Store(tmp_path / "hilt.db")
    made.create_campaign(CAMPAIGN)
    for place, name in enumerate(LAYERS):
        layer = run(f"{place}" * 32, workload=name, workload_spec=load_workload(name).to_dict(), campaign=CAMPAIGN.uuid)
        made.create_run(layer)
    made.record(
        "0" * 32,
        [
            timed(0, 1040.0, 1),
            timed(1, 1000.0, 2),
            timed(2, 1050.0, 3),
            timed(3, 1050.1, 4),
            timed(4, 1001.0, 2),
            replace(timed(5, 999.0, 5), verification=None),
        ],
    )
    return made


@pytest.mark.parametrize(("most", "numbers"), [(1, [2]), (2, [2, 1]), (9, [2, 1, 3])])
def test_nearly_the_fastest_verified_schedules_are_tried_each_once(store: Store, most: int, numbers: list[int]) -> None:
    """Up to a twentieth slower; one that was measured twice counts once."""
    with store:
        assert tuned_schedules(store, CAMPAIGN, most=most) == {SHAPES[LAYERS[0]]: [knobs(each) for each in numbers]}


def test_before_tuning_a_layer_has_its_first_schedule_alone(store: Store) -> None:
    with store:
        assert tuned_schedules(store, CAMPAIGN, most=3, fallback=True) == {SHAPES[LAYERS[0]]: [knobs(1)]}


def test_of_measured_schedules_the_first_are_the_fastest() -> None:
    measured = {"conv": [(10.0, knobs(1)), (11.0, knobs(2)), (12.0, knobs(3))], "dense": [(5.0, knobs(4))]}
    assert _fastest(measured, 2) == {"conv": [knobs(1), knobs(2)], "dense": [knobs(4)]}


def test_a_model_that_is_not_quantised_gives_no_bundle_and_says_why(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(b"no model")
    assert keep_graph(tmp_path, CAMPAIGN, model) != ""
    assert not has_graph(tmp_path, CAMPAIGN)
