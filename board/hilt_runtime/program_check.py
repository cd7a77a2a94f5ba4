"""Checks of a program before it runs: memory that it reads and writes, indices on chip, dependence tokens.

An accelerator has no MMU: a STORE past its buffer overwrites whatever of the board lies there. A LOAD from an
address without memory can stop the whole bus, and a token that never comes stops the accelerator. A program that
passes runs to its end and touches its own buffers only, whatever its numbers are.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, NamedTuple, Tuple

import numpy as np

from hilt_runtime import isa

_OPCODES = np.uint64(7)
_OPERANDS: Dict[int, Tuple[Tuple[str, int, str], ...]] = {
    isa.GEMM: (("dst", isa.ACC, "accumulator"), ("src", isa.INP, "input"), ("wgt", isa.WGT, "weight")),
    isa.ALU: (("dst", isa.ACC, "accumulator"), ("src", isa.ACC, "accumulator")),
}
"""The units of a micro-op's fields, by opcode: the field, the memory type and its name."""
_LAST_ALU = 4


class ProgramCheckError(ValueError):
    """A program that would leave its buffers, use an index that is not there, or never end; names the instruction."""


class InstructionSet(NamedTuple):
    """The accelerator that programs are checked for."""

    sizes: isa.Sizes
    revision: str
    table: bool = False
    """Whether its STOREs can go by way of the table."""
    window: bool = False
    """Whether its GEMMs can read inputs of earlier iterations."""
    bands: bool = False
    """Whether its LOADs of INP can move lanes."""

    @property
    def formats(self) -> isa.FieldPlaces:
        return isa.formats(self.sizes, self.revision)

    @property
    def dram_base_bit(self) -> int:
        return isa.field_of(self.formats.memory, "dram_base").bit


class Transfers(NamedTuple):
    """The LOADs and STOREs of a program, each an array (m,). Memory is counted in elements of the memory type."""

    number: Any
    """Which instruction of the program."""
    store: Any
    memory_type: Any
    size: Any
    """Bytes of an element in memory."""
    start: Any
    """First element in memory."""
    end: Any
    """The element behind the last one in memory."""
    moves: Any
    """Whether it touches memory at all."""
    sram: Any
    sram_end: Any

    def name(self, place: int) -> str:
        """Return a transfer as messages name it."""
        opcode = "STORE" if self.store[place] else "LOAD"
        kind = isa.MEMORY_NAMES[int(self.memory_type[place])]
        return "instruction {} ({} of {})".format(int(self.number[place]), opcode, kind)


def transfers(words: Any, machine: InstructionSet, first: int = 0) -> Transfers:
    """Return the LOADs and STOREs of uint64 (n, words) from instruction `first` of a program on.

    Raises ProgramCheckError.
    """
    opcode = words[:, 0] & _OPCODES
    number = np.flatnonzero((opcode == isa.LOAD) | (opcode == isa.STORE))
    fields = isa.unpack(words[number], machine.formats.memory)
    store = fields["opcode"] == isa.STORE
    kind = _memory_types(fields, number + first, machine)
    moved = ~store & (kind == isa.INP) & ((fields["lane_shift"] | fields["lanes_kept"]) != 0)
    if not machine.bands:
        _refuse(moved, number + first, "is a LOAD that moves lanes, which the accelerator cannot, or the bundle hides")
    size = np.array(machine.sizes.element_bytes(machine.revision), dtype=np.int64)[kind]
    columns, stride = fields["x_size"], fields["x_stride"]
    rows = np.where(kind == isa.UOP, 1, fields["y_size"])  # micro-ops are one row, whatever y_size is
    padded = np.isin(kind, (isa.INP, isa.ACC, isa.ACC_8BIT)) & ~store
    high = rows + padded * (fields["y_pad_0"] + fields["y_pad_1"])
    wide = columns + padded * (fields["x_pad_0"] + fields["x_pad_1"])
    start = fields["dram_base"]
    end = start + (rows - 1) * stride + columns
    sram = fields["sram_base"]
    moves = (rows > 0) & (columns > 0) & (kind != isa.TABLE)
    return Transfers(number + first, store, kind, size, start, end, moves, sram, sram + high * wide)


