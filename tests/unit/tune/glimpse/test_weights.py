from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from hilt.tune.glimpse import weights
from hilt.tune.glimpse.weights import LARGEST_FILE, SHIPPED, WeightsError, load_weights, save_weights


def contents() -> dict[str, np.ndarray]:
    with np.load(SHIPPED, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def write(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    np.savez_compressed(path, **arrays)
    return path


def test_the_shipped_weights_are_small_and_name_their_training_layers() -> None:
    assert SHIPPED.stat().st_size < LARGEST_FILE
    metadata = load_weights().metadata
    assert metadata["designs"] and metadata["layers"] and metadata["accelerators"]
    assert "Never seen" in metadata["statement"]
    assert len(metadata["commit"]) == 40


def test_saved_weights_are_loaded_again(tmp_path: Path) -> None:
    arrays = contents()
    metadata = json.loads(arrays.pop("metadata").tobytes())
    save_weights(tmp_path / "again.npz", arrays, metadata)
    again = load_weights(tmp_path / "again.npz")
    assert again.metadata == load_weights().metadata
    assert np.array_equal(again.prior.weights[0], load_weights().prior.weights[0])
    assert [path.name for path in tmp_path.iterdir()] == ["again.npz"]


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="hilt glimpse train"):
        load_weights(tmp_path / "none.npz")


@pytest.mark.parametrize("place", [100, 5_000, -200])
def test_a_damaged_file_is_refused(tmp_path: Path, place: int) -> None:
    damaged = bytearray(SHIPPED.read_bytes())
    damaged[place] ^= 0xFF
    path = tmp_path / f"damaged{place}.npz"
    path.write_bytes(damaged)
    with pytest.raises(WeightsError, match="cannot be used"):
        load_weights(path)


def test_half_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "half.npz"
    path.write_bytes(SHIPPED.read_bytes()[: SHIPPED.stat().st_size // 2])
    with pytest.raises(WeightsError, match="cannot be used"):
        load_weights(path)


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.npz"
    path.write_bytes(b"\0" * (LARGEST_FILE + 1))
    with pytest.raises(WeightsError, match="more than"):
        load_weights(path)


def test_a_small_file_that_unpacks_to_a_large_one_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata.npy", b"\0" * (weights.LARGEST_CONTENTS + 1))
    assert path.stat().st_size < LARGEST_FILE
    with pytest.raises(WeightsError, match="unpacks"):
        load_weights(path)


def test_objects_are_not_unpickled(tmp_path: Path) -> None:
    arrays = contents() | {"prior.mean": np.array([{"code": 1}], dtype=object)}
    with pytest.raises(WeightsError, match="cannot be used"):
        load_weights(write(tmp_path / "pickled.npz", arrays))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("prior.0.weight", np.zeros((3, 3), dtype=np.float32)),
        ("prior.0.bias", np.full(96, np.nan, dtype=np.float32)),
        ("blueprint.mean", np.zeros(3, dtype=np.float32)),
        ("acquisition.mean", np.zeros(5, dtype=np.float32)),
        ("thresholds.0.weight", np.zeros((40, 64), dtype=np.float64)),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, name: str, value: np.ndarray) -> None:
    with pytest.raises(WeightsError, match="cannot be used"):
        load_weights(write(tmp_path / "unfit.npz", contents() | {name: value}))


def test_another_schema_is_refused(tmp_path: Path) -> None:
    metadata = np.frombuffer(b'{"schema": 99}', dtype=np.uint8)
    with pytest.raises(WeightsError, match="schema"):
        load_weights(write(tmp_path / "newer.npz", contents() | {"metadata": metadata}))
