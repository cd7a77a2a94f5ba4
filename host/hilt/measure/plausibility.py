"""Latencies that no board can have: the reply that claims one is the board's fault and never a result."""

from __future__ import annotations

import numpy as np

from hilt.link.errors import LinkError
from hilt.measure.interfaces import Request
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import Opcode, decode
from hilt.vta.program import Program
from hilt_board.protocol import Measured

_ROUNDING = 1e-6
"""Relative; between a figure in cycles and the same figure in microseconds."""
_CLOCK_RATIO = 3.0
_CLOCK_SLACK_MICROSECONDS = 10_000.0
"""The wall clock sees the start, the polling and other processes besides the run itself."""


class ImpossibleLatencyError(LinkError):
    """A verified trial whose latency is impossible; the board's counter or clock is at fault."""


def least_cycles(program: Program, accelerator: Accelerator) -> int:
    """Return the MAC bound of a program in cycles, at least 1.

    A GEMM micro-op takes a cycle; with the hazard interlock two of them that share their product take one together
    (docs/microarchitecture.md, "Pairs").
    """
    instructions = decode(program.instructions, accelerator)
    gemm = instructions[(instructions["opcode"] == Opcode.GEMM) & (instructions["reset"] == 0)]
    uops = gemm["uop_end"].astype(np.int64) - gemm["uop_bgn"].astype(np.int64)
    rounds = gemm["iter_out"].astype(np.int64) * gemm["iter_in"].astype(np.int64)
    together = 2 if accelerator.hazards == "interlock" else 1
    return max(1, int((uops * rounds).sum()) // together)


def impossibility(measured: Measured, request: Request, accelerator: Accelerator, time_scale: float) -> str:
    """Return why the latency of an `ok` reply cannot be, or an empty text where it can.

    Args:
        measured: The board's reply.
        request: The trial that it answers.
        accelerator: The board's accelerator, at the clock that cycles are converted with.
        time_scale: Wall seconds that a device second may take; the wall clock is compared where it is 1.
    """
    if measured.outcome != "ok":
        return ""
    if len(measured.microseconds) != request.repeat:
        return f"{len(measured.microseconds)} latencies came, {request.repeat} were asked for"
    if measured.cycles and len(measured.cycles) != request.repeat:
        return f"{len(measured.cycles)} cycle counts came, {request.repeat} were asked for"
    if reason := _impossible_cycles(measured, least_cycles(request.program, accelerator), accelerator):
        return reason
    if measured.cycles and measured.wall_microseconds and time_scale == 1.0:
        return _disagreement(min(measured.microseconds), min(measured.wall_microseconds))
    return ""


def _impossible_cycles(measured: Measured, bound: int, accelerator: Accelerator) -> str:
    """Return why the cycles are fewer than the bound, or others than the latencies, or an empty text."""
    microseconds_per_cycle = 1e6 / accelerator.clock_hz
    for cycles in measured.cycles or [latency / microseconds_per_cycle for latency in measured.microseconds]:
        if cycles < bound * (1 - _ROUNDING):
            return f"{cycles:g} cycles, the program's multiply-accumulates alone take {bound:,}"
    for cycles, latency in zip(measured.cycles, measured.microseconds, strict=False):
        if abs(cycles * microseconds_per_cycle - latency) > _ROUNDING * latency + _ROUNDING:
            return f"{cycles:g} cycles at {accelerator.clock_hz / 1e6:g} MHz are not {latency:g} µs"
    return ""


def _disagreement(counted: float, wall: float) -> str:
    """Compare the cycle counter with the wall clock, both in microseconds for the same runs."""
    longer, shorter = max(counted, wall), min(counted, wall)
    if longer <= _CLOCK_RATIO * shorter + _CLOCK_SLACK_MICROSECONDS:
        return ""
    return f"the cycle counter says {counted:g} µs, the wall clock {wall:g} µs: the counter stands still or runs wild"
