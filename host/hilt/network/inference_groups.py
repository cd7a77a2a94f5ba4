"""Many inferences in several requests to a board, so that a command can say how many are done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any

from hilt.network.board_run import BoardRunner, Inferences

if TYPE_CHECKING:
    from hilt_runtime import Bundle

Advance = Callable[[int, int], None]
"""Called with the inferences done and all of them."""
_AT_ONCE = 8
"""So many inferences or less are one request."""
_FIRST = 4
"""Inferences of the first request. No request but the last has fewer: they would not overlap."""
_SECONDS = 1.5
"""Target duration of a request."""
_GROWTH = 8


def groups(count: int, most: int, advance: Advance) -> Iterator[range]:
    """Yield the places of each request's inferences, at most `most`; the time until the next question is its time."""
    advance(0, count)
    done, size = 0, count if count <= _AT_ONCE else _FIRST
    while done < count:
        size = min(size, most, count - done)
        began = monotonic()
        yield range(done, done + size)
        took = max(monotonic() - began, 1e-6)
        done += size
        advance(done, count)
        size = max(_FIRST, min(round(size * _SECONDS / took), _GROWTH * size))


def run_repeatedly(
    runner: BoardRunner, bundle: Bundle, data: bytes, inputs: bytes, repeat: int, keep: bool, advance: Advance
) -> Inferences:
    """Run inferences with the same inputs; return the last one's arrays and the times of all.

    Raises as BoardRunner.run.
    """
    runs: list[dict[str, Any]] = []
    images, seconds = 0, 0.0
    for places in groups(repeat, repeat, advance):
        answer = runner.run(bundle, data, inputs, repeat=len(places), keep=keep)
        runs += answer.runs
        images, seconds = images + answer.overlapped[0], seconds + answer.overlapped[1]
    return replace(answer, runs=runs, overlapped=(images, seconds))
