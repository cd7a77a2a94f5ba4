"""The twin's cycles of a program beside the RTL's counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from hilt.simulator.device import DeviceStatus, MemoryModel, SimulatedDevice
from hilt.simulator.driver import Execution, execute
from hilt.simulator.program_run import place
from hilt.simulator.twin import PlacedProgram, Twin, TwinStatus
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import encode
from hilt.vta.program import Program
from tests.rtl.random_programs import RandomProgram

BASE = 0x1000_0000
STATUS = {
    DeviceStatus.DONE: TwinStatus.DONE,
    DeviceStatus.FAULT: TwinStatus.FAULT,
    DeviceStatus.RUNNING: TwinStatus.NEVER,
}
_STAGES = ("fetch", "load", "compute", "store")
_COUNTERS = ("busy", "starved", "stalled", "bytes", "instructions")
_PAGE = 4096


def random_differences(
    library: Path, twin: Twin, program: RandomProgram, memory: MemoryModel, max_cycles: int = 50_000_000
) -> list[str]:
    """Return the differences between the RTL at `library` and the twin, on the memory image of `program` as it is."""
    pages = -(-len(program.image) // _PAGE) * _PAGE
    with SimulatedDevice(library, replace(memory, base=program.base, bytes=pages)) as device:
        device.memory[: len(program.image)] = program.image
        execution = execute(device, program.insn_addr, len(program.records), max_cycles)
    return differences(execution, twin, placed(program, twin.accelerator), memory)


def schedule_differences(
    library: Path, twin: Twin, program: Program, memory: MemoryModel, offset: int = 0
) -> list[str]:
    """Return the differences for a schedule with every buffer `offset` bytes into a page.

    Without an offset, the twin sees the program before relocation. Tensors are zeros: they take no time.
    """
    addresses, end = place(program, BASE + _PAGE)
    addresses = {name: address + offset for name, address in addresses.items()}
    where = PlacedProgram.of(program, addresses)
    with SimulatedDevice(library, replace(memory, base=BASE, bytes=end + _PAGE - BASE)) as device:
        device.write_memory(addresses["insn"], where.instructions)
        device.write_memory(addresses["uop"], program.uops)
        execution = execute(device, addresses["insn"], len(program.instructions), 50_000_000)
    return differences(execution, twin, where if offset else program, memory)


def placed(program: RandomProgram, accelerator: Accelerator) -> PlacedProgram:
    """Return the placed program with all of the image as micro-ops, because LOADs find theirs anywhere."""
    words = program.image.view(np.uint32).reshape(-1, accelerator.uop_element_bytes // 4)
    return PlacedProgram(encode(program.records, accelerator), words, program.insn_addr, program.base)


def differences(execution: Execution, twin: Twin, program: Program | PlacedProgram, memory: MemoryModel) -> list[str]:
    """Return the differences of the twin from the RTL: status, fault, cycles, counters of all stages."""
    prediction = twin.predict([program], memory)[0]
    fault = 0 if execution.fault is None else int(execution.fault.code)
    facts = [("status", STATUS[execution.status], prediction["status"]), ("fault", fault, prediction["fault"])]
    if execution.status is not DeviceStatus.RUNNING:
        facts += _counted(execution, prediction)
    return [f"{name}: RTL {int(rtl)}, twin {int(predicted)}" for name, rtl, predicted in facts if rtl != predicted]


def _counted(execution: Execution, prediction: np.void) -> Iterator[tuple[str, int, int]]:
    counters = execution.counters
    yield "cycles", counters.cycles, prediction["cycles"]
    yield "macs", counters.macs, prediction["macs"]
    for stage in _STAGES:
        for counter in _COUNTERS:
            yield f"{stage} {counter}", getattr(getattr(counters, stage), counter), prediction[stage][counter]
