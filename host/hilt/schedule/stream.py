"""An instruction stream put together from pieces that cover many steps at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.tiling import IntArray

Words = NDArray[np.uint64]


class Stream:
    """Steps of instructions, each of `words` 64-bit words. Within a step pieces follow in the order they were added."""

    def __init__(self, steps: int, words: int) -> None:
        self._words = words
        self._filled = np.zeros(steps, dtype=np.int64)
        self._pieces: list[tuple[str, IntArray | None, IntArray, Words]] = []

    def add(self, buffer: str, steps: IntArray | None, instructions: Words) -> None:
        """`instructions` (m, k, words): k for each of `steps` (m,), no step twice, or of all steps (None). `buffer` is
        the one from whose start their dram_base counts, or "" for none."""
        if steps is None:
            offset = self._filled.copy()
            self._filled += instructions.shape[1]
        else:
            offset = self._filled[steps]
            self._filled[steps] = offset + instructions.shape[1]
        self._pieces.append((buffer, steps, offset, instructions))

    def assemble(self, prologue: list[tuple[str, Words]], epilogue: Words) -> tuple[Words, dict[str, IntArray]]:
        """All instructions (n, words), `prologue` (instructions with their buffers) before and `epilogue` (m, words)
        behind; and by buffer the instructions that count from it, ascending."""
        before = len(prologue)
        starts = before + np.concatenate(([0], np.cumsum(self._filled)))
        stream = np.empty((int(starts[-1]) + len(epilogue), self._words), dtype=np.uint64)
        whole = _as_values(stream)
        owner = np.zeros(len(stream), dtype=np.uint8)
        names: list[str] = []
        for number, (buffer, instruction) in enumerate(prologue):
            stream[number] = instruction
            names.append(buffer)
            owner[number] = len(names)
        for buffer, steps, offset, instructions in self._pieces:
            if buffer and buffer not in names:
                names.append(buffer)
            first = starts[:-1] + offset if steps is None else starts[steps] + offset
            values = _as_values(instructions)
            for number in range(instructions.shape[1]):
                positions = first + number if number else first
                whole[positions] = values[:, number]
                if buffer:
                    owner[positions] = names.index(buffer) + 1
        stream[int(starts[-1]) :] = epilogue
        return stream, {name: np.flatnonzero(owner == number) for number, name in enumerate(names, 1)}


def _as_values(words: Words) -> NDArray[Any]:
    """Instructions of two words as single values, which numpy copies faster than rows; others as they are."""
    return words.view(np.complex128)[..., 0] if words.shape[-1] == 2 else words
