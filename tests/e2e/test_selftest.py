"""`hilt boards selftest` on a virtual board finds the figures of its board model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hilt.measure.board_description import VirtualTarget
from hilt.measure.selftest import Check, MemoryFit, SelftestSettings, page_text, selftest
from hilt.virtual.board_model import BOARD_MODELS
from tests.e2e.conftest import stop_boards

LAYER = "resnet18.C8"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    yield tmp_path
    stop_boards(tmp_path)


def test_a_virtual_board_has_the_figures_of_its_model(home: Path) -> None:
    model = BOARD_MODELS["pynq"]
    target = VirtualTarget("virtual:pynq@selftest")
    found: list[MemoryFit] = []
    checks: list[Check] = []
    try:
        checks = list(selftest(target, SelftestSettings(minutes=0.0, layers=[LAYER]), found.append))
    finally:
        target.release()
    assert all(check.well for check in checks), [check for check in checks if not check.well]
    (fit,) = found
    assert fit.read_latency == pytest.approx(model.read_latency, rel=0.02)
    assert fit.write_latency == pytest.approx(model.write_latency, rel=0.02)
    assert fit.bytes_per_cycle == pytest.approx(model.bus_bits / 8, rel=0.02)
    figures = {check.name: check.figures for check in checks}
    assert figures["hazard distance"]["distance"] == 1
    assert figures["drift"]["off"] == 0
    layer = figures[f"layer {LAYER}"]
    assert layer["predicted"] == pytest.approx(layer["cycles"], rel=0.02)
    page = page_text(target, checks)
    assert f"{len(checks)} of {len(checks)} checks are well" in page and LAYER in page


def test_a_bitstream_of_another_design_is_not_calibrated(home: Path) -> None:
    """hilt's timing model does not describe it, which is no fault of the board."""
    target = VirtualTarget("virtual:pynq_public@selftest")
    found: list[MemoryFit] = []
    try:
        for check in selftest(target, SelftestSettings(minutes=0.0, layers=[]), found.append):
            if "error" in check.figures:
                break
    finally:
        target.release()
    assert check.name == "memory" and check.well, check.text
    assert "no calibration" in check.text and check.figures["error"] > 0.1
    assert found == []
