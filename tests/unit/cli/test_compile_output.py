"""The output of `hilt compile` for a bundle: the place of each node, shares, sums, and where the schedules are from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hilt.cli import compile as command
from hilt.network.graph import Graph
from tests.unit.network_compile.graphs import Builder

LAYERS = [
    {"name": "first", "cycles": 1000, "macs": 128_000, "schedule": "tuned"},
    {"name": "sum", "cycles": 50, "macs": 0, "schedule": "twin"},
]
MANIFEST: dict[str, Any] = {
    "name": "model",
    "target": {"macs_per_cycle": 256, "clock_hz": 100_000_000},
    "layers": LAYERS,
    "programs": [{"cycles": 1200}, {"cycles": 300}],
    "memory": {"constants": 5000, "activations": 1234},
    "placements": [
        {"node": "first", "op": "Conv", "where": "VTA", "reason": "faster there"},
        {"node": "sum", "op": "Add", "where": "VTA", "reason": ""},
        {"node": "last", "op": "Softmax", "where": "processor", "reason": "VTA has none"},
    ],
}


def _graph() -> Graph:
    """Return a graph with 4,096 multiply-accumulates in `first`, and 1,024 in a layer that is not on VTA."""
    builder = Builder((1, 16, 4, 4))
    made = builder.graph(builder.conv(builder.conv("x", 16, 1), 4, 1))
    first, last = made.nodes
    return replace(made, name="model", nodes=(replace(first, name="first"), replace(last, name="last")))


GRAPH = _graph()


def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **changes: Any) -> list[str]:
    monkeypatch.setenv("COLUMNS", "160")
    compiled: Any = SimpleNamespace(manifest={**MANIFEST, **changes})
    command.print_compiled(compiled, GRAPH)
    return capsys.readouterr().out.splitlines()


def test_each_node_has_a_row_with_its_place_and_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {line.split()[0]: line.split() for line in printed(monkeypatch, capsys) if "(" in line}
    assert rows["first"] == ["first", "(Conv)", "VTA", "1,000", "50.0%", "tuned", "faster", "there"]
    assert rows["sum"] == ["sum", "(Add)", "VTA", "50", "-", "twin"]
    assert rows["last"] == ["last", "(Softmax)", "processor", "VTA", "has", "none"]


def test_sums_are_of_all_programs_and_nodes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = " ".join(" ".join(printed(monkeypatch, capsys)).split())
    assert "model: 2 layers on VTA in 2 programs, 80.0% of the multiply-accumulates; 1,500 cycles = 15.0 µs by" in text
    assert "1 of 2 layers have no tuned schedule" in text
    assert "contiguous memory: 6,234 bytes (5,000 of weights and micro-ops)" in text


def test_a_bundle_whose_layers_are_all_tuned_has_no_advice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no tuned schedule" not in " ".join(printed(monkeypatch, capsys, layers=LAYERS[:1]))


def test_a_network_without_multiplications_has_no_share_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    graph: Any = SimpleNamespace(nodes=[], macs=None)
    assert " 0.0% of the multiply-accumulates" in command._sums({**MANIFEST, "layers": []}, graph)[0]


def test_schedules_come_from_a_file_or_from_a_campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "schedule.json"
    file.touch()
    monkeypatch.setattr("hilt.report.schedule_file.read_schedule", lambda path: {"layer": {"tile": path.name}})
    monkeypatch.setattr("hilt.schedule.convolution", lambda layer: SimpleNamespace(schedule_shape=f"shape of {layer}"))
    monkeypatch.setattr(command, "schedules_of", lambda source: f"of campaign {source}")
    assert command._tuned(str(file)) == {"shape of layer": [{"tile": "schedule.json"}]}  # type: ignore[comparison-overlap]
    assert command._tuned("last") == "of campaign last"  # type: ignore[comparison-overlap]
