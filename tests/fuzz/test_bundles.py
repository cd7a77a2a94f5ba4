"""Some hundred of the mutants of `python -m tests.fuzz bundles`."""

from __future__ import annotations

import pytest

from tests.fuzz.bundles import MOST_TIMES_DECLARED, fuzz_bundles

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_search")]


def test_mutated_bundles_are_refused_or_touch_their_own_memory_only() -> None:
    statistics = fuzz_bundles(150, seed=1)
    assert statistics.violations == []
    assert statistics.refused > 50 and statistics.ran > 25, statistics
    assert statistics.most_times_declared <= MOST_TIMES_DECLARED


def test_the_oracle_sees_what_the_checks_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the checks of programs, the golden model meets addresses, indices and waits that must not be."""
    monkeypatch.setattr("hilt_runtime.manifest.check_programs", lambda *arguments: None)
    violations = " ".join(fuzz_bundles(60, seed=1).violations)
    assert "DECERR" in violations and "past its buffer" in violations and "no FINISH" in violations
