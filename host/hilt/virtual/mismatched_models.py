"""Boards that differ from the assumptions of a twin of `pynq`, for evaluation alone.

No tuner's defaults were set on them.
"""

from __future__ import annotations

from dataclasses import replace

from hilt.virtual.board_model import BoardModel, board_model

_PYNQ = board_model("pynq")

MISMATCHED: dict[str, BoardModel] = {
    model.name: model
    for model in (
        replace(_PYNQ, name="far_memory", read_latency=110, write_latency=70),
        replace(_PYNQ, name="narrow_memory", bandwidth_numerator=5, bandwidth_denominator=2),
        replace(_PYNQ, name="jittery_memory", jitter=48, seed=7),
        # The same memory in nanoseconds, behind a faster accelerator.
        replace(
            _PYNQ,
            name="fast_clock",
            clock_hz=142_857_143,
            read_latency=46,
            write_latency=23,
            bandwidth_numerator=28,
            bandwidth_denominator=5,
        ),
        # As the public bitstreams: two updates of an element that are too close lose a sum.
        replace(_PYNQ, name="no_interlock", hazards="none", read_latency=24, write_latency=40),
    )
}
"""Latency, bandwidth, jitter, clock and hazards differ, one board each."""

NO_INTERLOCK_ZCU102 = replace(board_model("zcu102"), name="zcu102_no_interlock", hazards="none")
"""ML2Tuner's board as the public HLS design would be on it: some schedules that run compute wrong sums."""

_ALL = {**MISMATCHED, NO_INTERLOCK_ZCU102.name: NO_INTERLOCK_ZCU102}


def any_board_model(name: str) -> BoardModel:
    """Return a shipped board model or one of these. Raises UnknownBoardModelError."""
    return _ALL[name] if name in _ALL else board_model(name)
