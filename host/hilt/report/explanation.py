"""The explanation of one configuration without running it: loops, buffers, program, prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.schedule import (
    ConfigurationError,
    Reason,
    Rejected,
    Space,
    Workload,
    bound_cycles,
    lower,
    verdicts,
)
from hilt.schedule.checks import Analysis, analyse
from hilt.schedule.loop_nest import KINDS, OPERANDS, loop_nest
from hilt.schedule.loops import LOOPS, NO_HAZARD
from hilt.schedule.operator import convolution
from hilt.schedule.validity_summary import CHECK_LEVELS
from hilt.simulator.device import MemoryModel
from hilt.simulator.twin import Twin, TwinStatus
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode, MemoryType, Opcode, decode
from hilt.vta.program import Program

STAGES = ("load", "compute", "store")
"""The stages, in the order of the twin's numbers, from 1."""


@dataclass(frozen=True)
class LoopLine:
    """One loop: its knob, and the elements of each operand that it touches with all loops inside it."""

    kind: str
    axis: str
    extent: int
    touched: Mapping[str, int]


@dataclass(frozen=True)
class ProgramFacts:
    """The contents of the lowered program. `mix` counts instructions by kind; `bytes` moved are by buffer."""

    mix: Mapping[str, int]
    bytes: Mapping[str, int]
    uops: int
    instruction_bytes: int
    intensity: float
    """Operations (two a multiply-accumulate of the workload) per byte of tensors moved."""

    @property
    def instructions(self) -> int:
        return sum(self.mix.values())


@dataclass(frozen=True)
class StagePrediction:
    """Cycles and bytes of one stage (hilt.simulator.device.StageCounters)."""

    busy: int
    starved: int
    stalled: int
    bytes: int
    instructions: int


@dataclass(frozen=True, eq=False)
class Prediction:
    """The twin's: `occupation` (stages, columns) is the share of each of equal spans of time that a stage is busy."""

    status: TwinStatus
    cycles: int
    microseconds: float
    stages: Mapping[str, StagePrediction]
    occupation: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Explanation:
    """Everything known of a configuration.

    `verdicts`: by level of checks, None if it is accepted, else reason and detail. `occupancy`: by buffer, the
    elements
    needed and the elements there are. `program` and `prediction` are None if it cannot be lowered.
    """

    workload: Workload
    accelerator: Accelerator
    index: int
    knobs: Mapping[str, int]
    verdicts: Mapping[str, tuple[str, str] | None]
    loops: tuple[LoopLine, ...]
    occupancy: Mapping[str, tuple[int, int]]
    hazard_distance: int | None
    """Micro-ops between two updates of one accumulator element; None if none is updated twice."""
    weights_resident: bool
    bound_cycles: int
    program: ProgramFacts | None
    prediction: Prediction | None
    code: Program | None


def explain(
    workload: Workload,
    space: Space,
    configuration: int | Mapping[str, int],
    accelerator: Accelerator,
    memory: MemoryModel,
) -> Explanation:
    """Return the explanation. Raises ConfigurationError for one outside the space, BuildError without the twin."""
    index = configuration if isinstance(configuration, int) else space.index(configuration)
    if not 0 <= index < len(space):
        raise ConfigurationError(f"configuration {index} is not in the space: they are numbered 0 to {len(space) - 1}")
    knobs = space.knobs_at(index)
    columns = {name: [value] for name, value in knobs.items()}
    analysis = analyse(convolution(workload), accelerator, columns)
    found: dict[str, tuple[str, str] | None] = {
        level: _verdict(workload, knobs, accelerator, level) for level in CHECK_LEVELS
    }
    code = lower(workload, knobs, accelerator) if found["compiler"] is None else None
    distance = int(analysis.hazard_distance[0])
    return Explanation(
        workload=workload,
        accelerator=accelerator,
        index=index,
        knobs=knobs,
        verdicts=found,
        loops=_loops(analysis),
        occupancy=_occupancy(analysis),
        hazard_distance=None if distance == NO_HAZARD else distance,
        weights_resident=bool(analysis.resident[0]),
        bound_cycles=bound_cycles(workload, accelerator),
        program=None if code is None else _facts(workload, accelerator, code),
        prediction=None if code is None else _prediction(accelerator, memory, code),
        code=code,
    )


