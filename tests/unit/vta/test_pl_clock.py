"""Clocks of the boards: every bitstream that hilt builds runs at one that its board's PLL makes."""

from __future__ import annotations

import pytest

from hilt import bitstreams
from hilt.vta import pl_clock

BUILT = [entry for entry in bitstreams.load_manifest().values() if entry.identity]


@pytest.mark.parametrize("entry", BUILT, ids=lambda entry: entry.name)
def test_the_pll_makes_the_clock_of_the_manifest(entry: bitstreams.Bitstream) -> None:
    assert abs(pl_clock.nearest(entry.part, entry.clock_hz) - entry.clock_hz) <= 0.001 * entry.clock_hz


def test_a_pynq_z2_has_142_857_and_166_667_mhz_but_not_150() -> None:
    assert pl_clock.nearest("7z020clg400", 150e6) == pytest.approx(142_857_142.9)
    assert pl_clock.nearest("7z020clg400", 160e6) == pytest.approx(166_666_666.7)
    assert pl_clock.highest("xc7z020clg400-1", 142.9e6) == pytest.approx(142_857_142.9)


def test_an_ultrascale_has_299_997_mhz_for_300_and_333() -> None:
    assert (
        pl_clock.nearest("xczu7ev-ffvc1156-2-e", 300e6)
        == pl_clock.nearest("xczu7ev-ffvc1156-2-e", 333e6)
        == 299_997_000
    )
    assert pl_clock.highest("xczu7ev-ffvc1156-2-e", 242e6) == pytest.approx(214_283_571, abs=1)
