"""TVM gets from a log a tuned schedule, the fallback, or nothing; and it is so many times slower."""

from __future__ import annotations

import pytest

from hilt.campaign.tvm_layers import Gets, TvmLayer, summary, tvm_layer
from hilt.cli.main import run as hilt
from hilt.schedule import load_workload, space_for
from hilt.store import Trial
from hilt.trial import Outcome, Verification
from tests.unit.schedule.cases import PYNQ
from tests.unit.store.examples import run

C5 = load_workload("resnet18.C5")
SPACE = space_for(C5, PYNQ)
FOUR = space_for(C5, PYNQ, orders=4)
ELEMENTS = 28 * 28 * 128


def trial(ordinal: int, knobs: dict[str, int], microseconds: float) -> Trial:
    seen = Verification(ELEMENTS, 0)
    return Trial(ordinal, 0, knobs, Outcome.OK, "", 1, microseconds, (microseconds,), seen, ELEMENTS)


def layer(trials: list[Trial], **changes: object) -> TvmLayer:
    best = min(trials, key=lambda each: each.microseconds or 0.0)
    return tvm_layer(run("a" * 32, workload_spec=C5.to_dict(), **changes), trials, best)


def test_a_schedule_that_tvm_runs_is_tuned() -> None:
    found = layer([trial(0, SPACE.knobs_at(869), 4811.0)])
    assert (found.gets, found.tvm_microseconds, found.slower) == (Gets.TUNED, pytest.approx(4811.0), pytest.approx(1))


def test_the_fallback_is_no_tuned_schedule() -> None:
    other_order = {**FOUR.knobs_at(869), "loop_order": 3}
    found = layer([trial(0, FOUR.knobs_at(0), 40_000.0), trial(1, other_order, 4000.0)])
    assert (found.gets, found.slower) == (Gets.FALLBACK, pytest.approx(10))


def test_a_layer_without_a_record_has_the_fallbacks_time() -> None:
    other_order = {**FOUR.knobs_at(869), "loop_order": 3}
    found = layer([trial(0, other_order, 4000.0)])
    assert found.gets is Gets.FALLBACK and found.microseconds == 4000.0


def test_tvm_has_no_template_of_a_grouped_convolution() -> None:
    grouped = load_workload("conv2d:n=1,ci=32,h=8,w=8,co=32,k=3x3,p=1x1,groups=2")
    knobs = space_for(grouped, PYNQ).knobs_at(0)
    best = trial(0, knobs, 10.0)
    found = tvm_layer(run("a" * 32, workload_spec=grouped.to_dict()), [best], best)
    assert found == TvmLayer("resnet18.C5", 1, Gets.NOTHING, None, 10.0)


def test_the_summary_counts_layers_and_adds_their_times() -> None:
    layers = [
        TvmLayer("a", 2, Gets.TUNED, 1000.0, 1000.0),
        TvmLayer("b", 1, Gets.FALLBACK, 8000.0, 2000.0),
        TvmLayer("c", 1, Gets.NOTHING, None, 5.0),
    ]
    assert summary(layers) == (
        "with this log TVM v0.9 has a tuned schedule for 1 of 3 layers, the untuned fallback for 1, no template for 1; "
        "these take 10.00 ms there, 4.00 ms with hilt: 2.50 times as long"
    )


@pytest.mark.parametrize("option", [["--orders", "4"], ["--checks", "off"], ["--space", "ml2"]])
def test_an_option_that_contradicts_for_tvm_is_refused(
    option: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    assert hilt(["tune", "resnet18.C5", "--for", "tvm", *option]) == 2
    assert "has configurations that TVM v0.9 has not" in " ".join(capsys.readouterr().err.split())
