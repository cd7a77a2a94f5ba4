"""The places of tensors in memory: no two that are alive at one time overlap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hilt.network.buffers import PAGE, Life, one_behind_another, pages, shared


def lives() -> st.SearchStrategy[list[Life]]:
    one = st.tuples(st.integers(0, 5 * PAGE), st.integers(0, 8), st.integers(0, 4))
    return st.lists(one, max_size=12).map(
        lambda drawn: [Life(f"t{at}", size, first, first + length) for at, (size, first, length) in enumerate(drawn)]
    )


@given(lives())
def test_tensors_that_live_together_have_memory_of_their_own(drawn: list[Life]) -> None:
    offsets, size = shared(drawn)
    assert set(offsets) == {life.name for life in drawn}
    for at, first in enumerate(drawn):
        assert offsets[first.name] % PAGE == 0 and offsets[first.name] + first.bytes <= size
        for second in drawn[at + 1 :]:
            if first.first <= second.last and second.first <= first.last:
                begin, other = offsets[first.name], offsets[second.name]
                assert begin + pages(first.bytes) <= other or other + pages(second.bytes) <= begin


def test_lives_that_touch_share_nothing_and_lives_apart_share_all() -> None:
    touching = [Life("a", PAGE, 0, 1), Life("b", PAGE, 1, 2)]  # the step that reads a writes b
    assert len(set(shared(touching)[0].values())) == 2
    apart = [Life("a", PAGE, 0, 1), Life("b", PAGE, 2, 3)]
    assert shared(apart) == ({"a": 0, "b": 0}, PAGE)


def test_kept_tensors_lie_one_behind_another() -> None:
    assert one_behind_another({"a": 1, "b": PAGE + 1, "c": 0}) == ({"a": 0, "b": PAGE, "c": 3 * PAGE}, 4 * PAGE)
