"""LOADs of a layer that fill the waits of layers before it: which may come early, and the gain of a chain."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.network.ahead import joined_ahead
from hilt.network.compile import compile_network
from hilt.network.graph import Graph
from hilt.network.movable import movable_loads
from hilt.network.reference import evaluate
from hilt.network.simulated import SimulatedVta
from hilt.network.verify import compare
from hilt.schedule.chain import Chain, ChainLink, join
from hilt.schedule.chain_ahead import stage_loads
from hilt.schedule.code import Code
from hilt.simulator.build import Form
from hilt.simulator.device import MemoryModel
from hilt.simulator.twin import PlacedProgram, Twin
from hilt.vta.isa import UOP, MemoryType, Opcode, decode
from hilt.vta.program import Program
from hilt_runtime import Network, read_bundle

from .graphs import PYNQ, Builder, instruction, target

ACCELERATOR = target(PYNQ).accelerator
NAMES = ("uop", "wgt", "inp", "out")


def layer(inputs: int = 4, blocks: int = 2, tiles: int = 1) -> Code:
    """Return a layer that loads weights, then clears, loads, multiplies and stores each tile at one place."""
    uops = np.zeros(1, dtype=UOP)
    loop = {"uop_end": 1, "iter_out": 1, "iter_in": inputs, "dst_factor_in": 1}
    begin = [
        instruction(Opcode.LOAD, memory_type=MemoryType.UOP, y_size=1, x_size=1),
        instruction(Opcode.LOAD, memory_type=MemoryType.WGT, y_size=1, x_size=blocks),
    ]
    tile = [
        instruction(Opcode.GEMM, reset=1, **loop),
        instruction(Opcode.LOAD, memory_type=MemoryType.INP, y_size=1, x_size=inputs),
        instruction(Opcode.GEMM, **loop, src_factor_in=1, wgt_factor_in=int(blocks == inputs)),
        instruction(Opcode.STORE, memory_type=MemoryType.OUT, y_size=1, x_size=inputs),
    ]
    return Code(np.concatenate(begin + tiles * tile), np.array([0, 1, *tiles * (-1, 2, -1, 3)]), NAMES, uops)


def links(*layers: tuple[Code, str, str]) -> tuple[list[ChainLink], dict[str, int]]:
    """Return the links of layers that read and write these tensors, and sizes of their buffers."""
    made = [
        ChainLink(code, {"wgt": f"weights {number}", "inp": read, "out": written})
        for number, (code, read, written) in enumerate(layers)
    ]
    return made, dict.fromkeys((name for link in made for name in link.buffers.values()), 1 << 16)


def chain(*layers: tuple[Code, str, str]) -> Chain:
    return join(*links(*layers), ACCELERATOR)


def test_weights_may_come_early_and_inputs_behind_their_store() -> None:
    """The third layer reads the first one's output: its inputs may come beside the second layer, behind the STORE."""
    made = chain((layer(), "x", "a"), (layer(), "a", "b"), (layer(), "a", "c"))
    records, begins = decode(made.program.instructions, ACCELERATOR), np.cumsum([0, *made.lengths])
    stores = np.flatnonzero(records["opcode"] == Opcode.STORE)
    found = {each.loads[0]: each for each in movable_loads(made, ACCELERATOR)}
    kinds = records["memory_type"][stage_loads(records)].tolist()
    inputs = [number for number, kind in enumerate(kinds) if kind == MemoryType.INP]
    assert inputs[1] not in found, "the layer before makes the second layer's inputs"
    third = found[inputs[2]]
    assert third.stored == stores[0] < third.latest < begins[2] == third.begin
    weights = [number for number, kind in enumerate(kinds) if kind == MemoryType.WGT]
    assert all(found[number].latest < found[number].begin for number in weights[1:])
    assert {found[number].stored for number in weights} == {-1}


def test_a_place_that_the_layer_before_reads_is_not_free_early() -> None:
    """The second layer's blocks lie where the first one's lie, but for those that the buffer has beside them."""
    depth = ACCELERATOR.parameters.wgt_depth
    made = chain((layer(4, depth - 10), "x", "a"), (layer(4, depth), "a", "b"))
    parts = [each for each in movable_loads(made, ACCELERATOR) if each.kind is MemoryType.WGT and each.begin]
    untouched = [each for each in parts if each.touched < 0]
    assert [each.units[1] - each.units[0] for each in untouched] == [10]
    assert all(each.touched < each.begin for each in parts)


def classified() -> Graph:
    """A convolution, the mean of its planes, and a dense layer whose weights take thousands of cycles to load."""
    builder = Builder((1, 32, 14, 14), 3)
    first = builder.conv("x", 64)
    last = builder.conv(builder.conv(first, 64, stride=2), 64, residual=builder.conv(first, 64, 1, stride=2))
    mean = {"divisor": 1, "shift": 6, "clip": [-128, 127]}
    pooled = builder.add_node("mean", "global_average_pool", [last], (1, 64, 1, 1), mean)
    flat = builder.add_node("flat", "reshape", [pooled], (1, 64), {"shape": [1, 64]})
    return builder.graph(builder.dense(flat, 512))


@pytest.mark.slow
def test_a_chain_with_loads_ahead_is_faster_and_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, aim = classified(), target(PYNQ)
    compiled = compile_network(graph, aim)
    inputs = {"x": np.random.default_rng(1).integers(-128, 128, (1, 32, 14, 14)).astype(np.int8)}
    expected = evaluate(graph, inputs)
    forms: tuple[Form, ...] = ("golden", "rtl")
    for form in forms:
        with SimulatedVta(aim, form) as device:
            inference = Network(read_bundle(compiled.data, "small"), device, keep=True).run(inputs)
        compare(inference.tensors, expected, graph)
    counted = [step.cycles for step in inference.steps if step.cycles is not None]
    assert counted == [program["cycles"] for program in compiled.manifest["programs"]]
    monkeypatch.setattr("hilt.network.plan.joined_ahead", lambda links, sizes, aim, *_: join(links, sizes, aim))
    before = compile_network(graph, aim).manifest
    assert compiled.manifest["programs"][0]["cycles"] < 0.95 * before["programs"][0]["cycles"]
    dense = [
        layer["cycles"] for each in (before, compiled.manifest) for layer in each["layers"] if layer["op"] == "dense"
    ]
    assert dense[1] < 0.5 * dense[0], "its weights are there"


class NeverFaster(Twin):
    """Says that no program is faster than the first one."""

    def predict(self, programs: Iterable[Program | PlacedProgram], memory: MemoryModel) -> NDArray[np.void]:
        found = super().predict(programs, memory)
        found["cycles"] = found["cycles"][0]
        return found


def test_loads_stay_where_nothing_is_gained_or_the_program_would_be_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second layer's tiles wait for each other, which leaves time for the third one's weights."""
    given = links((layer(), "x", "a"), (layer(512, 4, tiles=4), "x", "b"), (layer(4, 64), "b", "c"))
    memory = target(PYNQ).memory
    before = join(*given, ACCELERATOR).program

    def made(twin: Twin) -> Program:
        return joined_ahead(*given, ACCELERATOR, twin, memory).program

    twin = Twin(ACCELERATOR)
    after = made(twin)
    cycles = twin.predict([before, after], memory)["cycles"].tolist()
    assert cycles[1] < cycles[0]
    assert np.array_equal(made(NeverFaster(ACCELERATOR)).instructions, before.instructions)
    monkeypatch.setattr("hilt.network.ahead.MAX_IMAGE_BYTES", before.instructions.nbytes)
    assert np.array_equal(made(twin).instructions, before.instructions)
