"""Machine models: predicted cycles of any instruction stream on hardware that hilt has no RTL for.

The models are hls/timing/public, one structure for a family of designs. `MachineParameters` are the costs of one
design; `hilt.simulator.builds` holds those that measurements gave.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from hilt.simulator.build import build
from hilt.simulator.device import MemoryModel, SimulatorError
from hilt.simulator.twin import Twin
from hilt.vta.accelerator import Accelerator
from hilt.vta.program import Program
from hilt_virtual_board.machine import MachineCosts

API_VERSION = 1


@dataclass(frozen=True)
class MachineParameters:
    """Costs in accelerator cycles (hls/timing/public/vta_machine.h); fractions are means of many instructions.

    Attributes:
        instruction: Each instruction in its stage.
        fetch: Each instruction in fetch.
        load_start: Each LOAD that moves something, before its first row.
        load_row: Each row of a LOAD.
        store_start: Each STORE that moves something.
        store_row: Each row of a STORE.
        rows_overlap: 0 adds a row's cost to its beats, 1 counts the larger of the two.
        hit_bytes: Bytes a cycle from the level-2 cache.
        miss_bytes: Bytes a cycle from memory.
        store_bytes: Bytes a cycle of a STORE.
        store_allocates: 1 where a STORE takes lines of the cache, 0 where it goes past.
        cache_bytes: Size of the level-2 cache; 0 means that every access misses.
        pad_element: Each padding element that a LOAD writes.
        gemm_iteration: Each (outer, inner) iteration of a GEMM.
        gemm_micro_op: Each micro-op of an iteration.
        reset_iteration: Each (outer, inner) iteration of a resetting GEMM.
        alu_iteration: Each (outer, inner) iteration of an ALU instruction.
        alu_micro_op: Each micro-op of an iteration.
    """

    instruction: float
    fetch: float
    load_start: float
    load_row: float
    store_start: float
    store_row: float
    rows_overlap: float
    hit_bytes: float
    miss_bytes: float
    store_bytes: float
    store_allocates: float
    cache_bytes: float
    pad_element: float
    gemm_iteration: float
    gemm_micro_op: float
    reset_iteration: float
    alu_iteration: float
    alu_micro_op: float

    def __post_init__(self) -> None:
        """Raise SimulatorError for a cost that no machine has."""
        for name, value in asdict(self).items():
            if not np.isfinite(value) or value < 0:
                raise SimulatorError(f"machine parameter {name} is {value}; give a finite number of at least 0")
        if self.hit_bytes == 0 or self.miss_bytes == 0:
            raise SimulatorError(
                "machine parameter hit_bytes or miss_bytes is 0; a memory moves more than 0 bytes a cycle"
            )

    def to_text(self) -> str:
        """Return the costs as `name:cost` with commas between, as a tuner's option holds them."""
        return ",".join(f"{name}:{cost!r}" for name, cost in asdict(self).items())

    @classmethod
    def from_text(cls, text: str) -> MachineParameters:
        """Return the machine that to_text wrote. Raises SimulatorError for any other text."""
        try:
            pairs = [pair.split(":") for pair in text.split(",")]
            return cls(**{name: float(cost) for name, cost in pairs})
        except (ValueError, TypeError) as error:
            raise SimulatorError(f"machine parameters {text[:80]!r} cannot be read: {error}") from error


class MachineStatus(IntEnum):
    """The ways that a program ends. NEVER: a token or FINISH is missing, and a board would hang."""

    DONE = 0
    NEVER = 1


RESULT = np.dtype(
    [
        ("status", np.int32),
        ("instructions", np.uint32),
        *(
            (name, np.float64)
            for name in (
                *("cycles", "load_busy", "compute_busy", "store_busy", "gemm_cycles", "alu_cycles"),
                *("read_bytes", "missed_bytes", "rows"),
            )
        ),
    ]
)
"""One program: MachineStatus, instructions, cycles to FINISH, each stage's busy cycles and the traffic of LOADs."""

