"""The profile of an inference: its starts and the time between them, on real and on virtual boards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilt.network.compile import compile_network
from hilt.network.core_speed import START_SECONDS
from hilt.network.graph import Tensor
from hilt.network.latency import Latency, latency_text, runs_text
from hilt.network.processor_time import MEASURED, ProcessorTime, processor_time
from hilt.network.profile import perfetto, profile

from .graphs import SMALL, Builder, target

CLOCK = 100_000_000


def manifest() -> dict[str, Any]:
    layer = {"op": "conv2d", "macs": 640, "cycles": 1000, "alone": 1000, "bound": 900, "residual": False}
    return {
        "target": {"clock_hz": CLOCK, "macs_per_cycle": 64},
        "steps": [
            {"kind": "vta", "name": "vta 0", "program": 0},
            {"kind": "unpack", "name": "unpack a"},
            {"kind": "cpu", "op": "table", "name": "t"},
            {"kind": "vta", "name": "vta 1", "program": 1},
            {"kind": "unpack", "name": "unpack y"},
        ],
        "layers": [{**layer, "name": name, "program": number, "schedule": "tuned"} for number, name in enumerate("ab")],
    }


def inference(device_seconds: float) -> dict[str, Any]:
    """Two programs of 10 us in calls of `device_seconds` and 40 us more; 150 us between the calls."""
    call = device_seconds + 40e-6
    after = call + 150e-6
    return {
        "steps": [
            ["vta", "vta 0", 0.0, call, device_seconds, 1000],
            ["unpack", "unpack a", call, call + 50e-6, 0.0, None],
            ["cpu", "t", call + 60e-6, call + 145e-6, 0.0, None],
            ["vta", "vta 1", after, after + call, device_seconds, 1000],
            ["unpack", "unpack y", after + call, after + call + 70e-6, 0.0, None],
        ]
    }


REAL = MEASURED
VIRTUAL = ProcessorTime({1: 5e-6, 2: 30e-6, 4: 6e-6}, 5e-6, "assumed of a Cortex-A9")
OWN = 50 + 85 + 70
"""Microseconds of the processor's steps of `inference`."""
BETWEEN = 10 + 5
"""Microseconds between them."""


@pytest.mark.parametrize("device_seconds", [10e-6, 12e-6])
def test_a_real_boards_times_are_those_measured(device_seconds: float) -> None:
    latency = profile(manifest(), [inference(device_seconds)] * 3, REAL).latency
    assert latency.vta == pytest.approx(20)
    assert latency.start == pytest.approx(80 + 2 * (device_seconds * 1e6 - 10))
    assert latency.crossings == pytest.approx(50 + 70)
    assert latency.processor == pytest.approx(85 + BETWEEN)
    assert latency.assumed == "" and latency.warm == 2


@pytest.mark.parametrize("slower", [1, 50])
def test_a_virtual_boards_processor_is_never_this_machine(slower: int) -> None:
    run = inference(0.8 * slower)
    run["steps"] = [
        [kind, name, slower * began, slower * ended, *rest] for kind, name, began, ended, *rest in run["steps"]
    ]
    latency = profile(manifest(), [run] * 3, VIRTUAL).latency
    assert (latency.vta, latency.start) == (pytest.approx(20), pytest.approx(10))
    assert (latency.crossings, latency.processor) == (pytest.approx(11), pytest.approx(30))
    assert latency.first is None and latency.assumed in latency_text(latency)
    assert runs_text(latency).startswith("3 inferences ran")


def test_the_model_of_a_core_gives_each_step_its_time() -> None:
    built = Builder((1, 16, 8, 8))
    graph = built.graph(built.conv("x", 16))
    compiled = compile_network(graph, target(SMALL))
    assert processor_time("192.0.2.2", graph, compiled.manifest, {}) is MEASURED
    native = processor_time("virtual:pynq", graph, compiled.manifest, {})
    by_numpy = dict.fromkeys([step["name"] for step in compiled.manifest["steps"]], "numpy: no compiler")
    numpy = processor_time("virtual:pynq", graph, compiled.manifest, by_numpy)
    places = {place for place, each in enumerate(compiled.manifest["steps"]) if each["kind"] != "vta"}
    assert set(native.steps) == places
    assert all(0 < native.steps[place] < numpy.steps[place] for place in native.steps)
    assert (native.start_seconds, numpy.start_seconds) == (START_SECONDS["native"], START_SECONDS["numpy"])
    assert "native" in native.assumed and "numpy" in numpy.assumed and "times off" in native.assumed


