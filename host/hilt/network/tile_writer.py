"""The instructions that layers without weights share: loads, the end of a tile's sums or products, stores.

An identity GEMM brings data to the accumulators: its input is loaded beside the compute stage, which a LOAD of
accumulators would stop. Input and output of successive tiles take turns between two places.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.checks import Rejected
from hilt.schedule.code import Code
from hilt.schedule.residual import IDENTITY
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import INSTRUCTION, UOP, AluOpcode, MemoryType, Opcode

DATA, FACTOR, OUT = "inp", "factor", "out"
UNITS = "units"
"""Weight blocks with a single one each (hilt.network.lower_gate)."""
WINDOWS = "windows"
"""Weight blocks of window GEMMs (hilt.network.window_tiles)."""
SLOPES = "slopes"
"""Weight blocks with factors of channels on the diagonal (hilt.network.lower_slopes)."""
ADDED = "added"
"""An input of one number that is added to the data of a product (hilt.network.lower_gate)."""
FIELD = 1 << 14
"""No instruction counts so many elements."""
_IMMEDIATES = -(1 << 15), (1 << 15) - 1
"""The least and the largest immediate of an ALU instruction."""
ROWS = "rows"
"""Memory of a layer's own, which it writes and reads."""
_NAMES = ("uop", IDENTITY, UNITS, WINDOWS, SLOPES, ADDED, DATA, FACTOR, ROWS, OUT)


