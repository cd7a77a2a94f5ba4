"""A comparison of one program on two models.

`python -m tests.rtl.compare_models --params pynq --isa A --seed 7 --count 400` does it for a random program on the
RTL and the golden model, and finds the first instruction without which they agree.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.simulator.build import build
from hilt.simulator.device import DeviceStatus, MemoryModel, SimulatedDevice
from hilt.simulator.driver import Execution, execute
from hilt.vta.accelerator import Accelerator, IsaRevision, load_parameters
from hilt.vta.isa import disassemble, encode
from tests.rtl.numpy_interpreter import NumpyInterpreter
from tests.rtl.random_programs import RandomProgram, random_program

MAX_CYCLES = 50_000_000


@dataclass(frozen=True)
class Outcome:
    """The memory after a run, and the device's execution record (None for the numpy interpreter, which has none)."""

    memory: NDArray[np.uint8]
    execution: Execution | None


Model = Callable[[RandomProgram], Outcome]


def on_numpy(accelerator: Accelerator) -> Model:
    def run(program: RandomProgram) -> Outcome:
        memory = program.image.copy()
        NumpyInterpreter(accelerator, program.base, memory).run(program.insn_addr, len(program.records))
        return Outcome(memory, None)

    return run


def on_library(library: Path, **timing: Any) -> Model:
    """`timing`: fields of MemoryModel."""

    def run(program: RandomProgram) -> Outcome:
        pages = -(-len(program.image) // 4096) * 4096
        with SimulatedDevice(library, MemoryModel(program.base, pages, **timing)) as device:
            device.memory[: len(program.image)] = program.image
            execution = execute(device, program.insn_addr, len(program.records), MAX_CYCLES)
            return Outcome(device.memory[: len(program.image)].copy(), execution)

    return run


def memory_timing(seed: int) -> dict[str, Any]:
    """Return the settings of a memory: fast or slow, steady or not.

    The effect of a stage must not depend on its waiting times.
    """
    return {
        "read_latency": (1, 20, 97)[seed % 3],
        "write_latency": (1, 40)[seed // 2 % 2],
        "bandwidth": ((0, 1), (3, 1), (7, 2))[seed // 3 % 3],
        "jitter": (0, 9)[seed % 2],
        "seed": seed,
    }


def difference(program: RandomProgram, left: Outcome, right: Outcome) -> str | None:
    """The first thing in which two runs of `program` differ, or None."""
    executions = [outcome.execution for outcome in (left, right) if outcome.execution]
    for execution in executions:
        if execution.status is not DeviceStatus.DONE:
            return f"status {execution.status.name} after {execution.cycles} cycles, {execution.fault}"
    if len(executions) == 2:
        counted = [_untimed_facts(execution) for execution in executions]
        if counted[0] != counted[1]:
            return f"counters {counted[0]} and {counted[1]}"
    wrong = np.flatnonzero(left.memory != right.memory)
    if wrong.size:
        first = int(wrong[0])
        return (
            f"{wrong.size} bytes of memory, the first at {program.base + first:#x}:"
            f" {left.memory[first]:#04x} and {right.memory[first]:#04x}"
        )
    return None


def _untimed_facts(execution: Execution) -> dict[str, int]:
    """The counters that every model of the accelerator must agree on: work done, not time taken."""
    counters = execution.counters
    stages = {"fetch": counters.fetch, "load": counters.load, "compute": counters.compute, "store": counters.store}
    return {
        "macs": counters.macs,
        **{f"{name} instructions": stage.instructions for name, stage in stages.items()},
        **{f"{name} bytes": stage.bytes for name, stage in stages.items()},
    }


def explain(
    accelerator: Accelerator, seed: int, count: int, left: Model, right: Model, *, fill: bool | None = None
) -> str | None:
    """Return None if the random program has the same effect on both models, else a report of the difference.

    The report holds the difference, the shortest beginning of the program that shows one, its last instructions,
    and the command that repeats it.
    """

    def differs(short: int) -> str | None:
        program = random_program(accelerator, seed, short, fill=fill)
        return difference(program, left(program), right(program))

    whole = differs(count)
    if whole is None:
        return None
    same, different = 0, count  # the first `different` instructions differ
    while different - same > 1:
        middle = (same + different) // 2
        if differs(middle):
            different = middle
        else:
            same = middle
    with_it = random_program(accelerator, seed, different, fill=fill).records
    without = random_program(accelerator, seed, different - 1, fill=fill).records
    lines = disassemble(encode(with_it, accelerator), accelerator)
    first_new = int(np.argmax(with_it[: len(without)] != without))
    arguments = f"--isa {accelerator.isa} --bus {accelerator.bus_bits} --seed {seed} --count {different}"
    return "\n".join(
        [
            whole,
            f"first differs with {different} instructions, the last of them at about {first_new}: {differs(different)}",
            *lines[max(0, first_new - 3) : first_new + 3],
            f"repeat: python -m tests.rtl.compare_models --params <{accelerator.parameters.name}> {arguments}"
            + (" --fill" if fill else ""),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--params", default="pynq")
    parser.add_argument("--isa", choices=[str(isa) for isa in IsaRevision])
    parser.add_argument("--bus", type=int, default=64)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--models", nargs=2, choices=("rtl", "golden", "numpy"), default=("rtl", "golden"))
    parser.add_argument("--profile", choices=("fast", "debug"), default="fast")
    parser.add_argument("--fill", action="store_true", help="write every buffer first")
    arguments = parser.parse_args()
    isa = IsaRevision(arguments.isa) if arguments.isa else None
    accelerator = Accelerator.for_parameters(load_parameters(arguments.params), isa, bus_bits=arguments.bus)
    left, right = (
        on_numpy(accelerator) if form == "numpy" else on_library(build(accelerator, form, arguments.profile))
        for form in arguments.models
    )
    fill = arguments.fill or None
    print(explain(accelerator, arguments.seed, arguments.count, left, right, fill=fill) or "no difference")


if __name__ == "__main__":
    main()
