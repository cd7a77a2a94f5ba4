"""Instructions and micro-ops as structured arrays, as words, and as text."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from hilt.vta.accelerator import Accelerator
from hilt.vta.fields import FieldOverflowError as FieldOverflowError
from hilt.vta.fields import IsaRevision
from hilt_runtime import isa as isa_of_the_board


class Opcode(IntEnum):
    LOAD = 0
    STORE = 1
    GEMM = 2
    FINISH = 3
    ALU = 4


class MemoryType(IntEnum):
    UOP = 0
    WGT = 1
    INP = 2
    ACC = 3
    OUT = 4
    ACC_8BIT = 5
    OUT_BY_TABLE = 6
    """STORE: OUT, each byte by way of the table."""
    TABLE = 7
    """STORE: OUT to the table, one row of `Accelerator.table_elements`."""


class AluOpcode(IntEnum):
    MIN = 0
    MAX = 1
    ADD = 2
    SHR = 3
    MUL = 4


class EncodingError(ValueError):
    """An instruction that this ISA does not have."""


_FLAGS = ("opcode", "pop_prev", "pop_next", "push_prev", "push_next")
LANES = ("lane_shift", "lanes_kept")
"""The fields of a LOAD of INP that moves lanes: hilt_runtime.isa."""
_MEMORY = (
    *("memory_type", "sram_base", "dram_base", "y_size", "x_size", "x_stride"),
    *("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"),
    *LANES,
)
_LOOPS = (
    *("reset", "uop_bgn", "uop_end", "iter_out", "iter_in"),
    *("dst_factor_out", "dst_factor_in", "src_factor_out", "src_factor_in"),
)
_GEMM = (*_LOOPS, "wgt_factor_out", "wgt_factor_in", "window")
_ALU = (*_LOOPS, "alu_opcode", "use_imm", "imm")

INSTRUCTION = np.dtype(
    [(name, "i4" if name == "imm" else "u4") for name in dict.fromkeys((*_FLAGS, *_MEMORY, *_GEMM, *_ALU))]
)
"""One instruction of any kind; the fields that its opcode does not have are 0."""

UOP = np.dtype([("dst", "u4"), ("src", "u4"), ("wgt", "u4")])


def encode(instructions: NDArray[np.void], accelerator: Accelerator) -> NDArray[np.uint64]:
    """Words (n, 2), or (n, 4) in the wide ISA, of INSTRUCTION records (n,).

    Revision A has two bits for the memory type, of a STORE the low ones: OUT is 0, as VTA's own compiler writes it.
    Raises FieldOverflowError, naming the field, and EncodingError for opcodes, memory types and ALU operations that the
    revision lacks, and for STOREs by way of a table, window GEMMs or LOADs that move lanes where the accelerator lacks
    these.
    """
    layout = accelerator.formats
    words = np.zeros((len(instructions), layout.instruction_words), dtype=np.uint64)
    kinds = instructions["opcode"]
    if len(kinds) and int(kinds.max()) > Opcode.ALU:
        raise EncodingError(f"opcode {int(kinds.max())} is not an instruction")
    for form, names, opcodes, settle in (
        (layout.memory, _MEMORY, (Opcode.LOAD, Opcode.STORE), _settle_memory),
        (layout.gemm, _GEMM, (Opcode.GEMM, Opcode.FINISH), _require_gemm),
        (layout.alu, _ALU, (Opcode.ALU,), _require_alu),
    ):
        chosen = np.flatnonzero(np.isin(kinds, opcodes))
        if not chosen.size:
            continue
        columns = {name: instructions[name][chosen].astype(np.int64) for name in (*_FLAGS, *names)}
        settle(columns, accelerator)
        words[chosen] = form.pack(columns, chosen.size)
    return words


def _settle_memory(columns: dict[str, NDArray[np.int64]], accelerator: Accelerator) -> None:
    """Check LOADs and STOREs, and write their memory types as the revision has them. Raises EncodingError."""
    _require_table(columns, accelerator)
    _require_bands(columns, accelerator)
    if accelerator.isa is IsaRevision.A:
        columns["memory_type"] = _revision_a_memory_types(columns)


def _require_gemm(columns: dict[str, NDArray[np.int64]], accelerator: Accelerator) -> None:
    if not accelerator.window_rows and np.any(columns["window"]):
        raise EncodingError("a window GEMM, which this accelerator lacks")


def _require_alu(columns: dict[str, NDArray[np.int64]], accelerator: Accelerator) -> None:
    if accelerator.isa is IsaRevision.A and AluOpcode.MUL in columns["alu_opcode"]:
        raise EncodingError("ISA revision A has no MUL")


def _revision_a_memory_types(columns: dict[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    loads = columns["opcode"] == Opcode.LOAD
    if np.any(columns["memory_type"][loads] > MemoryType.ACC):
        raise EncodingError("ISA revision A loads UOP, WGT, INP and ACC only")
    return np.where(loads, columns["memory_type"], np.maximum(columns["memory_type"] - MemoryType.OUT, 0))


def _require_table(columns: dict[str, NDArray[np.int64]], accelerator: Accelerator) -> None:
    tabled = (columns["opcode"] == Opcode.STORE) & (columns["memory_type"] >= MemoryType.OUT_BY_TABLE)
    if not accelerator.table and np.any(tabled):
        raise EncodingError("a STORE by way of the table, which this accelerator lacks")


def _require_bands(columns: dict[str, NDArray[np.int64]], accelerator: Accelerator) -> None:
    moved = (columns["lane_shift"] | columns["lanes_kept"]) != 0
    inputs = (columns["opcode"] == Opcode.LOAD) & (columns["memory_type"] == MemoryType.INP)
    if np.any(moved & ~inputs):
        raise EncodingError("lanes are moved by LOADs of INP only")
    if not accelerator.bands and np.any(moved):
        raise EncodingError("a LOAD that moves lanes, which this accelerator cannot")
    if np.any(columns["lanes_kept"] >> accelerator.parameters.batch):
        raise EncodingError("a LOAD keeps lanes that this accelerator lacks")


def decode(words: NDArray[np.uint64], accelerator: Accelerator) -> NDArray[np.void]:
    """INSTRUCTION records (n,) of words (n, 2) or (n, 4). Raises EncodingError for an opcode that no VTA has."""
    layout = accelerator.formats
    if words.ndim != 2 or words.shape[1] != layout.instruction_words:
        raise EncodingError(f"instructions of shape {words.shape}; this ISA's are (n, {layout.instruction_words})")
    instructions = np.zeros(len(words), dtype=INSTRUCTION)
    kinds = words[:, 0] & np.uint64(7)
    if len(kinds) and int(kinds.max()) > Opcode.ALU:
        raise EncodingError(f"instruction {int(np.argmax(kinds > Opcode.ALU))} has opcode {int(kinds.max())}")
    for form, opcodes in (
        (layout.memory, (Opcode.LOAD, Opcode.STORE)),
        (layout.gemm, (Opcode.GEMM, Opcode.FINISH)),
        (layout.alu, (Opcode.ALU,)),
    ):
        chosen = np.flatnonzero(np.isin(kinds, opcodes))
        for name, column in form.unpack(words[chosen]).items():
            instructions[name][chosen] = column
    if not accelerator.window_rows:
        instructions["window"] = 0
    inputs = (kinds == Opcode.LOAD) & (instructions["memory_type"] == MemoryType.INP)
    for name in LANES:
        instructions[name] *= inputs & accelerator.bands
    if accelerator.isa is IsaRevision.A:
        stores = kinds == Opcode.STORE
        written = instructions["memory_type"][stores]
        instructions["memory_type"][stores] = isa_of_the_board.store_types(written, "A", accelerator.table)
    return instructions


def uses_table(words: NDArray[np.uint64], accelerator: Accelerator) -> bool:
    """Return whether any STORE of a program writes the table or goes by way of it."""
    field = accelerator.formats.memory.by_name["memory_type"]
    stores = words[(words[:, 0] & np.uint64(7)) == Opcode.STORE, 0]
    written = (stores >> np.uint64(field.bit)) & np.uint64(field.mask)
    types = isa_of_the_board.store_types(written, str(accelerator.isa), accelerator.table)
    return bool(np.any(types != MemoryType.OUT))


def uses_window(words: NDArray[np.uint64], accelerator: Accelerator) -> bool:
    """Return whether any GEMM of a program is a window GEMM."""
    field = accelerator.formats.gemm.by_name["window"]
    gemms = words[(words[:, 0] & np.uint64(7)) == Opcode.GEMM, 0]
    return bool(accelerator.window_rows) and bool(np.any((gemms >> np.uint64(field.bit)) & np.uint64(field.mask)))


def multiplies(records: NDArray[np.void]) -> NDArray[np.bool_]:
    """Return which INSTRUCTION records (n,) read inputs and weights: GEMMs but those that only reset."""
    found: NDArray[np.bool_] = (records["opcode"] == Opcode.GEMM) & ((records["reset"] == 0) | (records["window"] == 1))
    return found


def uses_bands(words: NDArray[np.uint64], accelerator: Accelerator) -> bool:
    """Return whether any LOAD of a program moves lanes."""
    records = decode(words, accelerator)
    return any(np.any(records[name]) for name in LANES)


def lane_shift(field: int) -> int:
    """Return by how many lanes a LOAD's source is ahead: 0, 1, 2 or -1."""
    return -1 if field == 3 else field


