"""Why a configuration is rejected."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from hilt.schedule.tiling import IntArray


class Reason(IntEnum):
    """The first that holds, in this order."""

    OK = 0
    THREAD_SPLIT = 1
    GROUP_SPLIT = 2
    TVM_PADDED_BOX = 3
    TVM_INPUT_BOX = 4
    TVM_OUTPUT_BOX = 5
    TVM_PARTIAL_SUMS = 6
    INP_OVERFLOW = 7
    WGT_OVERFLOW = 8
    ACC_OVERFLOW = 9
    PARTIAL_SUM_SPILL = 10
    UOP_OVERFLOW = 11
    FIELD_OVERFLOW_Y_PAD_0 = 12
    FIELD_OVERFLOW_Y_PAD_1 = 13
    FIELD_OVERFLOW_X_PAD_0 = 14
    FIELD_OVERFLOW_X_PAD_1 = 15
    FIELD_OVERFLOW_ITER_OUT = 16
    FIELD_OVERFLOW_ITER_IN = 17
    FIELD_OVERFLOW_X_STRIDE = 18
    FIELD_OVERFLOW_DRAM_BASE = 19
    TOKEN_LIMIT = 20
    INSN_LIMIT = 21
    ACC_HAZARD = 22
    TVM_THREADS = 23
    TVM_ACC_HAZARD = 24
    TVM_ROWS = 25

    @property
    def text(self) -> str:
        """Return the text in outcomes, as `inp_overflow` or `field_overflow:y_pad_0`."""
        name = self.name.lower()
        field = name.removeprefix("field_overflow_")
        return name if field == name else f"field_overflow:{field}"


TVM_RUNTIME = frozenset({Reason.TVM_THREADS, Reason.TVM_ACC_HAZARD})
"""TVM v0.9 compiles these; its runtime refuses them (TVM_FACTS.md section 1, R6 and R7)."""

Needs = Mapping[Reason, tuple[IntArray, int]]
"""The need of each configuration (n,) and the limit, by reason. A need above the limit is rejected."""


class Rejected(Exception):  # noqa: N818  # the name of the outcome
    """The compiler's refusal of a configuration: `reason` is one of Reason's texts, `detail` says it in numbers."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


def detail(reason: Reason, need: int, limit: int) -> str:
    """Return the rejection in numbers."""
    return _DETAILS.get(reason, "needs {need}, the field holds {limit}").format(need=need, limit=limit)


_DETAILS = {
    Reason.THREAD_SPLIT: "the tiles cannot be split among so many virtual threads",
    Reason.GROUP_SPLIT: "a tile's output channels are neither part of one group nor whole groups",
    Reason.TVM_PADDED_BOX: "TVM v0.9 loads a padded box of one channel block, this one has {need}",
    Reason.TVM_INPUT_BOX: "TVM v0.9 loads an input box of {limit} dimensions, this one has {need}",
    Reason.TVM_OUTPUT_BOX: "TVM v0.9 stores an output box of {limit} dimensions, this one has {need}",
    Reason.TVM_PARTIAL_SUMS: "TVM v0.9 keeps no partial sums of a tile while it computes others",
    Reason.INP_OVERFLOW: "needs {need} elements of input, the buffer holds {limit}",
    Reason.WGT_OVERFLOW: "needs {need} elements of weights, the buffer holds {limit}",
    Reason.ACC_OVERFLOW: "needs {need} accumulator elements, there are {limit}",
    Reason.PARTIAL_SUM_SPILL: "keeps {need} accumulator elements of partial sums, there are {limit}",
    Reason.UOP_OVERFLOW: "needs {need} micro-ops, the buffer holds {limit}",
    Reason.TOKEN_LIMIT: "up to {need} dependence tokens wait at once, their queue holds {limit}",
    Reason.INSN_LIMIT: "takes up to {need} instructions, a program has at most {limit}",
    Reason.ACC_HAZARD: "updates an accumulator element before its last sum is written",
    Reason.TVM_ROWS: "TVM v0.9 has no row programs",
    Reason.TVM_THREADS: "TVM v0.9 never runs {need} virtual threads",
    Reason.TVM_ACC_HAZARD: "TVM v0.9's runtime refuses micro-ops that come back to an element so soon",
}
