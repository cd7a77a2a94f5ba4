"""The library of critical paths against the definition, followed step by step."""

from __future__ import annotations

import numpy as np
import pytest

from hilt.simulator.critical_path import SOURCES, CriticalPaths, WorkGraph
from hilt.simulator.device import SimulatorError
from hilt.virtual.board_model import board_model

KINDS = 5


@pytest.fixture(scope="module")
def paths() -> CriticalPaths:
    return CriticalPaths(board_model("pynq").accelerator)


def some_graph(generator: np.random.Generator, segments: int) -> WorkGraph:
    sources = [generator.integers(0, segment + 1, SOURCES) for segment in range(segments)]
    work = generator.integers(0, 4, (segments, KINDS)).astype(np.float64)
    return WorkGraph(np.array(sources, dtype=np.int32).reshape(segments, SOURCES), work)


def followed(graph: WorkGraph, cycles: np.ndarray, last: int) -> tuple[float, np.ndarray]:
    """Return the end of the first `last` segments, and the work on the way to it."""
    ends, ways = [0.0], [np.zeros(KINDS)]
    for sources, work in zip(graph.sources[:last].tolist(), graph.work, strict=False):
        before = max(sources, key=lambda source: ends[source])
        ends.append(ends[before] + float(work @ cycles))
        ways.append(ways[before] + work)
    latest = int(np.argmax(ends))
    return ends[latest], ways[latest]


@pytest.mark.parametrize("segments", [0, 1, 2, 3, 40])
def test_ends_and_paths_are_those_by_definition(paths: CriticalPaths, segments: int) -> None:
    generator = np.random.default_rng(segments)
    graphs = [some_graph(generator, segments), some_graph(generator, 7)]
    cycles = generator.uniform(0.5, 3.0, (KINDS, 4))
    ends = paths.ends(graphs, cycles)
    assert ends.shape == (2, 4, 2)
    for number, graph in enumerate(graphs):
        for part, last in enumerate((len(graph.sources) // 2, len(graph.sources))):
            for machine in range(4):
                end, work = followed(graph, cycles[:, machine], last)
                assert ends[number, machine, part] == pytest.approx(end)
                found = paths.work([graph], cycles[:, machine])[0, part]
                assert found @ cycles[:, machine] == pytest.approx(end)
                assert np.allclose(found, work)


def test_a_source_behind_its_segment_is_refused(paths: CriticalPaths) -> None:
    graph = some_graph(np.random.default_rng(1), 3)
    graph.sources[1, 0] = 2
    with pytest.raises(SimulatorError, match="critical paths of 1 programs"):
        paths.ends([graph], np.ones((KINDS, 1)))
    graph.sources[1, 0] = -1
    with pytest.raises(SimulatorError, match="refused"):
        paths.work([graph], np.ones(KINDS))
