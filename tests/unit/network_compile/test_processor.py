"""The processor's side of the placement: the speeds that were measured decide, and both times are the reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hilt.network.compile import compile_network
from hilt.network.kept_speed import keep_speed, kept_speed
from hilt.network.processor import ASSUMED, ProcessorSpeed
from hilt.network.processor_speed import timed_network
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt.network.verify import compare
from hilt_runtime import Network, read_bundle

from .graphs import Builder, target

FAST = ProcessorSpeed(1e-9, 1e15, 1e15, "measured on desk")


def test_a_faster_processor_gets_the_node_and_both_times_are_the_reason() -> None:
    builder = Builder((1, 16, 8, 8))
    graph = builder.graph(builder.conv("x", 16))
    (slow,) = compile_network(graph, target()).placements
    assert slow.on_vta and slow.reason.startswith("VTA takes ") and "(assumed of a Cortex-A9)" in slow.reason
    compiled = compile_network(graph, replace(target(), processor=FAST))
    (fast,) = compiled.placements
    assert not fast.on_vta and "(measured on desk), VTA" in fast.reason
    assert compiled.manifest["target"]["processor"]["source"] == "measured on desk"


def test_a_measured_speed_is_kept_for_a_boards_every_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    assert kept_speed("virtual:pynq") == ASSUMED
    keep_speed("virtual:pynq@desk", FAST)
    assert kept_speed("virtual:pynq") == FAST and kept_speed("virtual:zcu104") == ASSUMED
    (path,) = (tmp_path / "processors").iterdir()
    path.write_text("{}")
    assert kept_speed("virtual:pynq") == ASSUMED


def test_the_network_that_is_timed_runs_on_the_processor_alone() -> None:
    graph, aim = timed_network(), target()
    compiled = compile_network(graph, aim, on_processor=True)
    builder = Builder((1, 1, 1, 1))
    data = {name: builder.random.integers(-128, 128, graph.tensors[name].shape).astype("int8") for name in graph.inputs}
    with SimulatedVta(aim) as device:
        inference = Network(read_bundle(compiled.data, "m"), device, keep=True).run(data)
    compare(inference.tensors, evaluate(graph, data), graph)
    assert [step.name for step in inference.steps] == ["conv2d small", "add small", "conv2d large", "add large"]
