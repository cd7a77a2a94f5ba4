"""Tokens derived from the memory that instructions touch.

Chains run on the RTL as their layers would one after another.
"""

from __future__ import annotations

import numpy as np
import pytest

from hilt.network.buffers import Life, one_behind_another, shared
from hilt.schedule import Conv2d, Rejected, lower, make_tensors, space_for
from hilt.schedule.chain import ChainLink, join
from hilt.schedule.chain_places import places_of
from hilt.schedule.chain_tokens import TOKEN_FLAGS, Depths, Memory, TokenError, with_relays_apart, with_tokens
from hilt.schedule.code import Code, code_of
from hilt.schedule.residual import Skip, output_tiles, with_residual
from hilt.simulator.build import quick_build
from hilt.simulator.device import MemoryModel
from hilt.simulator.program_run import run_program
from hilt.simulator.twin import Twin, TwinStatus
from hilt.vta.isa import UOP, MemoryType, Opcode, decode, multiplies
from hilt.vta.program import Program

from .graphs import PYNQ, instruction, target

ACCELERATOR = target(PYNQ).accelerator
WORKLOAD = Conv2d("t", 1, 32, 14, 14, 64, (3, 3), (1, 1), (1, 1), bias=True)


def programs(count: int) -> list[tuple[Program, Program]]:
    """Programs of random configurations, each with its chain of one layer."""
    space = space_for(WORKLOAD, ACCELERATOR, orders=4)
    pairs = []
    for index in space.sample(count, np.random.default_rng(3)).tolist():
        try:
            program = lower(WORKLOAD, space.knobs_at(index), ACCELERATOR)
        except Rejected:
            continue
        names = {buffer.name: buffer.name for buffer in program.buffers if buffer.name != "uop"}
        sizes = {buffer.name: buffer.bytes for buffer in program.buffers}
        pairs.append((program, join([ChainLink(code_of(program, ACCELERATOR), names)], sizes, ACCELERATOR).program))
    return pairs


@pytest.mark.slow
def test_derived_tokens_cost_no_more_than_those_of_the_lowering() -> None:
    twin = Twin(ACCELERATOR)
    pairs = programs(24)
    assert len(pairs) > 12
    for program, chained in pairs:
        before, after = twin.predict([program, chained], MemoryModel())
        assert after["status"] == TwinStatus.DONE
        assert int(after["cycles"]) <= int(before["cycles"]) + 100


@pytest.mark.slow
def test_a_chain_of_one_layer_equals_the_layer() -> None:
    tensors = make_tensors(WORKLOAD, ACCELERATOR, seed=0)
    library = quick_build(ACCELERATOR, "rtl")
    for _, chained in programs(6):
        run = run_program(library, chained, tensors.inputs)
        assert np.array_equal(run.output, tensors.expected.reshape(-1))


def test_as_many_tokens_are_pushed_as_popped() -> None:
    for _, chained in programs(6):
        records = decode(chained.instructions, ACCELERATOR)
        loads = (records["opcode"] == Opcode.LOAD) & np.isin(records["memory_type"], (MemoryType.INP, MemoryType.WGT))
        stores = records["opcode"] == Opcode.STORE
        compute = ~loads & ~stores
        for push, pop in (
            (records["push_next"][loads], records["pop_prev"][compute]),
            (records["push_prev"][compute], records["pop_next"][loads]),
            (records["push_next"][compute], records["pop_prev"][stores]),
            (records["push_prev"][stores], records["pop_next"][compute]),
        ):
            assert np.count_nonzero(push) == np.count_nonzero(pop) > 0


DEPTHS = Depths(16, 16, 16, 16)
LOAD = {"memory_type": MemoryType.INP, "y_size": 1, "x_size": 4}
STORE = {"memory_type": MemoryType.OUT, "y_size": 1, "x_size": 4}
UOPS = np.zeros(1, dtype=UOP)


