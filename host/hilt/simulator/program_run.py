"""Runs a Program on a simulated accelerator: places its buffers, relocates it, executes it, reads its output."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.atomic_write import atomic_path
from hilt.simulator.device import MEMORY_ALIGNMENT, MemoryModel, SimulatedDevice
from hilt.simulator.driver import Execution, execute
from hilt.vta.program import Program, ProgramError

UNWRITTEN = 0x5A
"""The value of every output byte before the run."""


@dataclass(frozen=True)
class ProgramRun:
    """A program's `execution` and its `output`, the bytes of buffer `out` as int8 (bytes,)."""

    execution: Execution
    output: NDArray[np.int8]


def run_program(
    library: Path,
    program: Program,
    inputs: Mapping[str, NDArray[Any]],
    *,
    memory: MemoryModel | None = None,
    max_cycles: int = 1 << 32,
    waves: Path | None = None,
) -> ProgramRun:
    """Run `program` once in the model at `library` (hilt.simulator.build).

    `inputs` are packed arrays by buffer name, for all of its buffers but `uop` and `out`. With `waves`, a file that is
    whole or absent, the model is the RTL of profile `trace`. `memory` gives base and timing; its size is raised to the
    program's need.

    Raises:
        ProgramError: Inputs and buffers do not match.
        SimulatorError: The model cannot be used.
    """
    model = memory or MemoryModel(base=0x1000_0000)
    addresses, end = place(program, model.base)
    instructions = program.relocated({name: address for name, address in addresses.items() if name != "insn"})
    contents = _contents(program, inputs)
    needed = replace(model, bytes=max(model.bytes if memory else 0, end - model.base))
    with atomic_path(waves) if waves is not None else nullcontext() as file, SimulatedDevice(library, needed) as device:
        if file is not None:
            device.trace(file)
        device.write_memory(addresses["insn"], instructions)
        for name, array in contents.items():
            device.write_memory(addresses[name], array)
        execution = execute(device, addresses["insn"], len(instructions), max_cycles)
        out = program.buffer("out")
        return ProgramRun(execution, device.view(addresses["out"], out.bytes).view(np.int8).copy())


def place(program: Program, base: int) -> tuple[dict[str, int], int]:
    """Return addresses for a program, and the first free page after them.

    The byte addresses are page-aligned, from `base` up, for the program's buffers by name and its instructions
    (`insn`).
    """
    sizes = {"insn": program.instructions.nbytes, **{buffer.name: buffer.bytes for buffer in program.buffers}}
    addresses: dict[str, int] = {}
    free = base
    for name, size in sizes.items():
        addresses[name] = free
        free += -(-max(size, 1) // MEMORY_ALIGNMENT) * MEMORY_ALIGNMENT
    return addresses, free


def _contents(program: Program, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    given = {**inputs, "uop": program.uops}
    contents: dict[str, NDArray[Any]] = {}
    for buffer in program.buffers:
        if buffer.name in contents:
            continue
        if buffer.name == "out":
            contents["out"] = np.full(buffer.bytes, UNWRITTEN, dtype=np.uint8)
            continue
        if buffer.name not in given:
            raise ProgramError(f"buffer {buffer.name} was given no contents")
        array = given.pop(buffer.name)
        if array.nbytes != buffer.bytes:
            raise ProgramError(f"buffer {buffer.name} has {buffer.bytes} bytes; {array.nbytes} were given")
        contents[buffer.name] = array
    given.pop("uop", None)
    if given:
        raise ProgramError(f"the program has no buffer {', '.join(given)}")
    return contents
