"""A bundle whose layers have row programs: every tensor is the reference's."""

from __future__ import annotations

import numpy as np
import pytest

from hilt.network.compile import compile_network
from hilt.network.layers import NotOnVtaError, VtaLayer, layer_of
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt.network.tuned_forms import tuned_form
from hilt.network.verify import compare
from hilt.run_choices import SpaceName
from hilt.schedule import Workload, space_for, verdicts
from hilt_runtime import Network, read_bundle

from .graphs import Builder, residual_network, target

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_search")]  # runs networks on the golden model


def channels_of_their_own_shift() -> Builder:
    builder = Builder((1, 48, 10, 6))
    builder.conv("x", 48, shift=[7] * 16 + [9] * 16 + [8] * 16)
    return builder


@pytest.mark.parametrize("builder", [residual_network(), channels_of_their_own_shift()], ids=["residual", "shifts"])
def test_a_compiled_network_runs_row_programs_exactly(builder: Builder) -> None:
    aim = target()
    graph = builder.graph(builder.nodes[-1].outputs[0])
    random = np.random.default_rng(2)
    tuned: dict[Workload, list[dict[str, int]]] = {}
    for node in graph.nodes:
        try:
            layer = layer_of(graph, node, aim.accelerator)
        except NotOnVtaError:
            continue
        if not isinstance(layer, VtaLayer):
            continue
        form = tuned_form(layer, aim.accelerator)
        space = space_for(form, aim.accelerator, kind=SpaceName.ROWS)
        good = np.flatnonzero(verdicts(form, aim.accelerator, space.columns(np.arange(len(space)))) == 0)
        tuned[form] = [space.knobs_at(int(index)) for index in random.permutation(good)[:3]]
    compiled = compile_network(graph, aim, tuned)
    schedules = [placement.schedule for placement in compiled.placements if placement.schedule is not None]
    assert sum("fold" in schedule.knobs for schedule in schedules) >= min(len(tuned), 3)
    data = builder.input()
    with SimulatedVta(aim) as device:
        inference = Network(read_bundle(compiled.data, "model.hilt"), device, keep=True).run({"x": data})
    assert compare(inference.tensors, evaluate(graph, {"x": data}), graph).tensors == len(graph.tensors)