def tokens(records: list[np.ndarray], buffers: list[int]) -> list[set[str]]:
    made = with_tokens(np.concatenate(records), Memory(np.array(buffers), UOPS, block_elements=4), DEPTHS)
    return [{flag for flag in TOKEN_FLAGS if record[flag]} for record in made]


def test_a_load_waits_for_the_store_of_its_data_by_way_of_compute() -> None:
    gemm = instruction(Opcode.GEMM, uop_end=1, iter_out=1, iter_in=4, dst_factor_in=1, src_factor_in=1)
    load_uops = instruction(Opcode.LOAD, memory_type=MemoryType.UOP, y_size=1, x_size=1)
    stream = [load_uops, gemm, instruction(Opcode.STORE, **STORE), load_uops, instruction(Opcode.LOAD, **LOAD)]
    assert tokens([*stream, gemm, instruction(Opcode.FINISH)], [0, -1, 1, 0, 1, -1, -1]) == [
        set(),
        {"push_next"},
        {"pop_prev", "push_prev"},
        {"pop_next", "push_prev"},
        {"pop_next", "push_next"},
        {"pop_prev"},
        set(),
    ]


def test_a_load_of_other_data_does_not_wait_for_a_store() -> None:
    gemm = instruction(Opcode.GEMM, uop_end=1, iter_out=1, iter_in=4, dst_factor_in=1, src_factor_in=1)
    load_uops = instruction(Opcode.LOAD, memory_type=MemoryType.UOP, y_size=1, x_size=1)
    other = instruction(Opcode.LOAD, **LOAD, dram_base=4, sram_base=8)
    stream = [load_uops, gemm, instruction(Opcode.STORE, **STORE), load_uops, other, instruction(Opcode.FINISH)]
    assert tokens(stream, [0, -1, 1, 0, 1, -1])[4] == set()


@pytest.mark.parametrize(("block", "waits"), [(0, False), (1, True), (2, False)])
def test_a_load_of_weights_waits_for_the_store_of_their_rows(block: int, waits: bool) -> None:
    """A block of weights is four elements of a STORE, which writes the elements 4 to 7."""
    gemm = instruction(Opcode.GEMM, uop_end=1, iter_out=1, iter_in=4, dst_factor_in=1, src_factor_in=1)
    load_uops = instruction(Opcode.LOAD, memory_type=MemoryType.UOP, y_size=1, x_size=1)
    weights = instruction(Opcode.LOAD, memory_type=MemoryType.WGT, y_size=1, x_size=1, dram_base=block, sram_base=4)
    store = instruction(Opcode.STORE, **STORE, dram_base=4)
    stream = [load_uops, gemm, store, load_uops, weights, instruction(Opcode.FINISH)]
    assert tokens(stream, [0, -1, 1, 0, 1, -1])[4] == ({"pop_next"} if waits else set())


def test_a_load_right_behind_the_store_of_its_data_cannot_be_ordered() -> None:
    gemm = instruction(Opcode.GEMM, uop_end=1, iter_out=1, iter_in=4, dst_factor_in=1)
    stream = [gemm, instruction(Opcode.STORE, **STORE), instruction(Opcode.LOAD, **LOAD)]
    with pytest.raises(TokenError, match="LOAD 2 needs STORE 1"):
        tokens(stream, [-1, 1, 1])


def test_a_residual_needs_room_on_chip() -> None:
    space = space_for(WORKLOAD, ACCELERATOR, orders=4)
    knobs = {"tile_b": 1, "tile_h": 14, "tile_w": 14, "tile_ci": 2, "tile_co": 4, "oc_nthread": 1, "h_nthread": 1}
    program = lower(WORKLOAD, space.knobs_at(space.index({**knobs, "loop_order": 1})), ACCELERATOR)
    code = with_residual(code_of(program, ACCELERATOR), Skip(7), ACCELERATOR)
    assert code.used(MemoryType.INP) > code_of(program, ACCELERATOR).used(MemoryType.INP)
    small = target("1x16_i8w8a32_15_13_18_17").accelerator
    with pytest.raises(Rejected, match="the residual of a tile"):
        with_residual(code_of(lower(WORKLOAD, {**knobs, "tile_ci": 1, "loop_order": 1}, small), small), Skip(7), small)