def _memory_types(fields: Dict[str, Any], number: Any, machine: InstructionSet) -> Any:
    """Return the memory types of LOADs and STOREs. Raises ProgramCheckError for those that the machine has not."""
    written = fields["memory_type"]
    store = fields["opcode"] == isa.STORE
    unknown = ~store & ((written == isa.OUT) | (written > isa.ACC_8BIT))
    if unknown.any():
        wrong = int(np.argmax(unknown))
        text = "instruction {} loads memory type {}, which VTA does not load"
        raise ProgramCheckError(text.format(int(number[wrong]), int(written[wrong])))
    kind = np.where(store, isa.store_types(written, machine.revision, True), written)
    if not machine.table:
        text = "is a STORE by way of the table, which the accelerator has not, or the bundle does not name"
        _refuse(kind > isa.ACC_8BIT, number, text)
    fills = (fields["y_size"] == 1) & (fields["x_size"] == machine.sizes.table_elements)
    text = "is a STORE to the table of anything but one row of {} elements".format(machine.sizes.table_elements)
    _refuse((kind == isa.TABLE) & ~fills, number, text)
    return kind


def check_bounds(words: Any, machine: InstructionSet, buffers: Iterable[Tuple[str, int, int]]) -> None:
    """Check that a relocated program reads and writes within its buffers only.

    `words`: uint64 (n, words). `buffers`: (name, first byte, bytes) of physical memory. Raises ProgramCheckError.
    """
    found = transfers(words, machine)
    inside = ~found.moves
    named: List[Tuple[str, int, int]] = list(buffers)
    for _, lowest, count in named:
        inside |= (found.start * found.size >= lowest) & (found.end * found.size <= lowest + count)
    require_inside(found, inside, "outside the program's buffers ({})".format(", ".join(each[0] for each in named)))


def require_inside(found: Transfers, inside: Any, outside: str) -> None:
    """Raise ProgramCheckError for the first transfer that is not `inside`, bool (m,); `outside` says of what."""
    if inside.all():
        return
    wrong = int(np.argmin(inside))
    size = int(found.size[wrong])
    text = "{} covers bytes 0x{:x} to 0x{:x}, {}"
    first, end = int(found.start[wrong]) * size, int(found.end[wrong]) * size
    raise ProgramCheckError(text.format(found.name(wrong), first, end, outside))


