"""A network's latency before, while and after its layers are measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.campaign.fallback import fallback_candidates
from hilt.campaign.layer import predicted_microseconds
from hilt.cli.network_text import format_total, result_values
from hilt.cli.progress import format_network
from hilt.engine.campaign_results import Source, load_result
from hilt.engine.events import NetworkUpdated
from hilt.schedule import bound_cycles, load_workload
from hilt.schedule.onnx_model import Layer, Network
from hilt.store import Campaign, Store
from hilt.store.campaigns import set_prediction
from hilt.store.labels import Labels
from hilt.tune import TuningProblem
from hilt.vta.accelerator import Accelerator, IsaRevision, load_parameters
from tests.unit.store.examples import run, trial

LAYERS = ("resnet18.C5", "resnet18.C2", "resnet18.C8")
NETWORK = Network(
    "net", tuple(Layer(name, nodes=["x"] * count) for name, count in zip(LAYERS, (1, 2, 3), strict=True)), {}
)


def test_measured_and_predicted_parts_are_told_apart(tmp_path: Path) -> None:
    with Store(tmp_path / "hilt.db") as store:
        campaign = Campaign("c" * 32, "net", NETWORK.to_dict(), {}, 1.0, {"trials": 60})
        store.create_campaign(campaign)
        runs = [run(f"{place}" * 32, workload=name, campaign=campaign.uuid) for place, name in enumerate(LAYERS)]
        for layer in runs:
            store.create_run(layer)
        bound = runs[0].bound_microseconds
        first = load_result(store, campaign)
        assert dict(first.estimate.layers_by) == {Source.BOUND: 3}
        assert first.estimate.microseconds == pytest.approx(6 * bound) == first.estimate.predicted_microseconds
        assert result_values(first, Labels())["microseconds"] is None, "a partial sum is not the network's latency"

        set_prediction(store, runs[1].uuid, 10_000.0)
        store.record(runs[0].uuid, [trial(0, 0, 7000.0)])
        result = load_result(store, campaign)
        estimate = result.estimate
        assert dict(estimate.microseconds_by) == {
            Source.MEASURED: 7000.0,
            Source.TWIN: 20_000.0,
            Source.BOUND: pytest.approx(3 * bound),
        }
        assert estimate.microseconds == pytest.approx(27_000.0 + 3 * bound) and not estimate.complete
        text = format_total(result)
        assert text.startswith("net: about ") and "7,000.0 µs measured in 1" in text
        assert "20.00 ms predicted by the twin in 1" in text and "at least, by the roofline bound, in 1" in text

        for layer in runs[1:]:
            store.record(layer.uuid, [trial(0, 0, 8000.0)])
        done = load_result(store, campaign)
        assert done.estimate.complete and done.estimate.predicted_microseconds == 0.0
        assert result_values(done, Labels())["microseconds"] == done.estimate.microseconds == 7000.0 + 5 * 8000.0
        assert "about" not in format_total(done)


def test_the_fallback_is_predicted_by_the_first_candidate_that_ends() -> None:
    accelerator = Accelerator(load_parameters("pynq"), IsaRevision.A, clock_hz=100_000_000)
    problem = TuningProblem.of(load_workload("conv2d:n=1,ci=16,h=8,w=8,co=16,k=3x3,s=1x1,p=1x1"), accelerator)
    candidates = fallback_candidates(problem)
    predicted = predicted_microseconds(problem, candidates, 100_000_000)
    assert predicted is not None and predicted >= bound_cycles(problem.workload, accelerator) / 100
    assert predicted_microseconds(problem, candidates[:1], 50_000_000) == 2 * predicted
    rejected = [index for index in range(len(problem.space)) if not problem.compiles[index]]
    assert predicted_microseconds(problem, [rejected[0], candidates[0]], 100_000_000) == predicted
    assert predicted_microseconds(problem, rejected[:3], 100_000_000) is None


@pytest.mark.parametrize(
    ("update", "text"),
    [
        (
            NetworkUpdated("C4", None, 68_000.0, 1000.0, 3, 10, None),
            "C4 not measured yet; network about 68.00 ms (3 of 10 layers measured, the others predicted)",
        ),
        (
            NetworkUpdated("C4", 812.0, 68_000.0, 68_000.0, 10, 10, 2.5),
            "C4 812.0 µs; network 68.00 ms, 2.50 times as fast as the fallback",
        ),
    ],
)
def test_a_progress_line_has_layer_latency_and_gain(update: NetworkUpdated, text: str) -> None:
    assert format_network(update) == text
