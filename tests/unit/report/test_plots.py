"""What the pictures say in words."""

from __future__ import annotations

import pytest

from hilt.report.plots import _tick_labels


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([100.0, 200.0, 3000.4], ["100", "200", "3,000"]),
        ([12.5, 12.8, 13.1, 13.5], ["12.5", "12.8", "13.1", "13.5"]),
        ([1.0001, 1.0002], ["1.000", "1.000"]),
        ([7.25] * 4, ["7"] * 4),
    ],
)
def test_different_latencies_read_differently(values: list[float], labels: list[str]) -> None:
    assert _tick_labels(values) == labels
