"""Many inferences in requests of about the same time."""

from __future__ import annotations

from typing import Any

import pytest

from hilt.network import inference_groups
from hilt.network.board_run import Inferences
from hilt.network.inference_groups import groups, run_repeatedly


def sizes_of(count: int, most: int, seconds: float, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[int]]:
    """Return the sizes of the requests, and the reports, where an inference takes so many seconds."""
    now, told = [0.0], []
    monkeypatch.setattr(inference_groups, "monotonic", lambda: now[0])
    sizes = []
    for places in groups(count, most, lambda done, of: told.append(done)):
        sizes.append(len(places))
        now[0] += seconds * len(places)
    return sizes, told


def test_requests_grow_until_they_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, told = sizes_of(1000, 1000, 0.01, monkeypatch)
    assert sizes == [4, 32, *[150] * 6, 64] and told == [0, 4, 36, *range(186, 1000, 150), 1000]
    assert sizes_of(200, 64, 0.01, monkeypatch)[0] == [4, 32, 64, 64, 36]


def test_slow_inferences_are_told_of_often_and_few_are_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sizes_of(10, 64, 5.0, monkeypatch) == ([4, 4, 2], [0, 4, 8, 10])
    assert sizes_of(8, 64, 5.0, monkeypatch) == ([8], [0, 8])


def test_the_times_of_all_requests_count_and_the_last_arrays() -> None:
    class Runner:
        def __init__(self) -> None:
            self.asked: list[int] = []

        def run(self, *_: object, repeat: int, keep: bool) -> Inferences:
            self.asked.append(repeat)
            runs: list[dict[str, Any]] = [{"seconds": 1.0}] * (repeat // 2)
            return Inferences({"turn": len(self.asked)}, runs, "native", {"a": "b"}, (repeat - repeat // 2, 0.5))

    runner: Any = Runner()
    answer = run_repeatedly(runner, None, b"", b"", 12, True, lambda *_: None)  # type: ignore[arg-type]
    assert runner.asked == [4, 8]
    assert (answer.arrays, len(answer.runs), answer.overlapped) == ({"turn": 2}, 6, (6, 1.0))
    assert (answer.engine, answer.engines) == ("native", {"a": "b"})