def test_a_residual_in_pieces_is_cleared_piece_by_piece() -> None:
    """A GEMM clears in passing what the reset in front of it would have, where it comes to all of it."""
    space = space_for(WORKLOAD, ACCELERATOR, orders=4)
    knobs = {"tile_b": 1, "tile_h": 14, "tile_w": 7, "tile_ci": 2, "tile_co": 4, "oc_nthread": 1, "h_nthread": 1}
    small = target("1x16_i8w8a32_15_14_18_17").accelerator
    whole = code_of(lower(WORKLOAD, space.knobs_at(space.index({**knobs, "loop_order": 1})), small), small)
    code = with_residual(whole, Skip(7), small)
    is_reset = (code.records["opcode"] == Opcode.GEMM) & (code.records["reset"] == 1)
    resets = np.flatnonzero(is_reset)
    tiles = output_tiles(code)
    assert len(resets) > len(tiles) == len(output_tiles(whole))
    gemms = np.flatnonzero((code.records["opcode"] == Opcode.GEMM) & ~is_reset)
    for reset in resets.tolist():
        cleared, added = code.records[reset], code.records[gemms[gemms > reset][0]]
        assert code.uops["dst"][cleared["uop_bgn"]] == code.uops["dst"][added["uop_bgn"]]
        assert (cleared["iter_out"], cleared["iter_in"]) == (added["iter_out"], added["iter_in"])
    before = whole.records[(whole.records["opcode"] == Opcode.GEMM) & (whole.records["reset"] == 1)]
    elements = [int((each["iter_out"].astype(int) * each["iter_in"]).sum()) for each in (before, code.records[resets])]
    assert elements[0] == elements[1]


def test_tensors_that_live_together_never_share_memory() -> None:
    random = np.random.default_rng(1)
    for _ in range(50):
        lives = []
        for number in range(20):
            first = int(random.integers(0, 30))
            lives.append(Life(str(number), int(random.integers(1, 40_000)), first, first + int(random.integers(0, 6))))
        offsets, total = shared(lives)
        for one in lives:
            assert offsets[one.name] % 4096 == 0 and offsets[one.name] + one.bytes <= total
            for other in lives:
                if one is not other and one.first <= other.last and other.first <= one.last:
                    low, high = sorted((one, other), key=lambda life: offsets[life.name])
                    assert offsets[low.name] + low.bytes <= offsets[high.name]
        assert total <= one_behind_another({life.name: life.bytes for life in lives})[1]


def test_a_load_of_rows_between_those_of_a_store_does_not_wait() -> None:
    gemm = instruction(Opcode.GEMM, uop_end=1, iter_out=1, iter_in=4, dst_factor_in=1, src_factor_in=1)
    load_uops = instruction(Opcode.LOAD, memory_type=MemoryType.UOP, y_size=1, x_size=1)
    store = instruction(Opcode.STORE, **{**STORE, "y_size": 2, "x_size": 2, "x_stride": 8})
    other = instruction(Opcode.LOAD, **LOAD, dram_base=2, sram_base=8)
    same = instruction(Opcode.LOAD, **LOAD, dram_base=6, sram_base=12)
    stream = [load_uops, gemm, store, load_uops, other, same, instruction(Opcode.FINISH)]
    made = tokens(stream, [0, -1, 1, 0, 1, 1, -1])
    assert made[4] == set() and made[5] == {"pop_next"}


