"""Bundles that older compilers made, stored as files: they run on both engines, with the bits that they had then.

Each holds three layers for an accelerator of blocks of 8, and a pooling of the processor's.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hilt.network.graph_file import graph_of
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt.network.verify import compare
from hilt_runtime import Network, read_bundle
from hilt_runtime.bundle import READABLE
from hilt_runtime.native.library import Engine, engine

from .graphs import SMALL, target

_FOLDER = Path(__file__).parent / "older"
_INPUT = np.random.default_rng(7).integers(-128, 128, (1, 3, 6, 6)).astype(np.int8)
_ANSWER = [[7, 2, -3, -4, 3, -3, -4, -4, -1, 1]]


@pytest.mark.parametrize("chosen", [engine(), Engine(None, "numpy: asked for")], ids=["engine", "numpy"])
@pytest.mark.parametrize("version", [2, 5])
def test_an_older_bundle_runs_as_it_did(version: int, chosen: Engine) -> None:
    path = _FOLDER / f"version_{version}.hilt"
    bundle = read_bundle(path)
    assert bundle.manifest["version"] == version and min(READABLE) <= version < max(READABLE)
    graph = graph_of(bundle, path.read_bytes())
    with SimulatedVta(target(SMALL)) as device:
        inference = Network(bundle, device, keep=True, engine=chosen).run({"x": _INPUT})
    assert inference.outputs["dense4.y"].tolist() == _ANSWER
    assert compare(inference.tensors, evaluate(graph, {"x": _INPUT}), graph).tensors == len(graph.tensors)