class OnChip:
    """Checks indices into the buffers on chip, instruction by instruction.

    Micro-ops are loaded, and the table is written, before they are used.
    """

    def __init__(self, machine: InstructionSet, uops: Any) -> None:
        """`uops`: the memory that LOADs of micro-ops read, from element 0 of their dram_base on: uint64 (m,)."""
        self._machine = machine
        self._limits = machine.sizes.depths(machine.revision)
        self._memory = uops
        self._held = np.zeros(self._limits[isa.UOP], dtype=np.uint64)
        self._known = np.zeros(self._limits[isa.UOP], dtype=bool)
        self._table = False  # whether a STORE has written it
        self.micro_ops = 0.0
        """Micro-ops that the instructions so far issue; each takes a cycle at least."""

    def check(self, words: Any, found: Transfers, first: int) -> None:
        """Check the next instructions, the first of which has number `first`. Raises ProgramCheckError."""
        depths = np.array(self._limits, dtype=np.int64)[found.memory_type]
        beyond = (found.sram_end > depths) & (found.sram_end > found.sram)
        if beyond.any():
            wrong = int(np.argmax(beyond))
            text = "{} ends at element {} of a buffer of {}"
            raise ProgramCheckError(text.format(found.name(wrong), int(found.sram_end[wrong]), int(depths[wrong])))
        self._check_table(found)
        operations = _operations(words, self._machine, first)
        loads = np.flatnonzero((found.memory_type == isa.UOP) & found.moves)
        ends = [*found.number[loads].tolist(), first + len(words)]
        begin = first
        for load, end in zip([*loads.tolist(), -1], ends):
            for opcode, operation in operations.items():
                low, high = np.searchsorted(operation["number"], (begin, end))
                if high > low:
                    self._operate(opcode, {name: values[low:high] for name, values in operation.items()})
            if load >= 0:
                span = slice(int(found.sram[load]), int(found.sram_end[load]))
                self._known[span] = True
                self._held[span] = self._memory[int(found.start[load]) : int(found.end[load])]
            begin = end

    def _check_table(self, found: Transfers) -> None:
        """Check that the table is written before a STORE goes by way of it: both are in one queue."""
        written = np.cumsum(found.memory_type == isa.TABLE) > 0
        missing = (found.memory_type == isa.OUT_BY_TABLE) & found.moves & ~written
        _refuse(missing & (not self._table), found.number, "goes by way of a table that no STORE before it has written")
        self._table |= bool(written[-1:].any())

    def _operate(self, opcode: int, operation: Dict[str, Any]) -> None:
        """Check GEMMs or ALU instructions that run the micro-ops held now."""
        number, limits = operation["number"], self._limits
        turns = operation["iter_out"].astype(np.float64) * operation["iter_in"]
        self.micro_ops += float((turns * (operation["uop_end"] - operation["uop_bgn"])).sum())
        _refuse(operation["uop_end"] > limits[isa.UOP], number, "reads micro-ops past their buffer")
        ranges, which = np.unique(operation["uop_bgn"] << 32 | operation["uop_end"], return_inverse=True)
        begins, ends, which = ranges >> 32, ranges & 0xFFFFFFFF, which.reshape(-1)
        missing = _range_max(~self._known, begins, ends)
        _refuse(missing[which], number, "runs micro-ops that no LOAD before it has brought")
        columns = isa.unpack(self._held[:, None], self._machine.formats.uop)
        for name, kind, text in _OPERANDS[opcode]:
            reach = _range_max(columns[name], begins, ends)[which]
            for loop in ("out", "in"):
                reach = reach + (operation["iter_" + loop] - 1) * operation["{}_factor_{}".format(name, loop)]
            beyond = reach >= limits[kind]
            if opcode == isa.ALU and name == "src":
                beyond &= operation["use_imm"] == 0
            _refuse(beyond, number, "reaches past the {} buffer of {} elements".format(text, limits[kind]))


def _range_max(values: Any, begins: Any, ends: Any) -> Any:
    """Return the largest of values[begin:end] for each pair, none empty; `begins` ascend."""
    lengths = ends - begins
    if int(lengths.sum()) <= 32 * len(values):
        pairs = np.stack((begins, ends), axis=1).reshape(-1)
        return np.maximum.reduceat(np.append(values, values[-1:]), pairs)[::2]
    # Many long ranges: the largest of each 2 ** level values from each place on; two of them cover a range.
    levels = np.frexp(lengths.astype(np.float64))[1] - 1
    result = np.zeros(len(begins), dtype=values.dtype)
    table, span = values, 1
    for level in range(int(levels.max()) + 1):
        chosen = levels == level
        result[chosen] = np.maximum(table[begins[chosen]], table[ends[chosen] - span])
        table, span = np.maximum(table[:-span], table[span:]), 2 * span
    return result


def _operations(words: Any, machine: InstructionSet, first: int) -> Dict[int, Dict[str, Any]]:
    """Return the GEMMs and the ALU instructions that do anything, with their numbers, by opcode."""
    opcodes = words[:, 0] & _OPCODES
    found = {}
    for opcode, fields in ((isa.GEMM, machine.formats.gemm), (isa.ALU, machine.formats.alu)):
        number = np.flatnonzero(opcodes == opcode)
        columns = {**isa.unpack(words[number], fields), "number": number + first}
        if opcode == isa.ALU:
            _refuse(columns["alu_opcode"] > _LAST_ALU, columns["number"], "is an ALU operation that VTA has not")
        else:
            _check_windows(columns, machine)
        some = (columns["iter_out"] > 0) & (columns["iter_in"] > 0) & (columns["uop_end"] > columns["uop_bgn"])
        found[opcode] = {name: values[some] for name, values in columns.items()}
    return found