def test_layers_share_one_load_of_micro_ops_behind_the_first_layer() -> None:
    code = code_of(programs(1)[0][0], ACCELERATOR)
    names = {name: name for name in code.names if name != "uop"}
    chain = join([ChainLink(code, names)] * 4, dict.fromkeys(names, 1 << 20), ACCELERATOR)
    records = decode(chain.program.instructions, ACCELERATOR)
    loads = records[(records["opcode"] == Opcode.LOAD) & (records["memory_type"] == MemoryType.UOP)]
    assert loads["x_size"].tolist() == [len(code.uops), 3 * len(code.uops)]
    assert loads["sram_base"].tolist() == loads["dram_base"].tolist() == [0, len(code.uops)]
    own = len(code.records)
    assert chain.lengths == [own + 1, own - 1, own - 1, own - 1]
    second = int(np.flatnonzero((records["opcode"] == Opcode.LOAD) & (records["memory_type"] == MemoryType.UOP))[1])
    assert multiplies(records)[second + 1] and not multiplies(records)[:second].any(), "while compute waits for data"


def test_micro_ops_without_room_behind_the_first_come_where_they_are_needed() -> None:
    uops = np.zeros(6, dtype=UOP)
    load_uops = instruction(Opcode.LOAD, memory_type=MemoryType.UOP, y_size=1, x_size=6)
    gemm, store = instruction(Opcode.GEMM, uop_end=6, iter_out=1, iter_in=1), instruction(Opcode.STORE, **STORE)
    reset = instruction(Opcode.GEMM, reset=1, uop_end=1, iter_out=1, iter_in=1)
    load = instruction(Opcode.LOAD, **LOAD)
    first = Code(np.concatenate([load_uops, reset, load, gemm, store]), np.array([0, -1, 1, -1, 2]), ("uop",), uops)

    def placed(depth: int, codes: list[Code]) -> list[tuple[int, int, int]]:
        places = places_of(codes, Depths(depth, 16, 16, 16), 16)
        return [(place.uop, place.uops_loaded, place.uops_behind) for place in places]

    assert placed(18, [first] * 3) == [(0, 6, 12), (6, 0, 0), (12, 0, 0)]
    assert placed(17, [first] * 3) == [(0, 6, 6), (6, 0, 0), (0, 6, 0)]
    assert placed(11, [first] * 3) == [(0, 6, 0), (0, 6, 0), (0, 6, 0)]
    waits = Code(np.concatenate([load_uops, load, gemm, store]), np.array([0, 1, -1, 2]), ("uop",), uops)
    assert placed(18, [first, waits, first]) == [(0, 6, 0), (0, 12, 0), (6, 0, 0)], "its input waits by way of the LOAD"


def test_a_gemm_of_nothing_passes_on_what_a_reset_would() -> None:
    """A reset that pushes a token is not folded into the GEMM behind it."""
    reset = instruction(Opcode.GEMM, reset=1, uop_end=1, iter_out=1, iter_in=4, dst_factor_in=1)
    gemm = instruction(Opcode.GEMM, uop_end=1, iter_out=1, iter_in=4, dst_factor_in=1, src_factor_in=1)
    load_uops = instruction(Opcode.LOAD, memory_type=MemoryType.UOP, y_size=1, x_size=1)
    store, load = instruction(Opcode.STORE, **STORE), instruction(Opcode.LOAD, **LOAD)
    stream = [load_uops, reset, gemm, store, reset, load, gemm, instruction(Opcode.FINISH)]
    memory = Memory(np.array([0, -1, -1, 1, -1, 1, -1, -1]), UOPS, block_elements=4)
    before = with_tokens(np.concatenate(stream), memory, DEPTHS)
    after, places = with_relays_apart(before)
    assert places.tolist() == [4] and before["push_prev"][4]
    nothing, free = after[4], after[5]
    assert nothing["opcode"] == Opcode.GEMM and nothing["uop_end"] == nothing["uop_bgn"] and not nothing["reset"]
    assert [int(nothing[flag]) for flag in TOKEN_FLAGS] == [int(before[4][flag]) for flag in TOKEN_FLAGS]
    assert not any(free[flag] for flag in TOKEN_FLAGS) and free["reset"] == 1
    assert np.array_equal(np.delete(after, [4, 5]), np.delete(before, 4))


