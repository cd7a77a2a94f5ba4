"""The allocator behind a virtual board's pynq.allocate."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt_virtual_board.contiguous import ContiguousAllocator

PAGE = 4096


def pages(count: int) -> int:
    return max(1, -(-count // PAGE))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5 * PAGE)), max_size=60), st.randoms(use_true_random=False))
def test_pieces_never_overlap_and_all_comes_back(history: list[tuple[bool, int]], choice) -> None:  # type: ignore[no-untyped-def]
    size = 32 * PAGE
    allocator = ContiguousAllocator(size)
    held: dict[int, int] = {}
    for give, count in history:
        if give and held:
            start = choice.choice(sorted(held))
            allocator.give(start, held.pop(start))
            continue
        try:
            start = allocator.take(count)
        except MemoryError:
            largest_gap = _largest_gap(held, size)
            assert pages(count) * PAGE > largest_gap
            continue
        held[start] = count
        assert start % PAGE == 0
        ends = [(each, each + pages(length) * PAGE) for each, length in sorted(held.items())]
        assert ends[-1][1] <= size
        assert all(first[1] <= second[0] for first, second in pairwise(ends))
    for start, count in held.items():
        allocator.give(start, count)
    assert allocator.take(size) == 0


def _largest_gap(held: dict[int, int], size: int) -> int:
    edges = [0]
    for start, count in sorted(held.items()):
        edges += [start, start + pages(count) * PAGE]
    edges.append(size)
    return max(end - start for start, end in zip(edges[::2], edges[1::2], strict=True))


def test_nothing_to_give() -> None:
    with pytest.raises(MemoryError, match="no 4096 contiguous bytes"):
        ContiguousAllocator(0).take(1)