def _check_windows(gemms: Dict[str, Any], machine: InstructionSet) -> None:
    """Check the window GEMMs, whose weights do not move on: the factors say which elements they leave."""
    window = gemms["window"] != 0
    if not machine.window or not isa.window_rows(machine.sizes.block):
        text = "is a window GEMM, which the accelerator has not, or the bundle does not name"
        _refuse(window, gemms["number"], text)
    columns = gemms["iter_in"]
    fits = (gemms["uop_end"] == gemms["uop_bgn"] + 1) & (columns >= 2) & (columns <= isa.WINDOW_LINE)
    text = "is a window GEMM of anything but one micro-op and 2 to {} columns".format(isa.WINDOW_LINE)
    _refuse(window & ~fits, gemms["number"], text)
    for loop in ("out", "in"):
        gemms["wgt_factor_" + loop] = np.where(window, 0, gemms["wgt_factor_" + loop])


def _refuse(wrong: Any, number: Any, text: str) -> None:
    if wrong.any():
        raise ProgramCheckError("instruction {} {}".format(int(number[int(np.argmax(wrong))]), text))


def check_tokens(words: Any, machine: InstructionSet) -> None:
    """Check that a program ends: one FINISH, the last; every token there when it is popped, none left behind.

    Instructions in program order, each run to its end before the next, must never wait. The stages then end in any
    order that they take, with instruction queues of any depth: each one's effect depends on its tokens alone. And
    FINISH must wait for the last STORE. Raises ProgramCheckError.
    """
    first = words[:, 0]
    opcode = (first & _OPCODES).astype(np.uint8)
    number = np.arange(len(words))
    _refuse(opcode > isa.ALU, number, "has an opcode that VTA has not")
    finishes = np.flatnonzero(opcode == isa.FINISH)
    if finishes.size != 1 or int(finishes[0]) != len(words) - 1:
        raise ProgramCheckError("a program ends with its one FINISH; this one has {}".format(finishes.size))
    memory_type = isa.field_of(machine.formats.memory, "memory_type")
    kind = (first >> np.uint64(memory_type.bit)) & np.uint64((1 << memory_type.width) - 1)
    load = (opcode == isa.LOAD) & ((kind == isa.INP) | (kind == isa.WGT))
    store = opcode == isa.STORE
    compute = ~load & ~store
    flags = {field.name: (first & np.uint64(1 << field.bit)) != 0 for field in machine.formats.memory[1:5]}
    _refuse(load & (flags["pop_prev"] | flags["push_prev"]), number, "is a LOAD, which has no stage before it")
    _refuse(store & (flags["pop_next"] | flags["push_next"]), number, "is a STORE, which has no stage behind it")
    for text, producer, push, consumer, pop in (
        ("load to compute", load, "push_next", compute, "pop_prev"),
        ("compute to load", compute, "push_prev", load, "pop_next"),
        ("compute to store", compute, "push_next", store, "pop_prev"),
        ("store to compute", store, "push_prev", compute, "pop_next"),
    ):
        _check_queue(text, np.flatnonzero(producer & flags[push]), np.flatnonzero(consumer & flags[pop]))
    stores = np.flatnonzero(store)
    if stores.size and not flags["push_prev"][stores[-1]]:
        text = "instruction {} is the last STORE, and FINISH does not wait for it"
        raise ProgramCheckError(text.format(int(stores[-1])))


def _check_queue(name: str, pushes: Any, pops: Any) -> None:
    """Check one queue of tokens: the instructions that push and those that pop, in program order."""
    if len(pushes) != len(pops):
        text = "{} tokens from {} are pushed and {} popped: the accelerator would wait for ever, now or in the next run"
        raise ProgramCheckError(text.format(len(pushes), name, len(pops)))
    if (pushes >= pops).any():
        wrong = int(pops[int(np.argmax(pushes >= pops))])
        raise ProgramCheckError("instruction {} waits for a token from {} that comes later".format(wrong, name))
    depth = isa.TOKEN_QUEUE_DEPTH
    if len(pushes) > depth and (pops[:-depth] >= pushes[depth:]).any():
        raise ProgramCheckError("more than {} tokens from {} wait at once".format(depth, name))
