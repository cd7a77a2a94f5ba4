"""Between the engine's words and the agent's: a request becomes a trial with its blobs, a reply becomes a result."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hilt.measure.interfaces import Request
from hilt.plain_text import plain
from hilt.trial import Outcome, Result, Verification
from hilt.vta.isa import MemoryType
from hilt.vta.program import Buffer, Program
from hilt_board.protocol import (
    MAX_BODY_BYTES,
    UOP_BUFFER,
    Input,
    Measured,
    MessageError,
    Output,
    Relocation,
    TrialRequest,
    WireVerification,
)

if TYPE_CHECKING:
    from hilt.schedule.tensors import Tensors

OUTPUT_BUFFER = "out"
_MEMORY_WORDS = {MemoryType.INP: "inp", MemoryType.WGT: "wgt", MemoryType.ACC: "acc", MemoryType.ACC_8BIT: "acc"}


class WireBlobs:
    """Tensors by the SHA-256 of their bytes. All trials of a run share theirs, so the last ones are remembered."""

    def __init__(self) -> None:
        self._tensors: Tensors | None = None
        self._digests: dict[str, str] = {}
        self._arrays: dict[str, NDArray[Any]] = {}

    def digests(self, tensors: Tensors) -> dict[str, str]:
        """Return the SHA-256 by buffer name; that of `out` is of the expected tensor."""
        if tensors is not self._tensors:
            arrays = {**tensors.inputs, OUTPUT_BUFFER: tensors.expected}
            contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
            self._digests = {name: hashlib.sha256(array.data).hexdigest() for name, array in contiguous.items()}
            self._arrays = {self._digests[name]: array for name, array in contiguous.items()}
            self._tensors = tensors
        return self._digests

    def contents(self, digest: str) -> bytes:
        """Return the bytes of one of the tensors last asked for."""
        return self._arrays[digest].tobytes()


@dataclass(frozen=True)
class EncodedTrial:
    """A request as the protocol carries it: the trial, its code, and the SHA-256 of the blobs it needs on the board."""

    trial: TrialRequest
    code: bytes
    blobs: tuple[str, ...]


def ship(request: Request, digests: dict[str, str], bitstream: str) -> EncodedTrial:
    """Return the trial of a request on the board's `bitstream` (SHA-256).

    `digests`: WireBlobs.digests of its tensors.

    Raises ValueError if program and tensors do not fit each other, MessageError if the protocol cannot carry it.
    """
    program, tensors = request.program, request.tensors
    inputs = tuple(
        _input(buffer, digests, tensors) for buffer in program.buffers if buffer.name not in (UOP_BUFFER, OUTPUT_BUFFER)
    )
    output = program.buffer(OUTPUT_BUFFER)
    _check_size(output, tensors.expected)
    trial = TrialRequest(
        key=request.key,
        bitstream=bitstream,
        instructions=len(program.instructions),
        instruction_bytes=8 * program.instructions.shape[1],
        uops=len(program.uops),
        uop_bytes=4 * program.uops.shape[1],
        inputs=inputs,
        output=Output(
            name=OUTPUT_BUFFER,
            bytes=output.bytes,
            element_bytes=output.element_bytes,
            expected=digests[OUTPUT_BUFFER],
            item=str(tensors.expected.dtype),
        ),
        relocations=tuple(Relocation(buffer.name, len(buffer.instructions)) for buffer in program.buffers),
        dram_base_bit=program.dram_base_bit,
        limit_seconds=request.limit_seconds,
        number=request.number,
        repeat=request.repeat,
    )
    if trial.code_bytes > MAX_BODY_BYTES:
        raise MessageError(f"code of {trial.code_bytes} bytes; a frame holds {MAX_BODY_BYTES}")
    blobs = (*(tensor.sha256 for tensor in inputs), trial.output.expected)
    return EncodedTrial(trial, _code(program), blobs)


def _input(buffer: Buffer, digests: dict[str, str], tensors: Tensors) -> Input:
    if buffer.name not in tensors.inputs:
        raise ValueError(f"program reads buffer {buffer.name!r}; tensors are {', '.join(tensors.inputs)}")
    _check_size(buffer, tensors.inputs[buffer.name])
    return Input(
        name=buffer.name,
        memory=_MEMORY_WORDS[buffer.memory_type],
        sha256=digests[buffer.name],
        bytes=buffer.bytes,
        element_bytes=buffer.element_bytes,
    )


def _check_size(buffer: Buffer, array: NDArray[Any]) -> None:
    if array.nbytes != buffer.bytes:
        raise ValueError(f"buffer {buffer.name} has {buffer.bytes} bytes, its tensor {array.nbytes}")


def _code(program: Program) -> bytes:
    """Return the code as in Measure.code: instructions, micro-ops, then the relocations' indices, little endian."""
    parts = [program.instructions.astype("<u8", copy=False), program.uops.astype("<u4", copy=False)]
    parts += [buffer.instructions.astype("<u4") for buffer in program.buffers]
    return b"".join(part.tobytes() for part in parts)


def result_of(measured: Measured, board: str, seconds: dict[str, float]) -> Result:
    """Return the result that the engine records.

    `seconds`: costs on the host, beside those that the board reports.
    """
    outcome = Outcome(measured.outcome)
    return Result(
        outcome=outcome,
        reason=plain(measured.reason),
        cycles=round(median(measured.cycles)) if outcome is Outcome.OK and measured.cycles else None,
        microseconds=median(measured.microseconds) if outcome is Outcome.OK and measured.microseconds else None,
        repeats=measured.microseconds,
        verification=_verification(measured.verification),
        board=board,
        seconds={**measured.seconds, **seconds},
    )


def _verification(comparison: WireVerification | None) -> Verification | None:
    if comparison is None:
        return None
    return Verification(comparison.compared, comparison.mismatched, comparison.first, comparison.largest_error)
