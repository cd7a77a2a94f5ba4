"""An instruction stream put together from pieces that cover many steps at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.tiling import IntArray

Words = NDArray[np.uint64]


class Stream:
    """Steps of instructions, each of `words` 64-bit words. Within a step pieces follow in the order they were added."""

    def __init__(self, steps: int, words: int) -> None:
        self._words = words
        self._filled = np.zeros(steps, dtype=np.int64)
        self._pieces: list[tuple[str, IntArray, IntArray, Words]] = []

    def add(self, buffer: str, steps: IntArray | None, instructions: Words) -> None:
        """`instructions` (m, k, words): k for each of `steps` (m,), no step twice, or of all steps (None). `buffer` is
        the one from whose start their dram_base counts, or "" for none."""
        if steps is None:
            steps = np.arange(len(self._filled))
        offset = self._filled[steps]
        self._filled[steps] += instructions.shape[1]
        self._pieces.append((buffer, steps, offset, instructions))

    def assemble(self, prologue: list[tuple[str, Words]], epilogue: Words) -> tuple[Words, dict[str, IntArray]]:
        """All instructions (n, words), `prologue` (instructions with their buffers) before and `epilogue` (m, words)
        behind; and by buffer the instructions that count from it, ascending."""
        before = len(prologue)
        starts = before + np.concatenate(([0], np.cumsum(self._filled)))
        stream = np.empty((int(starts[-1]) + len(epilogue), self._words), dtype=np.uint64)
        used: dict[str, list[IntArray]] = {}
        for number, (buffer, instruction) in enumerate(prologue):
            stream[number] = instruction
            used.setdefault(buffer, []).append(np.array([number]))
        for buffer, steps, offset, instructions in self._pieces:
            positions = (starts[steps] + offset)[:, None] + np.arange(instructions.shape[1])
            stream[positions] = instructions
            if buffer:
                used.setdefault(buffer, []).append(positions.ravel())
        stream[int(starts[-1]) :] = epilogue
        return stream, {buffer: np.sort(np.concatenate(positions)) for buffer, positions in used.items()}
