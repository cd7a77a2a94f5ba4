"""`hilt explore` predicts the inference that a bundle takes on the RTL of a board with the design's parameters."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from hilt.explore.design import Design
from hilt.explore.inference import infer
from hilt.explore.subject import Subject, load_subject
from hilt.network.board_run import BoardRunner, target_of
from hilt.network.compile import compile_network
from hilt.network.graph import Graph
from hilt.network.processor_time import processor_time
from hilt.network.profile import profile
from hilt.network.random_inputs import random_inputs
from hilt.network.target import aimed
from hilt.virtual.board_model import BOARD_MODELS
from hilt.vta.accelerator import load_parameters
from hilt_runtime import read_bundle
from hilt_runtime.arrays import encode_arrays
from tests.e2e.conftest import shared_home as shared_home
from tests.networks.test_networks import OWN, RUN

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(not os.environ.get(RUN), reason="minutes for each network: `make network-tests` runs them"),
]
MODELS = ("pynq", "pynq_143", "zcu104", "zcu104_wide_2p", "zcu104_bands_2p", "zcu104_bands_4p")


@cache
def subject(name: str) -> Subject:
    return load_subject(name)


@pytest.fixture(scope="module", params=MODELS)
def runner(request: pytest.FixtureRequest, shared_home: Path) -> Iterator[BoardRunner]:
    with BoardRunner(f"virtual:{request.param}") as opened:
        yield opened


def design_of(model: str) -> Design:
    """Return the design that a user writes for a board: its parameters and its clock."""
    facts = BOARD_MODELS[model]
    return Design(
        load_parameters(facts.parameters),
        bus_bits=facts.bus_bits,
        read_ports=facts.read_ports,
        clock_hz=facts.clock_hz,
        bands=facts.bands,
    )


@pytest.mark.parametrize("name", OWN)
def test_the_milliseconds_are_those_of_a_run(
    name: str, runner: BoardRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    board = runner.connection.name
    graph = subject(name).graph
    assert graph is not None
    explored = infer(subject(name), design_of(board.removeprefix("virtual:"))).latency.total
    run = microseconds_of_a_run(graph, runner)
    with capsys.disabled():
        print(f"\n{name} on {board}: explored {explored / 1e3:,.3f} ms, run on the RTL {run / 1e3:,.3f} ms")
    assert explored == pytest.approx(run, rel=0.01)


def microseconds_of_a_run(graph: Graph, runner: BoardRunner) -> float:
    board = runner.connection.name
    data = compile_network(graph, aimed(target_of(board), graph, None)).data
    bundle = read_bundle(data, "explored")
    answer = runner.run(bundle, data, encode_arrays(random_inputs(graph), {}), repeat=2)
    time = processor_time(board, graph, bundle.manifest, answer.engines)
    return profile(bundle.manifest, answer.runs, time).latency.total
