"""Random legal programs: every opcode, memory type, pad, stride, factor, immediate and range of micro-ops, in range and
ordered by tokens only where stages touch the same thing.

The same seed and accelerator give the same program, and a smaller `count` gives the same program cut short: so the
first instruction whose effect differs between two models is found by bisection (compare_models.py).

The memory of a program: instructions, a pool of micro-ops, random bytes that are only read, and a region that STOREs
write and loads sometimes read back. The program ends by storing the whole of `out` and each byte of the whole
accumulator, so that all of the accelerator's state that can be seen is seen.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.vta.accelerator import Accelerator, IsaRevision
from hilt.vta.isa import INSTRUCTION, UOP, AluOpcode, MemoryType, Opcode, encode, encode_uops
from tests.rtl.random_tiles import TileAlus
from tests.rtl.token_order import Access, Fields, Stage, TokenOrder

POOL_UOPS = 4096
DATA_BYTES = 1 << 20
PAGE = 4096


@dataclass(frozen=True)
class RandomProgram:
    """`image` is the memory before the run, uint8, from `base` on; `records` are the instructions as INSTRUCTION. All
    micro-ops lie in the POOL_UOPS from byte address `uop_addr` on."""

    base: int
    image: NDArray[np.uint8]
    insn_addr: int
    uop_addr: int
    records: NDArray[np.void]


def random_program(accelerator: Accelerator, seed: int, count: int, *, fill: bool | None = None) -> RandomProgram:
    """Return a program of `count` random instructions, besides those that order, begin and end it.

    With `fill` it writes all of every buffer first, so that it does not show their content at power-on. Without, it
    takes them to be zero. None leaves the choice to the seed.
    """
    return _Generator(accelerator, seed).program(count, fill)


class _Region:
    """Bytes [start, start + size) of memory."""

    def __init__(self, start: int, size: int) -> None:
        self.start, self.size = start, size
        self.end = start + size


class _Generator:
    def __init__(self, accelerator: Accelerator, seed: int) -> None:
        self.accelerator = accelerator
        self.random = random.Random(seed)
        arrays = np.random.default_rng(seed)
        parameters = accelerator.parameters
        self.depth = {
            MemoryType.UOP: accelerator.uop_depth,
            MemoryType.INP: parameters.inp_depth,
            MemoryType.WGT: parameters.wgt_depth,
            MemoryType.ACC: parameters.acc_depth,
            MemoryType.ACC_8BIT: parameters.acc_depth,
            MemoryType.OUT: parameters.acc_depth,
        }
        self.element = {
            MemoryType.UOP: accelerator.uop_element_bytes,
            MemoryType.INP: parameters.inp_element_bytes,
            MemoryType.WGT: parameters.wgt_element_bytes,
            MemoryType.ACC: parameters.acc_element_bytes,
            MemoryType.ACC_8BIT: parameters.out_element_bytes,
            MemoryType.OUT: parameters.out_element_bytes,
        }
        self.table = accelerator.table and accelerator.table_elements <= self.depth[MemoryType.OUT]
        self.base = self.random.choice((0, 0x1000, 0x1000_0000, 0x7FF0_0000))
        insn_start = self.base + self.random.choice((0, 2 * PAGE))
        self.insn = _Region(insn_start, 1 << 18)
        self.pool = _Region(self.insn.end, POOL_UOPS * accelerator.uop_element_bytes)
        self.data = _Region(self.pool.end, DATA_BYTES)
        out_bytes = self.depth[MemoryType.OUT] * self.element[MemoryType.OUT]
        self.out = _Region(self.data.end, 8 * out_bytes)
        self.final = _Region(self.out.end, 6 * out_bytes)
        self.image = np.zeros(self.final.end - self.base, dtype=np.uint8)
        self._write(self.data.start, arrays.integers(0, 256, DATA_BYTES, dtype=np.uint8))
        self._write(self.out.start, np.full(self.final.end - self.out.start, 0xC3, dtype=np.uint8))
        self.pool_uops = self._random_uops(arrays)
        self._write(self.pool.start, encode_uops(self.pool_uops, accelerator).view(np.uint8).ravel())
        self.sram_uops = np.zeros(accelerator.uop_depth, dtype=UOP)
        self.order = TokenOrder(self._nothing)
        self.serial = self.random.random() < 0.1
        limit = accelerator.formats.alu.by_name["dst_factor_out"].high
        self.tiles = TileAlus(self.random, parameters.acc_depth, limit)

    def program(self, count: int, fill: bool | None) -> RandomProgram:
        by_seed = self.random.random() < 0.3
        if by_seed if fill is None else fill:
            self._fill()
        for _ in range(count):
            self._one()
        self._end()
        records = np.zeros(len(self.order.instructions), dtype=INSTRUCTION)
        for number, fields in enumerate(self.order.instructions):
            for name, value in fields.items():
                records[name][number] = value
        words = encode(records, self.accelerator)
        assert words.nbytes <= self.insn.size
        self._write(self.insn.start, np.ascontiguousarray(words).view(np.uint8).ravel())
        return RandomProgram(self.base, self.image, self.insn.start, self.pool.start, records)

    def _write(self, address: int, contents: NDArray[np.uint8]) -> None:
        self.image[address - self.base : address - self.base + len(contents)] = contents

    def _random_uops(self, arrays: np.random.Generator) -> NDArray[np.void]:
        """Runs of 32 micro-ops, each run within a window: accumulators collide and ranges stay apart; some anywhere."""
        uops = np.zeros(POOL_UOPS, dtype=UOP)
        runs = POOL_UOPS // 32
        depths = {
            "dst": self.depth[MemoryType.ACC],
            "src": min(self.depth[MemoryType.INP], self.depth[MemoryType.ACC]),
            "wgt": self.depth[MemoryType.WGT],
        }
        for name, depth in depths.items():
            width = np.minimum(arrays.choice([1, 2, 4, 8, 32, 64, depth], runs), depth)
            start = (arrays.random(runs) * (depth - width + 1)).astype(np.int64)
            within = (arrays.random((runs, 32)) * width[:, None]).astype(np.int64)
            uops[name] = (start[:, None] + within).ravel()
        uops[-1] = (0, 0, 0)  # for the end
        return uops

    def _fill(self) -> None:
        """Fill all of every buffer; `out` by way of the accumulator."""
        for sram in range(0, self.depth[MemoryType.UOP], POOL_UOPS):
            count = min(POOL_UOPS, self.depth[MemoryType.UOP] - sram)
            dram = self.pool.start // self.element[MemoryType.UOP]
            self._emit(self._memory(Opcode.LOAD, MemoryType.UOP, sram, dram, 1, count, count), [])
            self.sram_uops[sram : sram + count] = self.pool_uops[:count]
        for memory_type in (MemoryType.INP, MemoryType.WGT, MemoryType.ACC):
            depth, element = self.depth[memory_type], self.element[memory_type]
            fields = self._memory(Opcode.LOAD, memory_type, 0, self.data.start // element, 1, depth, depth)
            self._emit(fields, [Access(memory_type.name, 0, depth - 1, True)])
        self._use_uop_zero()
        self._all_accumulators(AluOpcode.ADD, 0)
        if self.table:
            self._fill_table()

    def _end(self) -> None:
        """Show `out`, then the accumulator byte by byte, by way of the table too, then finish when all is written."""
        depth, element = self.depth[MemoryType.OUT], self.element[MemoryType.OUT]
        self._use_uop_zero()
        for part in range(5):
            if part:
                self._all_accumulators(AluOpcode.ADD if part == 1 else AluOpcode.SHR, 0 if part == 1 else 8)
            start = (self.final.start + part * depth * element) // element
            fields = self._memory(Opcode.STORE, MemoryType.OUT, 0, start, 1, depth, depth)
            self._emit(fields, [Access("OUT", 0, depth - 1, False)], after_all=True)
            if part == 1 and self.table:
                start = self.final.end // element - depth
                fields = self._memory(Opcode.STORE, MemoryType.OUT_BY_TABLE, 0, start, 1, depth, depth)
                self._emit(fields, [Access("OUT", 0, depth - 1, False)], after_all=True)
        self.order.add(Stage.COMPUTE, {"opcode": Opcode.FINISH}, after_all=True)

    def _use_uop_zero(self) -> None:
        """Micro-op 0 becomes dst 0, src 0: for the loops over the whole accumulator."""
        last = self.pool.end // self.element[MemoryType.UOP] - 1
        self._emit(self._memory(Opcode.LOAD, MemoryType.UOP, 0, last, 1, 1, 1), [])
        self.sram_uops[0] = (0, 0, 0)

    def _all_accumulators(self, operation: AluOpcode, imm: int) -> None:
        depth = self.depth[MemoryType.ACC]
        inner = min(depth, 64)
        fields = {
            **{"opcode": Opcode.ALU, "uop_bgn": 0, "uop_end": 1, "iter_out": depth // inner, "iter_in": inner},
            **{"dst_factor_out": inner, "dst_factor_in": 1, "src_factor_out": inner, "src_factor_in": 1},
            **{"alu_opcode": operation, "use_imm": 1, "imm": imm},
        }
        self._emit(fields, [Access("OUT", 0, depth - 1, True)])

    def _one(self) -> None:
        if self.tiles.last and self.random.random() < 0.6:
            self._alu_over_a_tile(same=True)
            return
        choice = self.random.random()
        if choice < 0.40:
            self._load()
        elif choice < 0.62:
            self._gemm()
        elif choice < 0.82:
            self._alu()
        elif choice < 0.98:
            self._fill_table() if self.table and self.random.random() < 0.2 else self._store()
        else:
            self.order.add(Stage.COMPUTE, self._nothing(), after_all=self.random.random() < 0.5)

    def _emit(self, fields: Fields, accesses: list[Access], *, after_all: bool = False) -> None:
        if fields["opcode"] == Opcode.STORE:
            stage = Stage.STORE
        elif fields["opcode"] == Opcode.LOAD and fields["memory_type"] in (MemoryType.INP, MemoryType.WGT):
            stage = Stage.LOAD
        else:
            stage = Stage.COMPUTE
        spurious = self.random.random() < 0.05
        self.order.add(stage, fields, accesses, after_all=after_all or self.serial or spurious)

    def _nothing(self) -> Fields:
        """A compute instruction that does nothing."""
        kind = self.random.randrange(4)
        if kind == 0:
            sram = self.random.randrange(self.depth[MemoryType.UOP])
            return self._memory(Opcode.LOAD, MemoryType.UOP, sram, 0, 1, 0, 0)
        if kind == 1:
            return {"opcode": Opcode.GEMM, "uop_bgn": 0, "uop_end": 4, "iter_out": 0, "iter_in": 3}
        if kind == 2:
            return {"opcode": Opcode.GEMM, "uop_bgn": 5, "uop_end": 5, "iter_out": 2, "iter_in": 2, "reset": 1}
        return {"opcode": Opcode.ALU, "uop_bgn": 0, "uop_end": 4, "iter_out": 2, "iter_in": 0, "use_imm": 1}

    @staticmethod
    def _memory(
        opcode: Opcode, memory_type: MemoryType, sram: int, dram: int, y_size: int, x_size: int, x_stride: int
    ) -> Fields:
        return {
            **{"opcode": opcode, "memory_type": memory_type, "sram_base": sram, "dram_base": dram},
            **{"y_size": y_size, "x_size": x_size, "x_stride": x_stride},
        }

    def _load(self) -> None:
        types = [MemoryType.UOP, MemoryType.INP, MemoryType.INP, MemoryType.WGT, MemoryType.ACC]
        if self.accelerator.isa is not IsaRevision.A:
            types.append(MemoryType.ACC_8BIT)
        memory_type = self.random.choice(types)
        if memory_type is MemoryType.UOP:
            self._load_uops()
        else:
            self._load_tensors(memory_type)

    def _load_uops(self) -> None:
        """One row, whatever y_size, x_stride and the pads say."""
        depth = self.depth[MemoryType.UOP]
        x_size = self.random.choice((0, 1, 2, 3, 32, 33, self.random.randrange(POOL_UOPS // 8)))
        sram = self._fit(x_size, depth)
        first = self.random.randrange(POOL_UOPS - x_size)
        dram = self.pool.start // self.element[MemoryType.UOP] + first if x_size else self.random.getrandbits(32)
        y_size = self.random.choice((1, 1, 1, 0, 3))
        fields = self._memory(Opcode.LOAD, MemoryType.UOP, sram, dram, y_size, x_size, self.random.getrandbits(16))
        if self.random.random() < 0.2:
            fields.update(self._pads())
        self.sram_uops[sram : sram + x_size] = self.pool_uops[first : first + x_size]
        self._emit(fields, [])

    def _load_tensors(self, memory_type: MemoryType) -> None:
        depth = self.depth[memory_type]
        y_size, x_size = self._shape(depth)
        pads = self._pads() if self.random.random() < 0.4 else {}
        effective = {} if memory_type is MemoryType.WGT else pads
        width = effective.get("x_pad_0", 0) + x_size + effective.get("x_pad_1", 0)
        height = effective.get("y_pad_0", 0) + y_size + effective.get("y_pad_1", 0)
        if width * height > depth:
            pads, width, height = {}, x_size, y_size
        sram = self._fit(width * height, depth)
        region = self.out if self.random.random() < 0.08 else self.data
        dram, stride = self._rows(region, self.element[memory_type], y_size, x_size)
        fields = self._memory(Opcode.LOAD, memory_type, sram, dram, y_size, x_size, stride) | pads
        if memory_type is MemoryType.INP and self.accelerator.bands and self.random.random() < 0.5:
            kept = self.random.getrandbits(self.accelerator.parameters.batch)
            fields |= {"lane_shift": self.random.randrange(4), "lanes_kept": self.random.choice((0, kept))}
        accesses = []
        if width * height and memory_type in (MemoryType.INP, MemoryType.WGT):
            accesses.append(Access(memory_type.name, sram, sram + width * height - 1, True))
        if y_size and x_size and region is self.out:
            accesses.append(self._memory_access(dram, stride, y_size, x_size, self.element[memory_type], False))
        self._emit(fields, accesses)

    def _store(self) -> None:
        depth, element = self.depth[MemoryType.OUT], self.element[MemoryType.OUT]
        y_size, x_size = self._shape(depth)
        sram = self._fit(y_size * x_size, depth)
        dram, stride = self._rows(self.out, element, y_size, x_size)
        tabled = self.table and self.random.random() < 0.4
        memory_type = MemoryType.OUT_BY_TABLE if tabled else MemoryType.OUT
        fields = self._memory(Opcode.STORE, memory_type, sram, dram, y_size, x_size, stride)
        accesses = []
        if y_size and x_size:
            accesses = [
                Access("OUT", sram, sram + y_size * x_size - 1, False),
                self._memory_access(dram, stride, y_size, x_size, element, True),
            ]
        self._emit(fields, accesses)

    def _fill_table(self) -> None:
        """Its place in memory, its stride and its pads may be anything."""
        count = self.accelerator.table_elements
        sram = self._fit(count, self.depth[MemoryType.OUT])
        dram, stride = self.random.getrandbits(32), self.random.getrandbits(16)
        fields = self._memory(Opcode.STORE, MemoryType.TABLE, sram, dram, 1, count, stride)
        self._emit(fields | self._pads(), [Access("OUT", sram, sram + count - 1, False)])

    def _memory_access(self, dram: int, stride: int, y_size: int, x_size: int, element: int, write: bool) -> Access:
        return Access("memory", dram * element, (dram + (y_size - 1) * stride + x_size) * element - 1, write)

    def _shape(self, depth: int) -> tuple[int, int]:
        """(y_size, x_size), mostly small, sometimes nothing, sometimes all of the buffer."""
        kind = self.random.random()
        if kind < 0.08:
            return self.random.choice(((0, 0), (0, 3), (4, 0), (1, 0)))
        if kind < 0.10:
            return 1, depth
        if kind < 0.13:
            y_size = self.random.choice((2, 4, 8))
            return y_size, depth // y_size // self.random.choice((1, 2, 4))
        return self.random.randint(1, min(6, depth)), self.random.randint(1, max(1, min(24, depth // 6)))

    def _pads(self) -> Fields:
        names = ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")
        return {name: self.random.choice((0, 0, 1, 1, 2, 3, 15)) for name in names}

    def _fit(self, count: int, depth: int) -> int:
        """Return a start in a buffer: anywhere, or against either end."""
        return (
            self.random.choice((0, depth - count, self.random.randint(0, depth - count)))
            if count
            else (self.random.randrange(depth))
        )

    def _rows(self, region: _Region, element: int, y_size: int, x_size: int) -> tuple[int, int]:
        """Return (dram_base, x_stride) of rows within `region`; anything at all if nothing is moved."""
        if not (y_size and x_size):
            return self.random.getrandbits(32), self.random.getrandbits(16)
        elements = region.size // element
        slack = (elements - x_size) // (y_size - 1) if y_size > 1 else 0xFFFF
        stride = min(
            self.random.choice(
                (x_size, x_size, x_size, 0, x_size - 1, x_size + self.random.randrange(8), self.random.getrandbits(16))
            ),
            slack,
            0xFFFF,
        )
        span = x_size + (y_size - 1) * stride
        return region.start // element + self.random.randint(0, elements - span), stride

    def _gemm(self) -> None:
        if self.accelerator.window_rows and self.random.random() < 0.3:
            self._window()
            return
        bgn, end, uops = self._uop_range()
        loops = self._loops()
        reset = int(self.random.random() < 0.15)
        fields = {"opcode": Opcode.GEMM, "reset": reset, "uop_bgn": bgn, "uop_end": end, **loops}
        spans = {}
        for name, memory_type in (("dst", MemoryType.ACC), ("src", MemoryType.INP), ("wgt", MemoryType.WGT)):
            factors, spans[name] = self._factors(name, uops[name], loops, memory_type)
            fields.update(factors)
        accesses = []
        if self._works(uops, loops):
            accesses = [
                Access("OUT", *spans["dst"], True),
                Access("INP", *spans["src"], False),
                Access("WGT", *spans["wgt"], False),
            ]
        self._emit(fields, accesses)

    def _window(self) -> None:
        """A window GEMM. What it skips and what it replaces may be anything; some write each accumulator once."""
        bgn = self.random.randrange(len(self.sram_uops))
        uops = self.sram_uops[bgn : bgn + 1]
        loops = {
            "iter_out": self.random.choice((0, 1, 2, 3, 4, 7)),
            "iter_in": self.random.choice((2, 3, 4, 7, 9, 128)),
        }
        fields = {"opcode": Opcode.GEMM, "window": 1, "uop_bgn": bgn, "uop_end": bgn + 1, **loops}
        fields["reset"] = int(self.random.random() < 0.4)
        for loop in ("out", "in"):
            limit = self.accelerator.formats.gemm.by_name[f"wgt_factor_{loop}"].high
            fields[f"wgt_factor_{loop}"] = min(self.random.choice((0, 1, 2, 3, loops[f"iter_{loop}"], limit)), limit)
        spans = {"wgt": (int(uops["wgt"][0]), int(uops["wgt"][0]))}
        for name, memory_type in (("dst", MemoryType.ACC), ("src", MemoryType.INP)):
            factors, spans[name] = self._factors(name, uops[name], loops, memory_type)
            fields.update(factors)
        step = max(loops["iter_in"] - fields["wgt_factor_in"], 0)
        end = int(uops["dst"][0]) + max(loops["iter_out"] - 1, 0) * step + loops["iter_in"] - 1
        if end < self.depth[MemoryType.ACC] and self.random.random() < 0.6:
            fields.update(dst_factor_out=step, dst_factor_in=1)
            spans["dst"] = (int(uops["dst"][0]), end)
        accesses = []
        if self._works(uops, loops):
            accesses = [
                Access("OUT", *spans["dst"], True),
                Access("INP", *spans["src"], False),
                Access("WGT", *spans["wgt"], False),
            ]
        self._emit(fields, accesses)

    def _alu(self) -> None:
        if self.random.random() < 0.5:
            self._alu_over_a_tile(same=False)
            return
        bgn, end, uops = self._uop_range()
        loops = self._loops()
        operations = [AluOpcode.MIN, AluOpcode.MAX, AluOpcode.ADD, AluOpcode.SHR]
        if self.accelerator.isa is not IsaRevision.A:
            operations.append(AluOpcode.MUL)
        fields = {
            **{"opcode": Opcode.ALU, "uop_bgn": bgn, "uop_end": end, **loops},
            **{"alu_opcode": self.random.choice(operations), "use_imm": self.random.getrandbits(1)},
            "imm": self._immediate(),
        }
        spans = {}
        for name in ("dst", "src"):
            factors, spans[name] = self._factors(name, uops[name], loops, MemoryType.ACC)
            fields.update(factors)
        self._emit(fields, [Access("OUT", *spans["dst"], True)] if self._works(uops, loops) else [])

    def _immediate(self) -> int:
        return self.random.choice((0, 1, -1, 8, -8, 127, -128, 32767, -32768, self.random.randint(-32768, 32767)))

    def _alu_over_a_tile(self, *, same: bool) -> None:
        fields, span = (self.tiles.over_the_same if same else self.tiles.over_one)(self.sram_uops["dst"])
        self._emit(fields | {"use_imm": 1, "imm": self._immediate()}, [Access("OUT", *span, True)])

    @staticmethod
    def _works(uops: NDArray[np.void], loops: Fields) -> bool:
        return bool(len(uops) and loops["iter_out"] and loops["iter_in"])

    def _uop_range(self) -> tuple[int, int, NDArray[np.void]]:
        """Return (uop_bgn, uop_end, the micro-ops).

        They are mostly a few, sometimes none, also with uop_end before uop_bgn.
        """
        depth = len(self.sram_uops)
        length = self.random.choice((0, 1, 1, 2, 3, 4, 5, 8, 16, 33))
        bgn = self._fit(length, depth)
        end = self.random.randint(0, bgn) if length == 0 else bgn + length
        return bgn, end, self.sram_uops[bgn:end]

    def _loops(self) -> Fields:
        sizes = (1, 1, 1, 2, 3, 4, 7, 14)
        kind = self.random.random()
        if kind < 0.03:
            return {"iter_out": self.random.choice((0, 2)), "iter_in": 0}
        if kind < 0.05:
            return {"iter_out": 1, "iter_in": self.random.choice((128, 256))}
        return {"iter_out": self.random.choice(sizes), "iter_in": self.random.choice(sizes)}

    def _factors(
        self, name: str, indices: NDArray[np.uint32], loops: Fields, memory_type: MemoryType
    ) -> tuple[Fields, tuple[int, int]]:
        """The two factors of an index, and the span of its buffer that it then goes over; a loop that runs once may
        have any factor."""
        formats = self.accelerator.formats
        form = formats.alu if memory_type is MemoryType.ACC else formats.gemm
        low, high = (int(indices.min()), int(indices.max())) if len(indices) else (0, 0)
        slack = self.depth[memory_type] - 1 - high
        fields = {}
        for loop in self.random.sample(("out", "in"), 2):
            limit = form.by_name[f"{name}_factor_{loop}"].high
            iterations = loops[f"iter_{loop}"]
            if iterations > 1:
                most = min(limit, slack // (iterations - 1))
                factor = min(most, self.random.choice((0, 1, 2, 3, 16, self.random.randint(0, most))))
                slack -= factor * (iterations - 1)
            else:
                factor = self.random.randint(0, limit)
            fields[f"{name}_factor_{loop}"] = factor
        return fields, (low, self.depth[memory_type] - 1 - slack)
