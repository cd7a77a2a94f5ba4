"""The programs of candidates, each lowered once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from hilt.tune.problem import Indices, TuningProblem
from hilt.vta.program import Program


class LoweredPrograms:
    """The programs by content. Runs of one problem may share them."""

    def __init__(self, problem: TuningProblem, indices: Indices) -> None:
        """Take the candidates' indices (n,) into the space; rows count from 0."""
        self.accelerator = problem.accelerator
        self._problem = problem
        self._indices = indices
        self._digests: dict[int, bytes | None] = {}
        self._programs: dict[bytes, Program] = {}

    def digests(self, rows: Sequence[int]) -> list[bytes | None]:
        """Return the digest of each row's program, equal for equal programs; None if it cannot run."""
        new = [row for row in dict.fromkeys(rows) if row not in self._digests]
        lowered = self._problem.lowered_many(self._indices[np.array(new, dtype=np.int64)])
        for row, program in zip(new, lowered, strict=True):
            self._digests[row] = None if program is None else self._keep(program)
        return [self._digests[row] for row in rows]

    def program(self, digest: bytes) -> Program:
        """Return the program of a digest from `digests`."""
        return self._programs[digest]

    def _keep(self, program: Program) -> bytes:
        digest = hashlib.blake2b(program.instructions.tobytes(), digest_size=16)
        digest.update(program.uops.tobytes())
        self._programs.setdefault(digest.digest(), program)
        return digest.digest()
