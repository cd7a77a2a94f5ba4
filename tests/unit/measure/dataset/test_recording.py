"""The file, the dataset store, and the inputs that they refuse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.measure.dataset import Dataset, DatasetError, DatasetStore
from hilt.measure.dataset.dataset_store import MissingDatasetError
from hilt.trial import Outcome
from tests.unit.measure.dataset.small import FAR, built, small_subject

METADATA = {
    "schema": 1,
    "name": "made up",
    "identity": {"clock_hz": 100_000_000},
    "outcomes": [str(outcome) for outcome in Outcome],
    "reasons": ["", "why"],
}


def made(cycles: list[int]) -> Dataset:
    """0 cycles: rejected."""
    counted = np.array(cycles, dtype=np.uint32)
    rejected = counted == 0
    return Dataset(METADATA, rejected.astype(np.uint8), rejected.astype(np.uint8), counted)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30))
def test_a_dataset_is_its_arrays(cycles: list[int]) -> None:
    dataset = made(cycles)
    for index, counted in enumerate(cycles):
        result = dataset.result(index)
        assert (result.outcome is Outcome.OK) == (counted > 0) == bool(dataset.valid[index])
        assert result.cycles == (counted or None)
        assert result.microseconds == (pytest.approx(counted / 100) if counted else None)
        assert result.reason == ("" if counted else "why")
        assert result.verification is None
    if any(cycles):
        assert dataset.optimum == pytest.approx(min(filter(None, cycles)) / 100)
        assert cycles.index(min(filter(None, cycles))) == dataset.best
    else:
        with pytest.raises(DatasetError, match="no valid"):
            _ = dataset.best


def test_a_written_record_is_read(tmp_path: Path) -> None:
    dataset = made([3, 0, 2])
    path = tmp_path / "one.npz"
    dataset.write(path)
    again = Dataset.read(path)
    assert again.metadata == dataset.metadata
    for name in ("outcome", "reason", "cycles"):
        assert np.array_equal(getattr(again, name), getattr(dataset, name))
    assert dataset.counts() == {"ok": 2, "rejected:why": 1}


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
        read = Dataset.read(path)
    except DatasetError as error:
        assert "build it again" in str(error)
    else:
        assert np.array_equal(read.cycles, made([3, 0, 2] * 40).cycles)


def test_other_schemas_and_pickles_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.npz"
    Dataset({**METADATA, "schema": 99}, *(np.zeros(1, dtype=np.uint8),) * 3).write(path)
    with pytest.raises(DatasetError, match="schema is 99, this hilt reads 1"):
        Dataset.read(path)
    np.savez(path, metadata=np.array({"a": 1}, dtype=object))
    with pytest.raises(DatasetError, match="cannot be read"):
        Dataset.read(path)
    with pytest.raises(DatasetError, match="differ in length"):
        Dataset(METADATA, np.zeros(2, np.uint8), np.zeros(1, np.uint8), np.zeros(2, np.uint32))
    with pytest.raises(DatasetError, match="no name"):
        Dataset(METADATA, np.zeros(1, np.uint8), np.full(1, 7, np.uint8), np.zeros(1, np.uint32))


def test_the_dataset_store_finds_refuses_and_names_differences(tmp_path: Path) -> None:
    dataset_store = DatasetStore(tmp_path)
    subject = small_subject()
    with pytest.raises(MissingDatasetError, match=r"there is no dataset conv2d:.*`hilt dataset build conv2d:"):
        dataset_store.get(subject)
    (dataset,) = built(tmp_path, [subject])
    assert dataset_store.get(subject).identity == subject.identity
    assert dataset_store.find(subject.name).name == subject.name
    assert dataset_store.find(subject.key[:6]).name == subject.name
    slower = replace(subject, memory=replace(subject.memory, read_latency=33))
    with pytest.raises(MissingDatasetError, match="is of something else: memory was .* is "):
        dataset_store.get(slower)
    dataset_store.path_of(subject).rename(dataset_store.path_of(slower))
    with pytest.raises(DatasetError, match="differs from its name: memory"):
        dataset_store.get(slower)
    assert dataset.name == subject.name


def test_beginnings_that_are_several_names_are_refused(tmp_path: Path) -> None:
    built(tmp_path, [small_subject()])
    built(tmp_path, [small_subject(FAR)])
    with pytest.raises(DatasetError, match="begins the names of 2 datasets"):
        DatasetStore(tmp_path).find("conv2d")
    with pytest.raises(MissingDatasetError, match="no dataset is called 'dense'"):
        DatasetStore(tmp_path).find("dense")


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
    named = replace(subject, board_model="another name", memory=replace(subject.memory, base=0, bytes=1 << 20, seed=9))
    assert named.key == subject.key  # without jitter a seed is never drawn from
