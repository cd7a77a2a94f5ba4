"""Boards that are not what a twin of `pynq` assumes, for evaluation alone: no tuner's defaults were set on them."""

from __future__ import annotations

from dataclasses import replace

from hilt.virtual.personality import PERSONALITIES, Personality, personality

_PYNQ = personality("pynq")

MISMATCHED: dict[str, Personality] = {
    each.name: each
    for each in (
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


def any_personality(name: str) -> Personality:
    """A shipped one or a mismatched one. Raises UnknownPersonalityError."""
    if name in MISMATCHED and name not in PERSONALITIES:
        return MISMATCHED[name]
    return personality(name)
