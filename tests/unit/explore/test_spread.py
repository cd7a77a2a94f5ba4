"""Which designs along the front are verified, by latency and area alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hilt.explore.area import Area
from hilt.explore.exploration import front, spread


def evaluation(microseconds: float, lut: int, reason: str = "") -> Any:
    rate = 1e6 / microseconds
    area = Area(lut, 10 * lut, 4, 8.0, "model")
    return SimpleNamespace(
        microseconds=microseconds, images_a_second=rate, area=area, inference=SimpleNamespace(reason=reason)
    )


FRONT = [(60.0, 100), (50.0, 200), (40.0, 300), (30.0, 400), (20.0, 500), (10.0, 600)]
EVERY = [evaluation(*each) for each in [*FRONT, (61.0, 150), (41.0, 350), (90.0, 900)]] + [
    evaluation(1.0, 1, "none fits")
]


def test_the_front_is_of_designs_with_a_schedule() -> None:
    assert sorted(front(EVERY)) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("count", "places"), [(0, []), (1, 1), (2, 2), (3, 3), (4, 4), (6, 6), (7, 7), (8, 8), (20, 9)]
)
def test_as_many_as_are_wanted_along_the_front_and_then_of_the_next(count: int, places: Any) -> None:
    chosen = spread(EVERY, count)
    assert len(chosen) == len(set(chosen)) == (places if count else 0)
    along = front(EVERY)
    if 2 <= count <= 6:
        assert (chosen[0], chosen[-1]) == (along[0], along[-1]), "its ends"
    assert set(chosen[:6]) <= set(along) and 9 not in chosen
    if count > 6:
        assert set(chosen[:6]) == set(along) and set(chosen[6:]) <= {6, 7, 8} and (count < 9 or 8 in chosen)
    if count == 3:
        assert chosen[1] == along[round(2.5)]