def test_channels_that_vta_selects_are_read_back_in_their_own_size() -> None:
    built = Builder((1, 16, 8, 8))
    attributes: dict[str, Any] = {"starts": [4], "ends": [8], "axes": [1], "steps": [1]}
    half = built.add_node("half", "slice", [built.conv("x", 16)], (1, 4, 8, 8), attributes)
    layer = built.conv(half, 16)
    built.constants["entries"] = built.random.normal(0, 1, 256).astype(np.float32)
    floats = built.add_node("floats", "table", [half, "entries"], (1, 4, 8, 8), {})
    built.tensors[floats] = Tensor(floats, (1, 4, 8, 8), "float32")
    graph = built.graph(layer, floats)
    compiled = compile_network(graph, target(SMALL))
    (place,) = (
        place
        for place, step in enumerate(compiled.manifest["steps"])
        if step["kind"] == "unpack" and step["tensor"] not in graph.tensors
    )
    assert processor_time("virtual:pynq", graph, compiled.manifest, {}).steps[place] > 0


def test_a_join_that_no_node_of_the_model_is_has_a_time() -> None:
    built = Builder((1, 20, 8, 8))
    made = built.conv("x", 12)
    joined = built.add_node("joined", "concat", [made, "x"], (1, 32, 8, 8), {"axis": 1})
    graph = built.graph(built.conv(joined, 16), built.conv("x", 16))
    compiled = compile_network(graph, target(SMALL))
    time = processor_time("virtual:pynq", graph, compiled.manifest, {})
    steps = [step for step in compiled.manifest["steps"] if step["kind"] == "cpu"]
    assert {step["name"] for step in steps}.difference(node.name for node in graph.nodes)
    assert len(time.steps) == sum(step["kind"] != "vta" for step in compiled.manifest["steps"])


@pytest.mark.parametrize("board", [REAL, VIRTUAL])
def test_timeline_and_parts_add_up_to_the_latency(board: ProcessorTime) -> None:
    figures = profile(manifest(), [inference(10e-6)] * 2, board)
    assert sum(each.microseconds for each in figures.timeline) == pytest.approx(figures.latency.total)
    assert sum(part for _, part in figures.latency.parts) == pytest.approx(figures.latency.total)
    trace = perfetto(manifest(), figures)["traceEvents"]
    assert sum(event.get("dur", 0.0) for event in trace) == pytest.approx(figures.latency.total)
    assert Latency.from_dict(figures.to_dict()["latency"]) == figures.latency


def test_the_first_inference_is_apart_and_the_median_of_the_others_is_the_figure() -> None:
    latency = profile(manifest(), [inference(each * 1e-6) for each in (900, 30, 10, 20)], REAL).latency
    totals = [20 + 80 + OWN + BETWEEN + 2 * (each - 10) for each in (900, 30, 10, 20)]
    assert latency.first == pytest.approx(totals[0]) and latency.total == pytest.approx(totals[3])
    assert (latency.least, latency.largest) == (pytest.approx(totals[2]), pytest.approx(totals[1]))
    assert "median of 3 warm inferences" in runs_text(latency)
    alone = profile(manifest(), [inference(10e-6)], REAL).latency
    assert alone.first is None and alone.warm == 0 and "cold" in runs_text(alone)


@pytest.mark.parametrize("board", [REAL, VIRTUAL])
def test_the_time_between_programs(board: ProcessorTime) -> None:
    figures = profile(manifest(), [inference(10e-6), inference(12e-6), inference(30e-6)], board)
    assert figures.latency.starts == 2
    assert figures.between == pytest.approx(35 if board is VIRTUAL else 150)


def test_one_program_has_nothing_between() -> None:
    one = manifest()
    one["steps"], one["layers"] = one["steps"][:1], one["layers"][:1]
    run = {"steps": inference(10e-6)["steps"][:1]}
    assert profile(one, [run], VIRTUAL).between == 0