def _verdict(
    workload: Workload, knobs: Mapping[str, int], accelerator: Accelerator, level: Any
) -> tuple[str, str] | None:
    columns = {name: [value] for name, value in knobs.items()}
    if verdicts(workload, accelerator, columns, level)[0] == Reason.OK:
        return None
    try:
        lower(workload, knobs, accelerator, level)
    except Rejected as rejection:
        return rejection.reason, rejection.detail
    raise AssertionError(f"the verdict of {level} on {dict(knobs)} differs from lowering")


def _loops(analysis: Analysis) -> tuple[LoopLine, ...]:
    nest = loop_nest(analysis)
    return tuple(
        LoopLine(
            kind.name.lower(),
            LOOPS[int(nest.axis[0, place])],
            int(nest.extent[0, place]),
            {operand: int(nest.touched[operand][0, place]) for operand in OPERANDS},
        )
        for place, kind in enumerate(KINDS)
    )


def _occupancy(analysis: Analysis) -> dict[str, tuple[int, int]]:
    buffers = (
        ("inp", Reason.INP_OVERFLOW),
        ("wgt", Reason.WGT_OVERFLOW),
        ("acc", Reason.ACC_OVERFLOW),
        ("uop", Reason.UOP_OVERFLOW),
    )
    return {name: (int(analysis.needs[reason][0][0]), analysis.needs[reason][1]) for name, reason in buffers}


def _facts(workload: Workload, accelerator: Accelerator, code: Program) -> ProgramFacts:
    records = decode(code.instructions, accelerator)
    mix: dict[str, int] = {}
    moved: dict[str, int] = {}
    elements = records["y_size"].astype(np.int64) * records["x_size"]
    for buffer in code.buffers:
        moved[buffer.name] = int(elements[buffer.instructions].sum()) * buffer.element_bytes
    for opcode in Opcode:
        chosen = records["opcode"] == opcode
        for name, kind in _kinds(opcode, records):
            if count := int(np.count_nonzero(chosen & kind)):
                mix[name] = count
    tensors = sum(count for name, count in moved.items() if name != "uop")
    return ProgramFacts(mix, moved, len(code.uops), code.instructions.nbytes, 2 * workload.macs / tensors)


def _kinds(opcode: Opcode, records: NDArray[Any]) -> list[tuple[str, Any]]:
    """Return the kinds of an opcode by name, and which instructions are of each if they have the opcode."""
    if opcode in (Opcode.LOAD, Opcode.STORE):
        return [(f"{opcode.name} {kind.name}", records["memory_type"] == kind) for kind in MemoryType]
    if opcode is Opcode.GEMM:
        return [("GEMM", records["reset"] == 0), ("GEMM reset", records["reset"] == 1)]
    if opcode is Opcode.ALU:
        return [(f"ALU {kind.name}", records["alu_opcode"] == kind) for kind in AluOpcode]
    return [(opcode.name, True)]


def _prediction(accelerator: Accelerator, memory: MemoryModel, code: Program, columns: int = 64) -> Prediction:
    twin = Twin(accelerator)
    predicted = twin.predict([code], memory)[0]
    spans = twin.timeline(code, memory)
    cycles = int(predicted["cycles"])
    return Prediction(
        status=TwinStatus(int(predicted["status"])),
        cycles=cycles,
        microseconds=cycles / accelerator.clock_hz * 1e6,
        stages={
            stage: StagePrediction(**{name: int(predicted[stage][name]) for name in predicted[stage].dtype.names})
            for stage in STAGES
        },
        occupation=_occupation(spans, cycles, columns),
    )


def _occupation(spans: NDArray[np.void], cycles: int, columns: int) -> NDArray[np.float64]:
    """Return the busy share of each stage in `columns` equal spans of the program's time (stages, columns)."""
    width = max(cycles, 1) / columns
    edges: NDArray[np.float64] = np.arange(columns + 1, dtype=np.float64) * width
    shares = np.zeros((len(STAGES), columns))
    for stage in range(len(STAGES)):
        of_stage = spans[spans["stage"] == stage + 1]
        starts, ends = np.sort(of_stage["start"].astype(np.float64)), np.sort(of_stage["end"].astype(np.float64))
        shares[stage] = np.diff(_elapsed(starts, edges) - _elapsed(ends, edges))
    return shares / width


def _elapsed(sorted_times: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum over all times before an edge of how long before, for each edge."""
    before = np.searchsorted(sorted_times, edges)
    sums = np.concatenate(([0.0], np.cumsum(sorted_times)))
    elapsed: NDArray[np.float64] = edges * before - sums[before]
    return elapsed
