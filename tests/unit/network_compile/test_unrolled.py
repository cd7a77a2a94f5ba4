"""Large LSTMs as steps: their products run on VTA, weights lie in its memory once, and the outputs stay as good."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network import onnx_unrolled
from hilt.network.calibration import Runner
from hilt.network.compile import compile_network
from hilt.network.onnx_unrolled import unrolled
from hilt.network.quantize.quantizer import quantise
from tests.unit.network.models import canonical, model_of, samples_for

from .graphs import target
from .runs import runs_as_its_reference

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_search")]  # runs networks on the golden model
STEPS, INPUTS, HIDDEN = 3, 20, 32


@pytest.fixture(autouse=True)
def _any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_unrolled, "_LEAST_BYTES", 0)


def lstm(direction: str, *, states: bool = False, bias: bool = True) -> Any:
    """Return an LSTM and a dense layer behind it; with `states` the first states are inputs, the last ones outputs."""
    random, count = np.random.default_rng(3), 2 if direction == "bidirectional" else 1
    shapes = {"W": (count, 4 * HIDDEN, INPUTS), "R": (count, 4 * HIDDEN, HIDDEN), "v": (10, count * HIDDEN)}
    constants = {name: random.normal(0, 0.25, shape).astype(np.float32) for name, shape in shapes.items()}
    constants["shape"] = np.array([STEPS, count * HIDDEN])
    if bias:
        constants["B"] = random.normal(0, 0.3, (count, 8 * HIDDEN)).astype(np.float32)
    begin = ["", "h0", "c0"] if states else []
    given = {"x": (STEPS, 1, INPUTS)} | (dict.fromkeys(begin[1:], (count, 1, HIDDEN)))
    nodes = [
        helper.make_node(
            "LSTM", ["x", "W", "R", "B" if bias else "", *begin], ["s", "h", "c"] if states else ["s"], name="layer",
            hidden_size=HIDDEN, direction=direction,
        ),
        helper.make_node("Transpose", ["s"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["t", "shape"], ["f"]),
        helper.make_node("Gemm", ["f", "v"], ["y"], transB=1),
    ]  # fmt: skip
    return model_of(nodes, given, constants, ("y", "h", "c") if states else ("y",))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("states", [False, True])
def test_the_steps_compute_what_the_layer_computes(direction: str, states: bool) -> None:
    graph = canonical(lstm(direction, states=states, bias=direction != "reverse"))
    parted = unrolled(graph, ())
    assert parted is not None and parted.nodes == ("layer",)
    assert "LSTM" not in {node.op for node in parted.graph.nodes}
    for feeds in samples_for(graph, 2, seed=5).samples:
        wanted, made = (Runner(each, each.outputs).run(feeds) for each in (graph, parted.graph))
        for first, second in zip(graph.outputs, parted.graph.outputs, strict=True):
            np.testing.assert_allclose(made[second], wanted[first], atol=2e-3)


def test_products_run_on_vta_and_share_weights() -> None:
    assert runs_as_its_reference(lstm("bidirectional")) >= {"dense", "slice", "table"}
    result = quantise(canonical(lstm("forward")), samples_for(canonical(lstm("forward")), 16), search=False)
    assert any(note.startswith("layer is written as its steps") for note in result.notes) and not result.kept
    manifest = compile_network(result.graph, target()).manifest
    products = [node for node in result.graph.nodes if node.op == "dense"]
    assert len(products) == 4 + 4 * (STEPS - 1) + 1
    assert all(len(node.inputs) > 3 and node.inputs[3] for node in products[4:-1])  # the data's part is added there
    assert sum(name.startswith("weights of") for name in manifest["constants"]) == 4 + 4 + 1
    assert len({node.inputs[1] for node in products}) == 4 + 4 + 1
    where = {each["node"]: each["where"] for each in manifest["placements"]}
    assert {where[node.name] for node in result.graph.nodes if node.op == "slice"} == {"view"}


def test_a_layer_that_is_kept_or_small_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = canonical(lstm("forward"))
    assert unrolled(graph, ("layer",)) is None
    monkeypatch.setattr(onnx_unrolled, "_LEAST_BYTES", 4 * HIDDEN * HIDDEN)
    assert unrolled(graph, ()) is None
    monkeypatch.setattr(onnx_unrolled, "_LEAST_BYTES", 0)
    monkeypatch.setattr(onnx_unrolled, "_MOST_STEPS", STEPS - 1)
    assert unrolled(graph, ()) is None