def test_a_gemm_of_nothing_passes_on_what_a_load_of_the_compute_stage_would() -> None:
    gemm = instruction(Opcode.GEMM, uop_end=1, iter_out=1, iter_in=4, dst_factor_in=1, src_factor_in=1)
    load_uops = instruction(Opcode.LOAD, memory_type=MemoryType.UOP, y_size=1, x_size=1)
    stream = [load_uops, gemm, instruction(Opcode.STORE, **STORE), load_uops, instruction(Opcode.LOAD, **LOAD)]
    records = np.concatenate([*stream, gemm, instruction(Opcode.FINISH)])
    memory = Memory(np.array([0, -1, 1, 0, 1, -1, -1]), UOPS, block_elements=4)
    after, places = with_relays_apart(with_tokens(records, memory, DEPTHS))
    assert places.tolist() == [3] and after[3]["opcode"] == Opcode.GEMM
    assert after[3]["pop_next"] == after[3]["push_prev"] == 1
    assert after[4]["opcode"] == Opcode.LOAD and not any(after[4][flag] for flag in TOKEN_FLAGS)


@pytest.mark.slow
def test_a_chain_whose_resets_pass_nothing_on_is_faster_and_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = Conv2d("t", 1, 16, 16, 16, 16, (3, 3), (1, 1), (1, 1), bias=True)
    knobs = {"tile_b": 1, "tile_h": 4, "tile_w": 16, "tile_ci": 1, "tile_co": 1, "oc_nthread": 1, "h_nthread": 2}
    program = lower(workload, {**knobs, "loop_order": 1}, ACCELERATOR)
    sizes = {buffer.name: buffer.bytes for buffer in program.buffers}
    names = {name: name for name in ("wgt", "bias", "inp", "out")}
    code = code_of(program, ACCELERATOR)
    links = [ChainLink(code, {**names, "out": "between"}), ChainLink(code, {**names, "inp": "between"})]
    given = make_tensors(workload, ACCELERATOR, seed=0).inputs
    given = {**given, "between": np.zeros(sizes["out"], dtype=np.int8)}

    def measured() -> tuple[int, np.ndarray]:
        chain = join(links, {**sizes, "between": sizes["out"]}, ACCELERATOR).program
        run = run_program(quick_build(ACCELERATOR, "rtl"), chain, given)
        return run.execution.cycles, run.output

    cycles, output = measured()
    monkeypatch.setattr("hilt.schedule.chain.with_relays_apart", lambda records: (records, np.zeros(0, dtype=np.int64)))
    slower, same = measured()
    assert cycles < slower and np.array_equal(output, same) and output.any()


def test_an_alu_reaches_the_second_operand_wherever_a_layer_lies() -> None:
    """With fewer inputs than accumulators, src of ISA A names the first of these only."""
    uops = np.zeros(1, dtype=UOP)
    uops["dst"] = uops["src"] = 5
    gemm, store = instruction(Opcode.GEMM, uop_end=1, iter_out=1, iter_in=1), instruction(Opcode.STORE, **STORE)

    def code(use_imm: int, accumulators: int) -> Code:
        add = instruction(Opcode.ALU, uop_end=1, iter_out=1, iter_in=1, use_imm=use_imm)
        last = store.copy()
        last["sram_base"] = accumulators - 4
        return Code(np.concatenate([gemm, add, last]), np.array([-1, -1, 0]), ["out"], uops)

    depths = Depths(16, 16, 16, 32)
    others = places_of([code(1, 8), code(1, 8), code(1, 8)], depths, 16)
    assert {place.tiles for place in others} == {0, 24}
    pairs = places_of([code(0, 8), code(0, 8), code(0, 8)], depths, 16)
    assert {place.tiles for place in pairs} == {0, 8}
    (own,) = places_of([code(0, 20)], depths, 16)
    assert own.tiles == 0, "its own src is in reach there"
