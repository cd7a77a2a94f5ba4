"""A few of the networks of `python -m tests.fuzz networks`."""

from __future__ import annotations

import pytest

from tests.fuzz.networks import fuzz_networks

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_search")]


def test_random_networks_run_as_their_references() -> None:
    statistics = fuzz_networks(6, seed=1)
    assert statistics.wrong == []
    assert not statistics.refused and statistics.tensors > 30, statistics
    assert {"conv2d", "table", "upsample"} <= set(statistics.operators)