class TileWriter:
    """Writes a layer tile by tile; a subclass has the tiles and their micro-ops.

    Attributes:
        constant: The buffer of the weight blocks that it begins with.
        constant_blocks: How many these are.
        uops: Micro-ops: accumulator, source, and weight block if it is not the first.
    """

    constant = IDENTITY
    constant_blocks = 1

    def __init__(self, accelerator: Accelerator) -> None:
        self.accelerator = accelerator
        self.uops: list[tuple[int, ...]] = []
        self._uop_numbers: dict[tuple[int, int, int], int] = {}
        self._records: list[dict[str, int]] = []
        self._owners: list[str] = []

    def code(self) -> Code:
        """Return the code. Raises Rejected if the micro-op buffer is too small."""
        self.prepare()
        self.compute_with(Opcode.GEMM, 0, 0)  # the LOAD of the first input waits for the layer before by way of it
        self.add("uop", Opcode.LOAD, memory_type=MemoryType.UOP, y_size=1, x_size=len(self.uops))
        if self.constant_blocks:
            self.add(self.constant, Opcode.LOAD, memory_type=MemoryType.WGT, y_size=1, x_size=self.constant_blocks)
        self.write_tiles()
        uops = np.zeros(len(self.uops), dtype=UOP)
        uops["dst"], uops["src"], uops["wgt"] = np.array([(*uop, 0)[:3] for uop in self.uops]).T
        names = tuple(name for name in _NAMES if name in self._owners)
        numbers = {name: number for number, name in enumerate(names)}
        owners = np.array([numbers.get(name, -1) for name in self._owners])
        return Code(self._instructions(), owners, names, uops)

    def _instructions(self) -> NDArray[np.void]:
        """Return the instructions; fields that one does not name are 0."""
        records = np.zeros(len(self._records), INSTRUCTION)
        for name in {name for record in self._records for name in record}:
            records[name] = [record.get(name, 0) for record in self._records]
        return records

    def prepare(self) -> None:
        """Write the micro-ops. Raises Rejected if their buffer is too small."""
        self.write_micro_ops()
        depth = self.accelerator.uop_depth
        if len(self.uops) > depth:
            raise Rejected("uop_overflow", f"{len(self.uops)} micro-ops of {depth}")

    def write_micro_ops(self) -> None:
        """Fill `uops`."""
        raise NotImplementedError

    def uop_number(self, dst: int, src: int, wgt: int = 0) -> int:
        """Return the number of a micro-op, which is added if it is new."""
        number = self._uop_numbers.setdefault((dst, src, wgt), len(self.uops))
        if number == len(self.uops):
            self.uops.append((dst, src, wgt))
        return number

    def write_tiles(self) -> None:
        """Add the instructions of all tiles."""
        raise NotImplementedError

    def compute_with(self, opcode: Opcode, first: int, end: int, **fields: int) -> None:
        """Add an instruction of the compute stage over the micro-ops from `first` to before `end`."""
        for loop in ("in", "out"):
            if fields.get(f"iter_{loop}") == 1:  # a factor that nothing multiplies may not fit its field
                fields = {name: 0 if name.endswith(f"factor_{loop}") else value for name, value in fields.items()}
        self.add("", opcode, uop_bgn=first, uop_end=end, **{"iter_out": 1, "iter_in": 1} | fields)

    def clear(self, uop: int, elements: int) -> None:
        """Set accumulators to zero, from the destination of a micro-op on."""
        self.compute_with(Opcode.GEMM, uop, uop + 1, reset=1, iter_in=elements, dst_factor_in=1)

    def round_and_clip(self, uop: int, elements: int, shift: int, clip: tuple[int, int], behind: int = 0) -> None:
        """Shift accumulators right, rounded half up, add `behind`, clip, from the destination of a micro-op on."""
        self.round(uop, elements, shift, behind)
        self.alu_with([(AluOpcode.MAX, clip[0]), (AluOpcode.MIN, clip[1])], uop, elements)

    def round(self, uop: int, elements: int, shift: int, behind: int = 0) -> None:
        """Shift accumulators right, rounded half up, and add `behind`, from the destination of a micro-op on."""
        whole = (behind << shift) + (1 << shift >> 1)
        at_once = _IMMEDIATES[0] <= whole <= _IMMEDIATES[1]
        steps = [(AluOpcode.ADD, whole if at_once else 1 << shift >> 1), (AluOpcode.SHR, shift)]
        steps += [] if at_once else [(AluOpcode.ADD, behind)]
        idle = {(AluOpcode.ADD, 0), (AluOpcode.SHR, 0)}
        self.alu_with([step for step in steps if step not in idle], uop, elements)

    def alu_with(self, steps: Sequence[tuple[AluOpcode, int]], uop: int, elements: int) -> None:
        """Add ALU operations with immediates over accumulators, from the destination of a micro-op on."""
        for operation, immediate in steps:
            self.compute_with(
                Opcode.ALU,
                uop,
                uop + 1,
                alu_opcode=operation,
                use_imm=1,
                imm=immediate,
                iter_in=elements,
                dst_factor_in=1,
                src_factor_in=1,
            )

    def load(self, buffer: str, place: int, first: int, elements: int) -> None:
        """Load consecutive elements of a tensor to the input buffer."""
        self._consecutive(buffer, Opcode.LOAD, MemoryType.INP, place, first, elements)

    def store(self, accumulator: int, first: int, elements: int, buffer: str = OUT) -> None:
        """Store consecutive elements of the result, or of another buffer."""
        self._consecutive(buffer, Opcode.STORE, MemoryType.OUT, accumulator, first, elements)

    def forget_instructions(self) -> None:
        """Leave the micro-ops alone that the instructions so far have added."""
        self._records.clear()
        self._owners.clear()

    def add(self, buffer: str, opcode: Opcode, **fields: int) -> None:
        """Add an instruction; `buffer` is the memory that it moves, "" for none."""
        self._records.append({"opcode": opcode, **fields})
        self._owners.append(buffer)

    def _consecutive(
        self, buffer: str, opcode: Opcode, kind: MemoryType, place: int, first: int, elements: int
    ) -> None:
        self.add(
            buffer,
            opcode,
            memory_type=kind,
            sram_base=place,
            dram_base=first,
            y_size=1,
            x_size=elements,
            x_stride=elements,
        )