def encode_uops(uops: NDArray[np.void], accelerator: Accelerator) -> NDArray[np.uint32]:
    """Words (m, 1), or (m, 2) in the wide ISA (low half first), of UOP records (m,). Raises FieldOverflowError."""
    columns = {name: uops[name].astype(np.int64) for name in ("dst", "src", "wgt")}
    return uop_words(accelerator.formats.uop.pack(columns, len(uops)), accelerator)


def uop_words(packed: NDArray[np.uint64], accelerator: Accelerator) -> NDArray[np.uint32]:
    """Micro-ops packed by `formats.uop` (m, 1) as they lie in memory: uint32 (m, 1) or (m, 2)."""
    if accelerator.isa is IsaRevision.WIDE:
        return np.ascontiguousarray(packed).astype("<u8", copy=False).view("<u4").reshape(len(packed), 2)
    return packed.astype(np.uint32)


def decode_uops(words: NDArray[np.uint32], accelerator: Accelerator) -> NDArray[np.void]:
    """UOP records (m,) of words (m, 1) or (m, 2)."""
    wanted = accelerator.uop_element_bytes // 4
    if words.ndim != 2 or words.shape[1] != wanted:
        raise EncodingError(f"micro-ops of shape {words.shape}; this ISA's are (m, {wanted})")
    packed = words[:, :1].astype(np.uint64)
    if wanted == 2:
        packed |= words[:, 1:].astype(np.uint64) << np.uint64(32)
    uops = np.zeros(len(words), dtype=UOP)
    for name, column in accelerator.formats.uop.unpack(packed).items():
        uops[name] = column
    return uops