SPAN = np.dtype([("start", np.float64), ("end", np.float64), ("stage", np.uint32), ("reserved", np.uint32)])
"""One instruction: busy in the cycles [start, end) of stage 1 (load), 2 (compute) or 3 (store)."""


class EventMachine:
    """The machine models' library for one accelerator. Any number of threads may call it at once."""

    def __init__(self, accelerator: Accelerator) -> None:
        """Raises MissingToolError or BuildError where the library cannot be built."""
        self.accelerator = accelerator
        self._library = ctypes.CDLL(str(build(accelerator, "machine")))
        if self._library.vta_machine_api_version() != API_VERSION:
            raise SimulatorError("the machine models and their binding are of different versions; build hilt anew")
        self._library.vta_machine_compare.restype = ctypes.c_int

    def predict(self, programs: Iterable[Program], parameters: MachineParameters) -> NDArray[np.void]:
        """Return RESULT (programs,): each program's cycles with the cache as a run before left it."""
        return self.compare(programs, [parameters])[:, 0]

    def compare(self, programs: Iterable[Program], machines: Sequence[MachineParameters]) -> NDArray[np.void]:
        """Return RESULT (programs, machines): as `predict`, with little work for machines in a row with one cache."""
        return self._predict([program.instructions for program in programs], machines, None)

    def timeline(self, program: Program, parameters: MachineParameters) -> NDArray[np.void]:
        """Return SPAN (instructions,) of one program."""
        spans = np.zeros(len(program.instructions), dtype=SPAN)
        self._predict([program.instructions], [parameters], spans)
        return spans

    def _predict(
        self,
        streams: Sequence[NDArray[np.uint64]],
        machines: Sequence[MachineParameters],
        spans: NDArray[np.void] | None,
    ) -> NDArray[np.void]:
        results = np.zeros((len(streams), len(machines)), dtype=RESULT)
        if not results.size:
            return results
        words = np.ascontiguousarray(streams[0] if len(streams) == 1 else np.concatenate(streams))
        offsets = np.concatenate([[0], np.cumsum([len(stream) for stream in streams])]).astype(np.uint64)
        costs = (MachineCosts * len(machines))(*(MachineCosts(**vars(machine)) for machine in machines))
        refused = self._library.vta_machine_compare(
            ctypes.c_uint64(len(streams)),
            ctypes.c_void_p(words.ctypes.data),
            ctypes.c_void_p(offsets.ctypes.data),
            ctypes.c_uint64(len(machines)),
            ctypes.byref(costs),
            ctypes.c_void_p(results.ctypes.data),
            ctypes.c_void_p(None if spans is None else spans.ctypes.data),
        )
        if refused:
            raise SimulatorError(
                f"the machine models refused {len(streams)} programs (status {refused}); free some memory"
            )
        return results


class MachineTwin:
    """A machine of fixed costs in the place of the twin: hardware whose RTL hilt has not. A memory changes nothing."""

    def __init__(self, accelerator: Accelerator, parameters: MachineParameters) -> None:
        """Raises MissingToolError or BuildError where the library cannot be built."""
        self.accelerator = accelerator
        self._machine = EventMachine(accelerator)
        self._parameters = parameters

    def predict(self, programs: Iterable[Program], memory: MemoryModel) -> NDArray[np.void]:
        """Return RESULT (programs,), cycles in whole numbers."""
        results = self._machine.predict(programs, self._parameters)
        results["cycles"] = np.ceil(results["cycles"])
        return results

    def timeline(self, program: Program, memory: MemoryModel) -> NDArray[np.void]:
        """Return SPAN (instructions,) of one program."""
        return self._machine.timeline(program, self._parameters)


def timing_of(accelerator: Accelerator, parameters: MachineParameters | None) -> Twin | MachineTwin:
    """Return the timing of an accelerator: of a machine with these costs, or of hilt's RTL without any."""
    return Twin(accelerator) if parameters is None else MachineTwin(accelerator, parameters)
