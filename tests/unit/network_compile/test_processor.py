"""The processor's side of the placement: the speeds that were measured decide, and both times are the reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hilt.network.compile import compile_network
from hilt.network.core_speed import CORTEX_A9, CORTEX_A53, node_work, pack_work, step_seconds
from hilt.network.kept_speed import keep_speed, kept_speed
from hilt.network.processor import ASSUMED, ProcessorSpeed, assumed_speed
from hilt.network.processor_speed import timed_network, times_slower
from hilt.network.processor_time import modelled_time
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt.network.verify import compare
from hilt_runtime import Network, read_bundle

from .graphs import PYNQ, Builder, banded, target

FAST = ProcessorSpeed(CORTEX_A9, 1e-6, "measured on desk")


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
    assert kept_speed("virtual:pynq") == FAST and kept_speed("virtual:zcu104") == assumed_speed(CORTEX_A53)
    (path,) = (tmp_path / "processors").iterdir()
    older = '{"call_seconds": 1e-4, "macs_per_second": 6e7, "bytes_per_second": 1e8, "source": "measured on desk"}'
    for text in ("{}", older, '{"slower": 0, "source": ""}', '{"slower": Infinity, "source": ""}', "[]"):
        path.write_text(text)
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


def test_a_board_is_as_many_times_slower_as_its_steps_take_longer() -> None:
    graph = timed_network()
    model = {node.name: step_seconds(CORTEX_A9, "native", node_work(graph, node)) for node in graph.nodes}
    assert times_slower(graph, model, CORTEX_A9) == pytest.approx(1.0)
    assert times_slower(graph, {name: 3 * each for name, each in model.items()}, CORTEX_A9) == pytest.approx(3.0)


@pytest.mark.slow
@pytest.mark.parametrize(("channels", "kernel", "side", "folds"), [(3, 7, 64, True), (8, 39, 128, False)])
def test_a_first_layer_is_folded_where_vta_wins_more_than_packing_loses(
    channels: int, kernel: int, side: int, folds: bool
) -> None:
    """Thirty-nine columns over 8 channels are 39 times the data: basic-pitch's harmonic stack."""
    builder = Builder((1, channels, side, side))
    graph = builder.graph(builder.conv("x", 16, kernel=kernel))
    assert ("fold" in compile_network(graph, target()).manifest["steps"][0]) == folds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "channels", "stride"), [(PYNQ, 1, 1), (PYNQ, 1, 2), ("2x32_i8w8a32_15_15_18_17", 3, 2)]
)
def test_a_first_layer_of_one_block_of_taps_runs_as_its_reference(name: str, channels: int, stride: int) -> None:
    builder = Builder((1, channels, 33, 30))
    graph = builder.graph(builder.conv("x", 64, stride=stride))
    aim = target(name) if channels == 1 else replace(banded(target(name)), bands=True)
    compiled = compile_network(graph, aim)
    fold = compiled.manifest["steps"][0]["fold"]
    rows = {"kernel": 3, "stride": stride, "top": 1, "count": -(-33 // stride)}
    assert fold == {"kernel": 3, "stride": stride, "left": 1, "rows": rows}
    data = builder.random.integers(-128, 128, graph.tensors["x"].shape).astype("int8")
    with SimulatedVta(aim) as device:
        inference = Network(read_bundle(compiled.data, "m"), device, keep=True).run({"x": data})
    compare(inference.tensors, evaluate(graph, {"x": data}), graph)


@pytest.mark.slow
@pytest.mark.parametrize(("channels", "kernel", "folds"), [(3, 7, True), (16, 3, False)])
def test_a_fold_is_counted_as_one_and_other_packing_as_it_is(channels: int, kernel: int, folds: bool) -> None:
    builder = Builder((1, channels, 64, 64))
    graph = builder.graph(builder.conv("x", 16, kernel=kernel))
    manifest = compile_network(graph, target()).manifest
    step = manifest["steps"][0]
    assert (step["kind"], "fold" in step) == ("pack", folds)
    work = pack_work(graph.tensors[step["tensor"]].shape, manifest["buffers"][step["buffer"]]["bytes"], fold=folds)
    assert modelled_time(CORTEX_A9, graph, manifest, {}).steps[0] == step_seconds(CORTEX_A9, "native", work)
