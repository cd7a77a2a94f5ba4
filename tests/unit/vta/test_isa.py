"""Bits written by hand from HARDWARE.md section 2 and docs/architecture.md; and round trips of everything."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hilt.vta.accelerator import Accelerator, FieldOverflowError, IsaRevision, load_parameters
from hilt.vta.isa import (
    INSTRUCTION,
    UOP,
    AluOpcode,
    EncodingError,
    MemoryType,
    Opcode,
    decode,
    decode_uops,
    disassemble,
    encode,
    encode_uops,
    uses_bands,
    uses_table,
    uses_window,
)
from tests.unit.vta.variants import ALL, BATCHED, PYNQ_A, PYNQ_B, ZCU102


def record(**fields: int) -> NDArray[np.void]:
    one = np.zeros(1, dtype=INSTRUCTION)
    for name, value in fields.items():
        one[name] = value
    return one


def bits(words: NDArray[np.uint64]) -> int:
    """An instruction as one number, bit 0 lowest."""
    return sum(int(word) << (64 * number) for number, word in enumerate(words))


LOAD = {
    "opcode": Opcode.LOAD,
    "pop_next": 1,
    "push_next": 1,
    "memory_type": MemoryType.INP,
    "sram_base": 0x123,
    "dram_base": 0x89ABCDEF,
    "y_size": 5,
    "x_size": 6,
    "x_stride": 7,
    "y_pad_0": 1,
    "y_pad_1": 2,
    "x_pad_0": 3,
    "x_pad_1": 4,
}
SIZES = 5 << 64 | 6 << 80 | 7 << 96 | 1 << 112 | 2 << 116 | 3 << 120 | 4 << 124


def test_load_revision_a_by_hand() -> None:
    expected = 0 | 1 << 4 | 1 << 6 | 2 << 7 | 0x123 << 9 | 0x89ABCDEF << 25 | SIZES
    assert bits(encode(record(**LOAD), PYNQ_A)[0]) == expected


def test_load_revision_b_by_hand() -> None:
    expected = 0 | 1 << 4 | 1 << 6 | 2 << 7 | 0x123 << 10 | 0x89ABCDEF << 26 | SIZES
    assert bits(encode(record(**LOAD), PYNQ_B)[0]) == expected


def test_load_wide_by_hand() -> None:
    expected = 0 | 1 << 4 | 1 << 6 | 2 << 8 | 0x123 << 16 | 0x89ABCDEF << 32 | SIZES
    assert bits(encode(record(**LOAD), ZCU102)[0]) == expected


@pytest.mark.parametrize(("memory_type", "low"), [(MemoryType.OUT_BY_TABLE, 2), (MemoryType.TABLE, 3)])
def test_stores_of_the_table_by_hand(memory_type: MemoryType, low: int) -> None:
    """Revision A has the low bits of the memory type."""
    store = record(opcode=Opcode.STORE, memory_type=memory_type, sram_base=1, y_size=1, x_size=16)
    sizes = 1 << 64 | 16 << 80
    assert bits(encode(store, PYNQ_A)[0]) == 1 | low << 7 | 1 << 9 | sizes
    assert bits(encode(store, PYNQ_B)[0]) == 1 | (4 | low) << 7 | 1 << 10 | sizes
    assert bits(encode(store, ZCU102)[0]) == 1 | (4 | low) << 8 | 1 << 16 | sizes
    other = record(opcode=Opcode.LOAD, memory_type=MemoryType.INP, y_size=1, x_size=1)
    for accelerator in (PYNQ_A, PYNQ_B, ZCU102):
        words = encode(store, accelerator)
        assert uses_table(encode(np.concatenate([other, store]), accelerator), accelerator)
        assert not uses_table(encode(other, accelerator), accelerator)
        assert decode(words, accelerator) == store
        assert disassemble(words, accelerator) == [f"     0  STORE {memory_type.name} sram 1 dram 0 size 1x16 stride 0"]
        assert uses_table(words, accelerator)


def test_an_accelerator_without_a_table_stores_without_it() -> None:
    public = replace(PYNQ_A, table=False)
    by_table = record(opcode=Opcode.STORE, memory_type=MemoryType.OUT_BY_TABLE, y_size=1, x_size=1)
    with pytest.raises(EncodingError, match="the table, which this accelerator lacks"):
        encode(by_table, public)
    words = encode(by_table, PYNQ_A)
    assert decode(words, public)["memory_type"] == MemoryType.OUT
    assert not uses_table(words, public)


def test_a_window_gemm_by_hand() -> None:
    gemm = record(opcode=Opcode.GEMM, window=1, uop_end=1, iter_out=2, iter_in=3)
    assert bits(encode(gemm, PYNQ_A)[0]) == 2 | 1 << 21 | 2 << 35 | 3 << 49 | 1 << 63
    assert bits(encode(gemm, ZCU102)[0]) == 2 | 1 << 8 | 1 << 64 | 2 << 96 | 3 << 112
    for accelerator in (PYNQ_A, PYNQ_B, ZCU102):
        words = encode(gemm, accelerator)
        assert decode(words, accelerator) == gemm and uses_window(words, accelerator)
        assert disassemble(words, accelerator) == ["     0  GEMM window uop 0..1 loop 2x3 dst 0,0 src 0,0 wgt 0,0"]


@pytest.mark.parametrize("lacking", [{"window": False}, {"hazards": "none"}])
def test_an_accelerator_without_windows_multiplies_without_them(lacking: dict[str, object]) -> None:
    gemm = record(opcode=Opcode.GEMM, window=1, uop_end=1, iter_out=2, iter_in=3)
    public = replace(PYNQ_A, **lacking)
    for lacks in (public, BATCHED):
        with pytest.raises(EncodingError, match="a window GEMM, which this accelerator lacks"):
            encode(gemm, lacks)
    words = encode(gemm, PYNQ_A)
    assert decode(words, public)["window"] == 0 and not uses_window(words, public)


LANES_A = replace(BATCHED, bands=True)
LANES_B = replace(LANES_A, isa=IsaRevision.B)
LANES_WIDE = replace(LANES_A, isa=IsaRevision.WIDE)


def test_a_load_that_moves_lanes_by_hand() -> None:
    """The two fields are behind dram_base; in the wide ISA at the begin of the third word."""
    moves = record(**LOAD, lane_shift=3, lanes_kept=0b1001)
    plain = record(**LOAD)
    for accelerator, bit in ((LANES_A, 57), (LANES_B, 58), (LANES_WIDE, 128)):
        words = encode(moves, accelerator)
        assert bits(words[0]) == bits(encode(plain, accelerator)[0]) | 3 << bit | 0b1001 << bit + 2
        assert decode(words, accelerator) == moves
        assert disassemble(words, accelerator)[0].endswith("lanes -1 kept 1001 pop> push>")
        assert uses_bands(words, accelerator)
        assert not uses_bands(encode(plain, accelerator), accelerator)


def test_an_accelerator_without_bands_moves_no_lanes() -> None:
    moves = record(**LOAD, lane_shift=1)
    with pytest.raises(EncodingError, match="moves lanes, which this accelerator cannot"):
        encode(moves, BATCHED)
    words = encode(moves, LANES_A)
    assert decode(words, BATCHED) == record(**LOAD)
    assert not uses_bands(words, BATCHED)


@pytest.mark.parametrize("memory_type", [MemoryType.WGT, MemoryType.ACC])
def test_other_loads_move_no_lanes(memory_type: MemoryType) -> None:
    moves = record(opcode=Opcode.LOAD, memory_type=memory_type, lanes_kept=1)
    with pytest.raises(EncodingError, match="by LOADs of INP only"):
        encode(moves, LANES_A)


def test_lanes_that_are_kept_are_there() -> None:
    two = Accelerator.for_parameters(load_parameters("batch2"), bands=True)
    with pytest.raises(EncodingError, match="keeps lanes that this accelerator lacks"):
        encode(record(opcode=Opcode.LOAD, memory_type=MemoryType.INP, lanes_kept=0b100), two)


def test_tvms_stores_use_no_table() -> None:
    """Its memory type OUT, 4, is cut to the bits of the field: 0 in revision A."""
    words = np.array([[1, 1 | 1 << 16], [1 | 4 << 7, 1 | 1 << 16]], dtype=np.uint64)
    assert not uses_table(words[:1], PYNQ_A)
    assert not uses_table(words[1:], PYNQ_B)


def test_store_has_no_memory_type_in_revision_a() -> None:
    store = record(opcode=Opcode.STORE, pop_prev=1, memory_type=MemoryType.OUT, sram_base=1, y_size=1, x_size=1)
    assert bits(encode(store, PYNQ_A)[0]) == 1 | 1 << 3 | 0 << 7 | 1 << 9 | 1 << 64 | 1 << 80
    assert bits(encode(store, PYNQ_B)[0]) == 1 | 1 << 3 | 4 << 7 | 1 << 10 | 1 << 64 | 1 << 80
    assert decode(encode(store, PYNQ_A), PYNQ_A) == store


GEMM = {
    "opcode": Opcode.GEMM,
    "reset": 1,
    "pop_prev": 1,
    "push_prev": 1,
    "uop_bgn": 0x1234,
    "uop_end": 0x2000,
    "iter_out": 0x3FFF,
    "iter_in": 0x2ABC,
    "dst_factor_out": 0x7FF,
    "dst_factor_in": 0x401,
    "src_factor_out": 0x402,
    "src_factor_in": 0x403,
    "wgt_factor_out": 0x201,
    "wgt_factor_in": 0x3FF,
}


@pytest.mark.parametrize("accelerator", [PYNQ_A, PYNQ_B])
def test_gemm_by_hand(accelerator: Accelerator) -> None:
    first = 2 | 1 << 3 | 1 << 5 | 1 << 7 | 0x1234 << 8 | 0x2000 << 21 | 0x3FFF << 35 | 0x2ABC << 49
    second = 0x7FF << 64 | 0x401 << 75 | 0x402 << 86 | 0x403 << 97 | 0x201 << 108 | 0x3FF << 118
    assert bits(encode(record(**GEMM), accelerator)[0]) == first | second


def test_gemm_wide_by_hand() -> None:
    words = encode(record(**GEMM), ZCU102)[0]
    assert int(words[0]) == 2 | 1 << 3 | 1 << 5 | 1 << 7 | 0x1234 << 32
    assert int(words[1]) == 0x2000 | 0x3FFF << 32 | 0x2ABC << 48
    assert int(words[2]) == 0x7FF | 0x402 << 21 | 0x201 << 42
    assert int(words[3]) == 0x401 | 0x403 << 21 | 0x3FF << 42


ALU = {
    "opcode": Opcode.ALU,
    "uop_end": 1,
    "iter_out": 1,
    "iter_in": 9,
    "use_imm": 1,
    "imm": -2,
    "alu_opcode": AluOpcode.SHR,
}


def test_alu_immediates_by_hand() -> None:
    loops = 4 | 1 << 21 | 1 << 35 | 9 << 49
    assert bits(encode(record(**ALU), PYNQ_A)[0]) == loops | 3 << 108 | 1 << 110 | 0xFFFE << 111
    assert bits(encode(record(**ALU), PYNQ_B)[0]) == loops | 3 << 108 | 1 << 111 | 0xFFFE << 112
    wide = encode(record(**ALU), ZCU102)[0]
    assert int(wide[0]) == 4 | 3 << 11 | 1 << 14 | 0xFFFE << 16


def test_micro_op_by_hand() -> None:
    uop = np.array([(0x7FF, 0x401, 0x201)], dtype=UOP)
    assert int(encode_uops(uop, PYNQ_A)[0, 0]) == 0x7FF | 0x401 << 11 | 0x201 << 22
    wide = encode_uops(uop, ZCU102)[0]
    assert int(wide[0]) | int(wide[1]) << 32 == 0x7FF | 0x401 << 21 | 0x201 << 42


def test_instructions_that_revision_a_lacks_are_refused() -> None:
    multiply = record(**{**ALU, "alu_opcode": AluOpcode.MUL})
    with pytest.raises(EncodingError, match="no MUL"):
        encode(multiply, PYNQ_A)
    assert int(decode(encode(multiply, PYNQ_B), PYNQ_B)["alu_opcode"][0]) == AluOpcode.MUL
    with pytest.raises(EncodingError, match="loads UOP, WGT, INP and ACC only"):
        encode(record(opcode=Opcode.LOAD, memory_type=MemoryType.ACC_8BIT), PYNQ_A)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({**LOAD, "y_pad_0": 16}, "y_pad_0"),
        ({**GEMM, "iter_in": 1 << 14}, "iter_in"),
        ({**GEMM, "wgt_factor_in": 1024}, "wgt_factor_in"),
        ({**ALU, "imm": 1 << 15}, "imm"),
        ({**ALU, "use_imm": 2}, "use_imm"),
    ],
)
def test_a_value_too_large_is_refused_by_field(fields: dict[str, int], field: str) -> None:
    with pytest.raises(FieldOverflowError, match=field) as raised:
        encode(record(**fields), PYNQ_A)
    assert raised.value.field == field
    again = pickle.loads(pickle.dumps(raised.value))
    assert (again.field, str(again)) == (raised.value.field, str(raised.value))


@pytest.mark.parametrize("accelerator", ALL, ids=str)
@pytest.mark.parametrize("field", ["use_imm", "reset", "pop_prev", "pop_next", "push_prev", "push_next"])
def test_a_flag_is_one_bit_in_every_form(accelerator: Accelerator, field: str) -> None:
    assert decode(encode(record(**{**ALU, field: 1}), accelerator), accelerator)[field][0] == 1
    with pytest.raises(FieldOverflowError, match=field):
        encode(record(**{**ALU, field: 2}), accelerator)


def test_a_micro_op_too_large_is_refused() -> None:
    with pytest.raises(FieldOverflowError, match="wgt = 1024"):
        encode_uops(np.array([(0, 0, 1024)], dtype=UOP), PYNQ_A)


@st.composite
def programs(draw: st.DrawFn, accelerator: Accelerator) -> NDArray[np.void]:
    seed = draw(st.integers(0, 2**32 - 1))
    count = draw(st.integers(0, 30))
    generator = np.random.default_rng(seed)
    instructions = np.zeros(count, dtype=INSTRUCTION)
    opcodes = generator.integers(0, 5, count)
    layout = accelerator.formats
    for number, opcode in enumerate(opcodes):
        form = layout.memory if opcode in (0, 1) else layout.alu if opcode == 4 else layout.gemm
        for field in form.fields:
            edge = generator.choice([field.low, field.high, int(generator.integers(field.low, field.high + 1))])
            instructions[field.name][number] = edge
        instructions["opcode"][number] = opcode
        if opcode == Opcode.STORE:
            instructions["memory_type"][number] = MemoryType.OUT
        moves = accelerator.bands and opcode == Opcode.LOAD and instructions["memory_type"][number] == MemoryType.INP
        instructions["lane_shift"][number] *= moves
        instructions["lanes_kept"][number] &= moves * ((1 << accelerator.parameters.batch) - 1)
    if not accelerator.window_rows:
        instructions["window"] = 0
    return instructions


@pytest.mark.slow
@pytest.mark.parametrize("accelerator", (*ALL, LANES_A), ids=lambda a: f"{a.parameters.name}-{a.isa}-{a.bands}")
def test_decode_undoes_encode(accelerator: Accelerator) -> None:
    @settings(max_examples=60, deadline=None)
    @given(programs(accelerator))
    def check(instructions: NDArray[np.void]) -> None:
        words = encode(instructions, accelerator)
        assert words.shape == (len(instructions), accelerator.instruction_bytes // 8)
        assert np.array_equal(decode(words, accelerator), instructions)
        assert len(disassemble(words, accelerator)) == len(instructions)

    check()


@pytest.mark.parametrize("accelerator", [PYNQ_A, BATCHED, ZCU102], ids=lambda a: a.parameters.name)
def test_decode_undoes_encode_of_micro_ops(accelerator: Accelerator) -> None:
    generator = np.random.default_rng(5)
    uops = np.zeros(500, dtype=UOP)
    for field in accelerator.formats.uop.fields:
        uops[field.name] = generator.integers(0, field.high + 1, 500)
    assert np.array_equal(decode_uops(encode_uops(uops, accelerator), accelerator), uops)


@pytest.mark.parametrize("accelerator", ALL, ids=lambda a: f"{a.parameters.name}-{a.isa}")
def test_fields_of_a_form_do_not_overlap(accelerator: Accelerator) -> None:
    layout = accelerator.formats
    for form in (layout.memory, layout.gemm, layout.alu, layout.uop):
        taken: set[int] = set()
        for field in form.fields:
            mine = {64 * field.word + bit for bit in range(field.bit, field.bit + field.width)}
            assert field.bit + field.width <= 64
            assert not taken & mine, field.name
            taken |= mine


def test_disassembly_describes_the_instruction() -> None:
    stream = np.concatenate([record(**LOAD), record(**GEMM), record(**ALU), record(opcode=Opcode.FINISH, pop_next=1)])
    lines = disassemble(encode(stream, PYNQ_A), PYNQ_A)
    assert lines[0].split(maxsplit=1)[1] == (
        "LOAD INP sram 291 dram 2309737967 size 5x6 stride 7 pad y 1+2 x 3+4 pop> push>"
    )
    assert lines[1].split(maxsplit=1)[1] == (
        "GEMM reset uop 4660..8192 loop 16383x10940 dst 2047,1025 src 1026,1027 wgt 513,1023 pop< push<"
    )
    assert lines[2].split(maxsplit=1)[1] == "ALU SHR uop 0..1 loop 1x9 dst 0,0 src 0,0 imm -2"
    assert lines[3].split(maxsplit=1)[1] == "FINISH pop>"


def test_words_of_another_shape_or_opcode_are_refused() -> None:
    with pytest.raises(EncodingError, match=r"this ISA's are \(n, 4\)"):
        decode(np.zeros((1, 2), dtype=np.uint64), ZCU102)
    with pytest.raises(EncodingError, match="instruction 1 has opcode 7"):
        decode(np.array([[0, 0], [7, 0]], dtype=np.uint64), PYNQ_A)
