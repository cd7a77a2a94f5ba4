"""One trial on the accelerator: place the program, run it, compare every item of the output, take the time."""

from __future__ import annotations

import time
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from hilt_runtime import isa
from hilt_runtime.program_check import InstructionSet, ProgramCheckError, check_bounds
from hilt_runtime.register_protocol import DeviceRun

from .driver import Driver, DriverError, physical_address
from .memory import ContiguousMemory, read_back
from .protocol import UOP_BUFFER, Manifest, Measured, TrialRequest, WireVerification

_MASK = np.uint64(0xFFFFFFFF)
_ITEMS: Dict[str, Any] = {"int8": np.dtype("<i1"), "int16": np.dtype("<i2"), "int32": np.dtype("<i4")}


class InvalidProgramError(DriverError):
    """Instructions, relocations and buffers that do not fit each other."""


class Placed:
    """A trial in contiguous memory, relocated and ready to run."""

    def __init__(self, trial: TrialRequest, code: bytes, manifest: Manifest, memory: ContiguousMemory) -> None:
        """Place a trial. Raises InvalidProgramError, TensorError, OutOfContiguousMemoryError, AddressError."""
        memory.begin()
        words, uops, indices = _split(trial, code)
        self.inputs = {tensor.name: memory.tensor(tensor.sha256, tensor.bytes) for tensor in trial.inputs}
        self.output = memory.scratch("output", trial.output.bytes)
        self.instructions = memory.scratch("instructions", words.nbytes)
        places: Dict[str, Any] = {**self.inputs, trial.output.name: self.output}
        if uops.size:
            places[UOP_BUFFER] = memory.scratch("micro-ops", uops.nbytes)
            places[UOP_BUFFER][:] = uops
            places[UOP_BUFFER].flush()
        _relocate_all(words, indices, trial, places)
        _check(words, trial, manifest, places)
        self.instructions[:] = words.reshape(-1).view(np.uint8)
        self.instructions.flush()
        self.count = trial.instructions
        self.expected = memory.contents(trial.output.expected, trial.output.bytes)
        self.item = _ITEMS[trial.output.item]
        if trial.output.bytes % self.item.itemsize:
            raise InvalidProgramError("output of {} bytes is no whole number of items".format(trial.output.bytes))

    def spoil_output(self) -> None:
        """Fill the output with the complement of the expected tensor: an item that is not written always differs."""
        np.invert(self.expected, out=self.output)
        self.output.flush()

    def compare(self) -> WireVerification:
        """Compare every item of the output with the expected tensor."""
        read_back(self.output)
        actual, expected = np.asarray(self.output).view(self.item), self.expected.view(self.item)
        differs = actual != expected
        mismatched = int(np.count_nonzero(differs))
        if not mismatched:
            return WireVerification(compared=int(expected.size), mismatched=0)
        errors = np.abs(actual[differs].astype(np.int64) - expected[differs].astype(np.int64))
        return WireVerification(
            compared=int(expected.size),
            mismatched=mismatched,
            first=int(np.argmax(differs)),
            largest_error=int(errors.max()),
        )


def run_trial(trial: TrialRequest, code: bytes, driver: Driver, memory: ContiguousMemory) -> Measured:
    """Runs, verifies and times a trial. Raises DriverError if it could not be run at all."""
    clock = _Stopwatch()
    placed = Placed(trial, code, driver.manifest, memory)
    clock.lap("load")
    run, verification = _verified_run(trial, placed, driver, clock)
    if verification is not None and verification.mismatched:
        # An earlier program may have written over this one's inputs, or the board have lost a bit. An output that is
        # wrong again, on clean inputs, is this one's fault.
        placed = _placed_anew(trial, code, placed, driver, memory)
        run, verification = _verified_run(trial, placed, driver, clock)
    if verification is None:
        return Measured(key=trial.key, outcome=run.outcome, reason=run.reason, seconds=clock.seconds)
    if verification.mismatched:
        if not driver.counts_cycles:
            # It may have ended too early and left tokens behind; only loading the bitstream again takes them away.
            memory.clear()
            driver.reload()
        reason = "{mismatched} of {compared} items differ, the first at {first}, by at most {largest_error}".format(
            **vars(verification)
        )
        return Measured(
            key=trial.key, outcome="wrong_answer", reason=reason, verification=verification, seconds=clock.seconds
        )
    figures, failed = _timed_runs(trial, placed, driver, run)
    clock.lap("time")
    if failed is not None:
        reason = "verified, but failed in a later run: {}".format(failed.reason)
        return Measured(
            key=trial.key, outcome=failed.outcome, reason=reason, verification=verification, seconds=clock.seconds
        )
    return _measured(trial, figures, driver, verification, clock.seconds)


def _placed_anew(trial: TrialRequest, code: bytes, placed: Placed, driver: Driver, memory: ContiguousMemory) -> Placed:
    if driver.counts_cycles:
        memory.restore()
        return placed
    # It may have ended too early and left tokens behind; only loading the bitstream again takes them away.
    memory.clear()
    driver.reload()
    return Placed(trial, code, driver.manifest, memory)


def _verified_run(
    trial: TrialRequest, placed: Placed, driver: Driver, clock: "_Stopwatch"
) -> Tuple[DeviceRun, Optional[WireVerification]]:
    placed.spoil_output()
    run = driver.run(placed.instructions, placed.count, trial.limit_seconds)
    clock.lap("run")
    verification = placed.compare() if run.outcome == "ok" else None
    clock.lap("verify")
    return run, verification


