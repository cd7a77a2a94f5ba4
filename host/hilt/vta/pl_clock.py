"""Clocks that a processing system makes for the programmable logic.

A clock is a PLL's divided by two whole numbers. The PLL is the one that the boards' boot loaders choose: IO PLL of a
Zynq-7000 (UG585, FPGA0_CLK_CTRL), IOPLL of a Zynq UltraScale+ (UG1085, PL0_REF_CTRL).
"""

from __future__ import annotations

_DIVISORS = range(1, 64)
_ZYNQ_7000_PLL_HZ = 1_000_000_000
_ULTRASCALE_PLL_HZ = 1_499_985_000
"""33.333 MHz x 45."""


def pll_hz(part: str) -> int:
    """Return the frequency of the PLL behind the first clock of a part, named as in a manifest (7z020clg400)."""
    return _ZYNQ_7000_PLL_HZ if part.removeprefix("xc").startswith("7z") else _ULTRASCALE_PLL_HZ


def nearest(part: str, wanted_hz: float) -> float:
    """Return the clock in Hz that a part makes nearest to a frequency; of two as near the lower."""
    pll = pll_hz(part)
    made = sorted({pll / (first * second) for first in _DIVISORS for second in _DIVISORS})
    return min(made, key=lambda hz: (abs(hz - wanted_hz), hz))


def highest(part: str, most_hz: float) -> float:
    """Return the highest clock in Hz that a part makes and that is not above a frequency."""
    pll = pll_hz(part)
    return max(pll / (first * second) for first in _DIVISORS for second in _DIVISORS
               if pll / (first * second) <= most_hz)  # fmt: skip
