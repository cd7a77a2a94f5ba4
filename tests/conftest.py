"""Settings of every test: no deadline on a busy machine, and markers by need."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_TESTS = Path(__file__).parent

# Hypothesis fails an example that takes 200 ms, and a test whose examples are slow to draw.
settings.register_profile("busy", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

_NEEDS = {"rtl": "rtl", "e2e": "ssh", "fault": "ssh", "unit/tui": "tui"}
"""Marker of every test below a folder of tests/."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by need, so that `-m "not rtl and not ssh and not tui"` selects the quick ones."""
    for item in items:
        folder = item.path.relative_to(_TESTS).as_posix()
        for prefix, marker in _NEEDS.items():
            if folder.startswith(prefix + "/"):
                item.add_marker(marker)