def _timed_runs(
    trial: TrialRequest, placed: Placed, driver: Driver, verified: DeviceRun
) -> Tuple[List[List[DeviceRun]], Optional[DeviceRun]]:
    """Return `repeat` lists of `number` runs; or the first run that failed.

    Where the hardware counts cycles, the verified run is the first of them: its count has nothing of the host in it.
    """
    ready = [verified] if driver.counts_cycles else []
    figures: List[List[DeviceRun]] = []
    for _ in range(trial.repeat):
        runs: List[DeviceRun] = []
        for _ in range(trial.number):
            run = ready.pop() if ready else driver.run(placed.instructions, placed.count, trial.limit_seconds)
            if run.outcome != "ok":
                return figures, run
            runs.append(run)
        figures.append(runs)
    return figures, None


def _measured(
    trial: TrialRequest,
    figures: List[List[DeviceRun]],
    driver: Driver,
    verification: WireVerification,
    seconds: Dict[str, float],
) -> Measured:
    cycles: Tuple[float, ...] = ()
    wall = tuple(_mean([run.seconds for run in runs]) * 1e6 for runs in figures)
    microseconds = wall
    if driver.counts_cycles:
        cycles = tuple(_mean([float(run.cycles or 0) for run in runs]) for runs in figures)
        microseconds = tuple(count * 1e6 / driver.manifest.clock_hz for count in cycles)
    return Measured(
        key=trial.key,
        outcome="ok",
        cycles=cycles,
        microseconds=microseconds,
        wall_microseconds=wall if cycles else (),
        verification=verification,
        seconds=seconds,
    )


def _mean(values: List[float]) -> float:
    return sum(values) / len(values)


def _split(trial: TrialRequest, code: bytes) -> Tuple[Any, Any, List[Tuple[str, Any]]]:
    """Return (instructions uint64 (n, words), a copy; micro-ops uint8; [(buffer, indices uint32)])."""
    data = np.frombuffer(code, dtype=np.uint8)
    middle = trial.instructions * trial.instruction_bytes
    end = middle + trial.uops * trial.uop_bytes
    words = data[:middle].copy().view("<u8").reshape(trial.instructions, trial.instruction_bytes // 8)
    rest = data[end:].copy().view("<u4")
    if rest.size and int(rest.max()) >= trial.instructions:
        raise InvalidProgramError(
            "relocation of instruction {}, the program has {}".format(int(rest.max()), trial.instructions)
        )
    if len(np.unique(rest)) != rest.size:
        raise InvalidProgramError("an instruction is relocated twice")
    indices = []
    start = 0
    for relocation in trial.relocations:
        indices.append((relocation.buffer, rest[start : start + relocation.count]))
        start += relocation.count
    return words, data[middle:end], indices


def _check(words: Any, trial: TrialRequest, manifest: Manifest, places: Dict[str, Any]) -> None:
    """Raise InvalidProgramError unless every transfer of the relocated program is inside a buffer."""
    ranges = [(name, physical_address(buffer), buffer.nbytes) for name, buffer in places.items()]
    try:
        machine = InstructionSet(
            isa.geometry(manifest.parameters), manifest.isa, manifest.table, manifest.window, manifest.bands
        )
        if (trial.dram_base_bit, trial.uop_bytes) != (machine.dram_base_bit, isa.uop_bytes(machine.revision)):
            raise InvalidProgramError("the trial is encoded for another ISA than {}".format(machine.revision))
        check_bounds(words, machine, ranges)
    except (ProgramCheckError, isa.ParametersError, isa.FieldOverflowError) as error:
        raise InvalidProgramError(str(error)) from None


def _relocate_all(words: Any, indices: List[Tuple[str, Any]], trial: TrialRequest, places: Dict[str, Any]) -> None:
    elements = {tensor.name: tensor.element_bytes for tensor in trial.inputs}
    elements.update({trial.output.name: trial.output.element_bytes, UOP_BUFFER: trial.uop_bytes})
    for name, chosen in indices:
        if chosen.size and name not in places:
            raise InvalidProgramError("relocations of micro-ops, but the program has none")
        if chosen.size:
            _relocate(words, chosen, trial.dram_base_bit, name, places[name], elements[name])


def _relocate(words: Any, chosen: Any, bit: int, name: str, buffer: Any, element_bytes: int) -> None:
    """Add the buffer's place, in elements, to the 32-bit dram_base of the chosen instructions."""
    base, rest = divmod(physical_address(buffer), element_bytes)
    if rest:
        raise InvalidProgramError("buffer {} is not aligned to its {}-byte elements".format(name, element_bytes))
    field = (words[chosen, 0] >> np.uint64(bit)) & _MASK
    moved = field + np.uint64(base)
    if int(moved.max()) > 0xFFFFFFFF:
        raise InvalidProgramError("dram_base in buffer {} passes 32 bits".format(name))
    words[chosen, 0] = (words[chosen, 0] & ~(_MASK << np.uint64(bit))) | (moved << np.uint64(bit))


class _Stopwatch:
    """Wall-clock seconds by step."""

    def __init__(self) -> None:
        self.seconds: Dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, step: str) -> None:
        now = time.perf_counter()
        self.seconds[step] = self.seconds.get(step, 0.0) + now - self._last
        self._last = now


def finish_only(driver: Driver, memory: ContiguousMemory, limit_seconds: float) -> DeviceRun:
    """Run the smallest program: one FINISH, whose opcode is 3 in every revision of the ISA."""
    words = 4 if driver.manifest.isa == "wide" else 2
    instructions = memory.scratch("instructions", 8 * words)
    instructions[:] = np.array([3] + [0] * (words - 1), dtype="<u8").view(np.uint8)
    instructions.flush()
    return driver.run(instructions, 1, limit_seconds)
