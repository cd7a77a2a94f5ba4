"""Advice for a network's layers: seconds, gains and sums from known cycles, and layers that are left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hilt.silicon import advice as module
from hilt.silicon.advice import (
    RELATIVE_ERROR,
    Advice,
    advice_for_network,
    advice_for_records,
    advice_json,
    advice_lines,
    total_lines,
)
from hilt.silicon.choose import Choice
from hilt.silicon.packed_task import CONV2D, TaskError
from hilt.simulator.builds import shipped_builds
from hilt.simulator.device import DeviceStatus

MACHINE = next(iter(shipped_builds().machines))
PROGRAM: Any = SimpleNamespace(instructions=[0] * 40, sha256="abc")
CHOICE = Choice("tile 7x7", PROGRAM, 200_000.0)
RUNTIME = 2e-3 + shipped_builds().runtime.seconds(40)


def measured(seconds: float | None, **changed: Any) -> Any:
    record = {"mean_seconds": seconds, "seconds": [seconds] if seconds else [], "doubt": None, "below_mac_bound": False}
    task = SimpleNamespace(kind=changed.pop("kind", CONV2D), name="conv of a record")
    return SimpleNamespace(record=SimpleNamespace(task=task, parameters=None, **{**record, **changed}), build=MACHINE)


def test_a_layer_without_a_publication_has_its_prediction_only() -> None:
    layer = Advice("C2", 3, MACHINE, CHOICE, True)
    assert layer.seconds == pytest.approx(2e-3), "200,000 cycles at 100 MHz"
    assert layer.seconds_with_runtime == pytest.approx(RUNTIME) and RUNTIME > 2e-3
    assert layer.gain is None and layer.gain_error is None
    line = advice_lines(layer)
    assert line == f"{'C2':<36} x3 {MACHINE}    2000.0 us, bit-exact: tile 7x7"
    assert "WRONG on the golden model" in advice_lines(replace(layer, exact=False))


def test_a_published_layer_has_its_gain_with_two_deviations() -> None:
    layer = Advice("C2", 1, MACHINE, CHOICE, True, measured(3 * RUNTIME), 500_000.0)
    assert layer.gain == pytest.approx(3.0) and layer.gain_error == pytest.approx(6 * RELATIVE_ERROR)
    assert advice_lines(layer).endswith(
        f"tile 7x7; with TVM's runtime {1e6 * RUNTIME:.1f} us, 3.000 +- {6 * RELATIVE_ERROR:.3f} times as fast as "
        f"the published {3e6 * RUNTIME:.1f} us"
    )
    unknown = replace(layer, published=measured(None))
    assert unknown.gain is None and "TVM" not in advice_lines(unknown)


def test_sums_count_each_layer_as_often_as_the_network_has_it() -> None:
    layers = [Advice("a", 3, MACHINE, CHOICE, True), Advice("b", 1, MACHINE, replace(CHOICE, cycles=1e6), False)]
    alone, called = 3 * 2.0 + 10.0, 1e3 * (4 * (RUNTIME - 2e-3)) + 16.0
    bar = 2 * RELATIVE_ERROR
    assert total_lines(layers) == [
        f"4 layers: {alone:.2f} +- {bar * alone:.2f} ms from start to done, programs ready in memory",
        f"4 layers: {called:.2f} +- {bar * called:.2f} ms if TVM's runtime made each call",
        "bit-exact on the golden model: 3 of 4",
    ]
    told = advice_json(layers)
    assert told["seconds"] == pytest.approx(alone / 1e3) and told["seconds_with_runtime"] == pytest.approx(called / 1e3)
    assert told["all_exact"] is False and told["relative_error"] == RELATIVE_ERROR
    assert advice_json(layers[:1])["all_exact"] is True
    first = told["layers"][0]
    assert (first["name"], first["count"], first["machine"], first["schedule"]) == ("a", 3, MACHINE, "tile 7x7")
    assert (first["instructions"], first["program_sha256"], first["exact"]) == (40, "abc", True)
    assert first["published_seconds"] is first["gain"] is first["gain_error"] is first["published_cycles"] is None
    published = advice_json([Advice("C2", 1, MACHINE, CHOICE, True, measured(1.5), 7.0)])["layers"][0]
    assert (published["published_seconds"], published["published_cycles"]) == (1.5, 7.0)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Play the choice and the golden model: its output, and its status."""
    played = SimpleNamespace(output=np.arange(4), status=DeviceStatus.DONE, layers=[])
    tensors = SimpleNamespace(inputs=None, expected=np.arange(4).reshape(2, 2))

    def chosen(workload: Any, accelerator: Any, machine: Any) -> Choice:
        assert machine == shipped_builds().machines[MACHINE]
        played.layers.append(workload)
        return CHOICE

    monkeypatch.setattr(module, "choose", chosen)
    monkeypatch.setattr(module, "build", lambda accelerator, kind: None)
    monkeypatch.setattr(module, "make_tensors", lambda *arguments: tensors)
    monkeypatch.setattr(
        module, "run_program",
        lambda *arguments: SimpleNamespace(output=played.output, execution=SimpleNamespace(status=played.status)),
    )  # fmt: skip
    return played


def test_each_layer_of_a_network_is_chosen_and_held_against_the_golden_model(runs: SimpleNamespace) -> None:
    layers = list(advice_for_network("resnet18", MACHINE))
    assert len(layers) == len(runs.layers) and all(layer.exact and layer.machine == MACHINE for layer in layers)
    assert layers[0].name == "resnet18.C2" and sum(layer.count for layer in layers) > len(layers)
    runs.output = np.array([0, 1, 2, 4])
    assert not next(iter(advice_for_network("resnet18", MACHINE))).exact, "an element differs"
    runs.output, runs.status = np.arange(4), DeviceStatus.FAULT
    assert not next(iter(advice_for_network("resnet18", MACHINE))).exact, "it did not end"
    with pytest.raises(TaskError, match=f"^machine 'other' is not known; there are .*{MACHINE}"):
        next(iter(advice_for_network("resnet18", "other")))


def test_doubtful_records_and_other_tasks_get_no_advice(runs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    items = [
        measured(1.0),
        measured(1.0, kind="dense"),
        measured(1.0, doubt="two boards"),
        measured(1.0, below_mac_bound=True),
        measured(None),
    ]
    monkeypatch.setattr(module, "read_records", lambda path: SimpleNamespace(records=items))
    monkeypatch.setattr(module, "with_programs", lambda records: (records, []))
    monkeypatch.setattr(module, "workload_of", lambda task: task.name)
    monkeypatch.setattr(module, "public_accelerator", lambda parameters: None)
    monkeypatch.setattr(module, "cycles_of", lambda measured, machines: [123_456.0 for _ in measured])
    (layer,) = advice_for_records(Path("records"))
    assert (layer.name, layer.count, layer.machine) == ("conv of a record", 1, MACHINE)
    assert layer.published is items[0] and layer.published_cycles == 123_456.0 and layer.exact
