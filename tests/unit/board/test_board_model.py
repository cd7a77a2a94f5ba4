"""The file that describes a virtual board."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hilt.virtual.board_model import BOARD_MODELS
from hilt_virtual_board.board_model import BoardModelError, load_board_model

MEMORY = {
    "base": 0x1000_0000,
    "bytes": 1 << 20,
    "read_latency": 30,
    "write_latency": 15,
    "bandwidth_numerator": 8,
    "bandwidth_denominator": 1,
    "jitter": 0,
    "seed": 1,
}
SETTINGS: dict[str, Any] = {
    "name": "virtual:pynq",
    "part": "7z020clg400",
    "clock_hz": 10**8,
    "register_base": 0x43C0_0000,
    "memory": MEMORY,
    "quantum_cycles": 1000,
    "time_scale": 1.5,
}


def load(tmp_path: Path, settings: Any):  # type: ignore[no-untyped-def]
    path = tmp_path / "board_model.json"
    path.write_text(json.dumps(settings))
    return load_board_model(path)


def test_it_becomes_the_models_memory(tmp_path: Path) -> None:
    model = load(tmp_path, SETTINGS).memory_model()
    assert (model.memory_base, model.memory_bytes, model.read_latency) == (0x1000_0000, 1 << 20, 30)
    assert (model.bandwidth_numerator, model.bandwidth_denominator, model.seed) == (8, 1, 1)


@pytest.mark.parametrize("name", sorted(BOARD_MODELS))
def test_the_hosts_board_models_are_understood(tmp_path: Path, name: str) -> None:
    board_model = BOARD_MODELS[name]
    loaded = load(tmp_path, board_model.device_settings())
    assert loaded.part == board_model.bit_part
    assert loaded.memory["bytes"] == board_model.memory_bytes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clock_hz": 0}, "clock_hz cannot be 0"),
        ({"clock_hz": "fast"}, "clock_hz cannot be 'fast'"),
        ({"part": 7}, "part must be text"),
        ({"time_scale": 0.5}, "time_scale cannot be 0.5"),
        ({"surplus": 1}, "surplus"),
        ({"memory": {**MEMORY, "base": 100}}, "base of the memory must be a multiple of 4096"),
        ({"memory": {**MEMORY, "jitter": -1}}, "jitter cannot be -1"),
        ({"memory": {"base": 0}}, "memory must have bandwidth_denominator"),
        ({"memory": None}, "memory must have"),
    ],
)
def test_impossible_settings_are_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(BoardModelError, match=message):
        load(tmp_path, {**SETTINGS, **change})


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BoardModelError, match="is no board model"):
        load_board_model(tmp_path / "nowhere.json")
