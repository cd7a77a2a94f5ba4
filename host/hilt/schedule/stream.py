"""An instruction stream put together from pieces that cover many steps at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.segments import starts
from hilt.schedule.tiling import IntArray

Words = NDArray[np.uint64]


class InstructionStream:
    """Steps of instructions, each of `words` 64-bit words. Within a step pieces follow in the order they were added."""

    def __init__(self, steps: int, words: int) -> None:
        self._words = words
        self._filled = np.zeros(steps, dtype=np.int64)
        self._pieces: list[tuple[str, IntArray, IntArray, IntArray | None, Words]] = []

    def add(self, buffer: str, steps: IntArray, instructions: Words, counts: IntArray | None = None) -> None:
        """`instructions` (n, words): of each of `steps` (m,), ascending, as many as `counts` (m,) says, else one.

        `buffer` is the one from whose start their dram_base counts, or "" for none; each buffer has one piece.
        """
        offset = self._filled.take(steps)
        self._filled[steps] = offset + (1 if counts is None else counts)
        self._pieces.append((buffer, steps, offset, counts, instructions))

    def assemble(
        self, program: IntArray, programs: int, prologue: list[tuple[str, Words]], epilogue: Words
    ) -> tuple[Words, IntArray, dict[str, IntArray]]:
        """Return all instructions (n, words) of the programs.

        `prologue` (buffer, (programs, words)) stands before and `epilogue` (words,) behind each program. The result
        also has the
        start of each program (programs + 1,), and by buffer the instructions that count from it, ascending.
        """
        around = len(prologue) + 1
        start = starts(self._filled) + program * around + len(prologue)
        lengths = np.bincount(program, weights=self._filled, minlength=programs).astype(np.int64) + around
        bounds = np.concatenate(([0], np.cumsum(lengths)))
        stream = np.empty((int(bounds[-1]), self._words), dtype=np.uint64)
        whole = _as_values(stream)
        owners: dict[str, IntArray] = {}
        for number, (buffer, instructions) in enumerate(prologue):
            owners[buffer] = bounds[:-1] + number
            stream[owners[buffer]] = instructions
        for buffer, steps, offset, counts, instructions in self._pieces:
            positions = start.take(steps) + offset
            if counts is not None:
                positions = (positions - starts(counts)).repeat(counts) + np.arange(len(instructions))
            whole[positions] = _as_values(instructions)
            if buffer:
                owners[buffer] = positions
        stream[bounds[1:] - 1] = epilogue
        return stream, bounds, owners


def _as_values(words: Words) -> NDArray[Any]:
    """Instructions of two words as single values, which numpy copies faster than rows; others as they are."""
    return words.view(np.complex128)[..., 0] if words.shape[-1] == 2 else words
