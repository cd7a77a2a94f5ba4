"""The number of times a trial runs the device: the daemon's limit covers all its runs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import pytest

from hilt_board import board
from hilt_board.protocol import WireVerification

from .examples import MANIFEST, TRIAL


@pytest.fixture
def execution(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Yield the module, loaded without pynq; nothing of pynq is used here."""
    monkeypatch.setitem(sys.modules, "pynq", ModuleType("pynq"))
    yield importlib.import_module("hilt_board.execution")
    for name in ("execution", "memory", "driver"):
        del sys.modules[f"hilt_board.{name}"]


def test_a_trial_that_is_right_only_the_second_time_takes_the_most_runs(
    execution: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdicts = iter([WireVerification(32, 2), WireVerification(32, 0)])
    placed = SimpleNamespace(instructions=b"", count=2, spoil_output=lambda: None, compare=lambda: next(verdicts))
    monkeypatch.setattr(execution, "Placed", lambda *_: placed)
    ran = []

    def run(instructions: bytes, count: int, limit_seconds: float) -> object:
        ran.append(limit_seconds)
        return SimpleNamespace(outcome="ok", reason="", cycles=None, seconds=1e-6)

    driver = SimpleNamespace(manifest=MANIFEST, counts_cycles=False, run=run, reload=lambda: None)
    trial = replace(TRIAL, number=5, repeat=3)
    measured = execution.run_trial(trial, b"", driver, SimpleNamespace(clear=lambda: None))
    assert measured.outcome == "ok"
    assert len(ran) == board._VERIFICATIONS + 5 * 3
