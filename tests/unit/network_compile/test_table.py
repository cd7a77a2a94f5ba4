"""Tables on VTA: a layer stores by way of its table, and a tensor is copied by way of one. All are exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.network.compile import Compiled, compile_network
from hilt.network.core_speed import CORTEX_A9
from hilt.network.graph import Graph
from hilt.network.processor import ProcessorSpeed
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt.network.target import CompileTarget
from hilt.network.verify import compare, inside_of
from hilt.simulator.build import Form
from hilt.vta.accelerator import Accelerator, IsaRevision
from hilt.vta.isa import MemoryType, Opcode, decode
from hilt_runtime import Network, read_bundle

from .graphs import BATCHED, PYNQ, SMALL, Builder, target, without_table

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_search")]  # runs networks on the golden model

SLOW = ProcessorSpeed(CORTEX_A9, 1000.0, "made slow, so that VTA is chosen")


def table(builder: Builder, data: str) -> str:
    """Add a table of random entries."""
    name = f"table{len(builder.nodes)}"
    builder.constants[f"{name}.t"] = builder.random.integers(-128, 128, 256).astype(np.int8)
    return builder.add_node(name, "table", [data, f"{name}.t"], builder.tensors[data].shape, {})


def add(builder: Builder, first: str, second: str) -> str:
    attributes = {"left_shifts": [0, 1], "shift": 1, "clip": [-128, 127]}
    return builder.add_node(
        f"add{len(builder.nodes)}", "add", [first, second], builder.tensors[first].shape, attributes
    )


def verified(graph: Graph, aim: CompileTarget, data: NDArray[np.int8], form: Form = "golden") -> Compiled:
    """Compile, run with all tensors kept, and compare those that leave VTA."""
    compiled = compile_network(graph, aim)
    with SimulatedVta(aim, form) as device:
        inference = Network(read_bundle(compiled.data, "model.hilt"), device, keep=True).run({"x": data})
    inside = inside_of(compiled.manifest)
    found = compare(inference.tensors, evaluate(graph, {"x": data}), graph, inside)
    assert found.tensors == len(graph.tensors) - len(inside)
    if form == "rtl":
        assert [step.cycles for step in inference.steps if step.kind == "vta"] == [
            program["cycles"] for program in compiled.manifest["programs"]
        ]
    return compiled


def stores(compiled: Compiled) -> dict[MemoryType, int]:
    """Return how many STOREs of each kind a network has that is one program."""
    (program,) = compiled.manifest["programs"]
    assert all(placement.on_vta or placement.view for placement in compiled.placements)
    bundle = read_bundle(compiled.data, "model.hilt")
    accelerator = target(compiled.manifest["target"]["parameters"]).accelerator
    records = decode(bundle.arrays[program["instructions"]], accelerator)
    kinds = records["memory_type"][records["opcode"] == Opcode.STORE]
    return {kind: int((kinds == kind).sum()) for kind in (MemoryType.OUT, MemoryType.OUT_BY_TABLE, MemoryType.TABLE)}


@pytest.mark.parametrize("parameters", [PYNQ, SMALL, BATCHED])
def test_a_convolution_stores_by_way_of_its_table(parameters: str) -> None:
    builder = Builder((1, 24, 20, 20))
    middle = table(builder, builder.conv("x", 40))
    compiled = verified(builder.graph(builder.conv(middle, 16)), target(parameters), builder.input())
    assert compiled.manifest["inside"] == ["conv0.y"]
    assert stores(compiled)[MemoryType.TABLE] == 1
    assert compiled.manifest["target"]["table"] is True


def test_each_kind_of_layer_stores_by_way_of_a_table() -> None:
    builder = Builder((1, 32, 16, 16))
    deep = table(builder, builder.conv("x", 32, groups=32))
    skipped = table(builder, builder.conv(deep, 32, residual="x", residual_shift=7))
    summed = table(builder, add(builder, deep, skipped))
    attributes = {"kernel": [2, 2], "strides": [2, 2], "pads": [0, 0, 0, 0]}
    top = table(builder, builder.add_node("top", "max_pool", [summed], (1, 32, 8, 8), attributes))
    mean = {"divisor": 1, "shift": 6, "clip": [-128, 127]}
    pooled = table(builder, builder.add_node("mean", "global_average_pool", [top], (1, 32, 1, 1), mean))
    flat = builder.add_node("flat", "reshape", [pooled], (1, 32), {"shape": [1, 32]})
    gate = builder.add_node(
        "gate", "reshape", [table(builder, builder.dense(flat, 32))], (1, 32, 1, 1), {"shape": [1, 32, 1, 1]}
    )
    product = builder.add_node("product", "multiply", [top, gate], (1, 32, 8, 8), {"shift": 6, "clip": [-128, 127]})
    compiled = verified(builder.graph(table(builder, product)), target(), builder.input())
    assert len(compiled.manifest["inside"]) == 7
    counts = stores(compiled)
    assert counts[MemoryType.OUT] == 1  # the rows of the gate
    assert counts[MemoryType.TABLE] == 7


def test_a_tensor_with_other_readers_is_stored_twice() -> None:
    builder = Builder((1, 16, 12, 12))
    first = builder.conv("x", 16)
    tabled = table(builder, first)
    compiled = verified(builder.graph(add(builder, first, tabled), first), target(), builder.input())
    assert compiled.manifest["inside"] == []
    counts = stores(compiled)
    assert counts[MemoryType.OUT] > counts[MemoryType.OUT_BY_TABLE] > 0


def test_layers_with_one_table_write_it_once() -> None:
    builder = Builder((1, 16, 12, 12))
    first = table(builder, builder.conv("x", 16))
    last = table(builder, builder.conv(builder.conv(first, 16), 16))
    builder.constants["table4.t"] = builder.constants["table1.t"]
    compiled = verified(builder.graph(last), target(), builder.input())
    assert stores(compiled)[MemoryType.TABLE] == 1


def test_layers_beyond_an_instruction_buffer_write_the_table_again(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = Builder((1, 16, 24, 24))
    first = table(builder, builder.conv("x", 32))
    graph = builder.graph(table(builder, builder.conv(first, 32)))
    builder.constants["table3.t"] = builder.constants["table1.t"]
    (whole,) = compile_network(graph, target()).manifest["programs"]
    monkeypatch.setattr("hilt.network.linked.MAX_IMAGE_BYTES", 16 * (whole["count"] - 1))
    assert len(verified(graph, target(), builder.input()).manifest["programs"]) == 2


def test_a_second_table_of_a_tensor_copies_it() -> None:
    builder = Builder((1, 40, 30, 30))
    first = builder.conv("x", 40)
    summed = add(builder, table(builder, first), table(builder, first))
    aim = replace(target(), processor=SLOW)
    compiled = verified(builder.graph(summed), aim, builder.input())
    assert stores(compiled)[MemoryType.TABLE] == 2
    copied = compiled.placements[2]
    assert copied.layer is not None and copied.layer.node.op == "table"


def test_a_tensor_of_the_processor_is_copied_where_that_is_faster() -> None:
    builder = Builder((1, 16, 30, 30))
    graph = builder.graph(builder.conv(table(builder, "x"), 16))
    compiled = verified(graph, replace(target(), processor=SLOW), builder.input())
    assert [step["kind"] for step in compiled.manifest["steps"]] == ["pack", "vta", "unpack"]


def test_revision_b_stores_by_way_of_the_table() -> None:
    builder = Builder((1, 16, 12, 12))
    graph = builder.graph(builder.conv(table(builder, builder.conv("x", 16)), 16))
    aim = target()
    newer = Accelerator.for_parameters(aim.accelerator.parameters, IsaRevision.B)
    compiled = verified(graph, replace(aim, accelerator=newer), builder.input())
    assert compiled.manifest["inside"] == ["conv0.y"]


def test_without_a_table_the_processor_looks_up() -> None:
    builder = Builder((1, 16, 12, 12))
    graph = builder.graph(builder.conv(table(builder, builder.conv("x", 16)), 16))
    compiled = verified(graph, without_table(target()), builder.input())
    assert [placement.on_vta for placement in compiled.placements] == [True, False, True]
    assert compiled.placements[1].reason == "this VTA looks nothing up in tables"
    assert "table" not in compiled.manifest["target"]


@pytest.mark.rtl
def test_the_rtl_stores_by_way_of_tables_in_the_twins_cycles() -> None:
    builder = Builder((1, 8, 20, 20))
    first = builder.conv("x", 16)
    second = builder.conv(table(builder, first), 16)
    summed = add(builder, first, table(builder, second))
    verified(builder.graph(table(builder, summed)), target(SMALL), builder.input(), "rtl")
