"""The file, the shelf, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.measure.landscape import Landscape, LandscapeError, Shelf
from hilt.measure.landscape.shelf import MissingLandscapeError
from hilt.trial import Outcome
from tests.unit.measure.landscape.small import FAR, built, small_subject

METADATA = {
    "schema": 1,
    "name": "made up",
    "identity": {"clock_hz": 100_000_000},
    "outcomes": [str(outcome) for outcome in Outcome],
    "reasons": ["", "why"],
}


def made(cycles: list[int]) -> Landscape:
    """0 cycles: rejected."""
    counted = np.array(cycles, dtype=np.uint32)
    rejected = counted == 0
    return Landscape(METADATA, rejected.astype(np.uint8), rejected.astype(np.uint8), counted)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30))
def test_a_landscape_is_its_arrays(cycles: list[int]) -> None:
    landscape = made(cycles)
    for index, counted in enumerate(cycles):
        result = landscape.result(index)
        assert (result.outcome is Outcome.OK) == (counted > 0) == bool(landscape.valid[index])
        assert result.cycles == (counted or None)
        assert result.microseconds == (pytest.approx(counted / 100) if counted else None)
        assert result.reason == ("" if counted else "why")
        assert result.verification is None
    if any(cycles):
        assert landscape.optimum == pytest.approx(min(filter(None, cycles)) / 100)
        assert cycles.index(min(filter(None, cycles))) == landscape.best
    else:
        with pytest.raises(LandscapeError, match="no valid"):
            _ = landscape.best


def test_what_is_written_is_read(tmp_path: Path) -> None:
    landscape = made([3, 0, 2])
    path = tmp_path / "one.npz"
    landscape.write(path)
    again = Landscape.read(path)
    assert again.metadata == landscape.metadata
    for name in ("outcome", "reason", "cycles"):
        assert np.array_equal(getattr(again, name), getattr(landscape, name))
    assert landscape.counts() == {"ok": 2, "rejected:why": 1}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2_000), st.integers(0, 255))
def test_a_damaged_file_is_refused_or_says_the_same(
    tmp_path_factory: pytest.TempPathFactory, at: int, byte: int
) -> None:
    path = tmp_path_factory.mktemp("damage") / "one.npz"
    made([3, 0, 2] * 40).write(path)
    content = bytearray(path.read_bytes())
    content[at % len(content)] = byte
    path.write_bytes(content)
    try:
        read = Landscape.read(path)
    except LandscapeError as error:
        assert "build it again" in str(error)
    else:
        assert np.array_equal(read.cycles, made([3, 0, 2] * 40).cycles)


def test_other_schemas_and_pickles_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.npz"
    Landscape({**METADATA, "schema": 99}, *(np.zeros(1, dtype=np.uint8),) * 3).write(path)
    with pytest.raises(LandscapeError, match="schema is 99, this hilt reads 1"):
        Landscape.read(path)
    np.savez(path, metadata=np.array({"a": 1}, dtype=object))
    with pytest.raises(LandscapeError, match="cannot be read"):
        Landscape.read(path)
    with pytest.raises(LandscapeError, match="differ in length"):
        Landscape(METADATA, np.zeros(2, np.uint8), np.zeros(1, np.uint8), np.zeros(2, np.uint32))
    with pytest.raises(LandscapeError, match="no name"):
        Landscape(METADATA, np.zeros(1, np.uint8), np.full(1, 7, np.uint8), np.zeros(1, np.uint32))


def test_the_shelf_finds_refuses_and_says_what_differs(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    subject = small_subject()
    with pytest.raises(MissingLandscapeError, match=r"there is no landscape conv2d:.*`hilt landscape build conv2d:"):
        shelf.get(subject)
    (landscape,) = built(tmp_path, [subject])
    assert shelf.get(subject).identity == subject.identity
    assert shelf.find(subject.name).name == subject.name
    assert shelf.find(subject.key[:6]).name == subject.name
    slower = replace(subject, memory=replace(subject.memory, read_latency=33))
    with pytest.raises(MissingLandscapeError, match="is of something else: memory was .* is "):
        shelf.get(slower)
    shelf.path_of(subject).rename(shelf.path_of(slower))
    with pytest.raises(LandscapeError, match="not what its name says: memory"):
        shelf.get(slower)
    assert landscape.name == subject.name


def test_beginnings_that_are_several_names_are_refused(tmp_path: Path) -> None:
    built(tmp_path, [small_subject()])
    built(tmp_path, [small_subject(FAR)])
    with pytest.raises(LandscapeError, match="begins the names of 2 landscapes"):
        Shelf(tmp_path).find("conv2d")
    with pytest.raises(MissingLandscapeError, match="no landscape is called 'dense'"):
        Shelf(tmp_path).find("dense")


def test_the_key_is_of_everything_that_counts() -> None:
    subject = small_subject()
    others = [
        small_subject(FAR),
        small_subject(checks="tvm"),
        small_subject(orders=4),
        small_subject(kind="ml2"),
        replace(subject, memory=replace(subject.memory, jitter=3)),
        replace(subject, accelerator=replace(subject.accelerator, hazards="none")),
        replace(subject, accelerator=replace(subject.accelerator, clock_hz=99)),
    ]
    assert len({subject.key, *(other.key for other in others)}) == 1 + len(others)
    named = replace(subject, personality="another name", memory=replace(subject.memory, base=0, bytes=1 << 20, seed=9))
    assert named.key == subject.key  # without jitter a seed is never drawn from
