"""Pieces of a table are computed once, whatever happens to the others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from hilt.measure.dataset import DatasetKey
from hilt_experiments.shards import Row, Shard, rows_of


def number(subjects: Sequence[DatasetKey], folder: str, wanted: int) -> list[Row]:
    """Notes in a file that it was called, and fails while there is one called `broken`."""
    Path(folder, f"{wanted}.{os.getpid()}").touch()
    if wanted == 2 and Path(folder, "broken").exists():
        raise ValueError("2 is broken")
    return [{"number": wanted, "share": 0.1 * wanted}, {"number": wanted, "share": float("nan")}]


def shards(folder: Path, count: int) -> list[Shard]:
    return [Shard("numbers", number, (), (str(folder), each)) for each in range(count)]


@pytest.mark.slow
def test_computed_shards_are_read_and_failed_ones_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path / "home"))
    calls = tmp_path / "calls"
    calls.mkdir()
    (calls / "broken").touch()
    with pytest.raises(ValueError, match="2 is broken"):
        rows_of(shards(calls, 3), 1, lambda line: None)
    (calls / "broken").unlink()
    said: list[str] = []
    rows = rows_of(shards(calls, 4), 1, said.append)
    assert [row["number"] for row in rows] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [row["share"] for row in rows[::2]] == [0.0, 0.1, 0.2, 0.1 * 3]
    assert [line.split(",")[0] for line in said] == ["1/2 pieces", "2/2 pieces"]
    assert said[-1].endswith("about 0 min left")
    called = [path.name.split(".")[0] for path in calls.iterdir()]
    assert sorted(called) == ["0", "1", "2", "2", "3"]
    assert rows_of(shards(calls, 4), 1, said.append)[:1] == rows[:1] and len(said) == 2


def test_other_arguments_and_another_experiment_are_another_file(tmp_path: Path) -> None:
    paths = {shard.path for shard in shards(tmp_path, 3)}
    assert len(paths) == 3 and Shard("others", number, (), (str(tmp_path), 0)).path not in paths