def disassemble(words: NDArray[np.uint64], accelerator: Accelerator) -> list[str]:
    """Return one line for each instruction: number, effect, and tokens (`pop<` is pop_prev, `push>` push_next)."""
    return [f"{number:6d}  {_line(record)}" for number, record in enumerate(decode(words, accelerator))]


_TOKENS = (("pop_prev", "pop<"), ("pop_next", "pop>"), ("push_prev", "push<"), ("push_next", "push>"))


def _line(record: np.void) -> str:
    opcode = Opcode(int(record["opcode"]))
    tokens = "".join(f" {text}" for name, text in _TOKENS if record[name])
    if opcode is Opcode.FINISH:
        return f"FINISH{tokens}"
    if opcode in (Opcode.LOAD, Opcode.STORE):
        pads = ""
        if any(record[name] for name in ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")):
            pads = " pad y {y_pad_0}+{y_pad_1} x {x_pad_0}+{x_pad_1}"
        if any(record[name] for name in LANES):
            pads += f" lanes {lane_shift(int(record['lane_shift'])):+d} kept {int(record['lanes_kept']):04b}"
        text = "{name} {type} sram {sram_base} dram {dram_base} size {y_size}x{x_size} stride {x_stride}" + pads
        memory = _name(MemoryType, record["memory_type"])
        return text.format(name=opcode.name, type=memory, **_values(record)) + tokens
    text = (
        "uop {uop_bgn}..{uop_end} loop {iter_out}x{iter_in} dst {dst_factor_out},{dst_factor_in}"
        " src {src_factor_out},{src_factor_in}"
    )
    if opcode is Opcode.GEMM:
        name = f"GEMM{' window' if record['window'] else ''}{' reset' if record['reset'] else ''}"
        text += " wgt {wgt_factor_out},{wgt_factor_in}"
    else:
        name = f"ALU {_name(AluOpcode, record['alu_opcode'])}"
        text += " imm {imm}" if record["use_imm"] else ""
    return f"{name} {text.format(**_values(record))}{tokens}"


def _name(kind: type[IntEnum], value: int) -> str:
    """Return the name of a value, or its number if it is reserved."""
    return kind(value).name if value in list(kind) else str(int(value))


def _values(record: np.void) -> dict[str, int]:
    return {name: int(record[name]) for name in INSTRUCTION.names or ()}
