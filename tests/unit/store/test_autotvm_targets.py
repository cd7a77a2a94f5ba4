"""TVM's target of a board: by its part, and an error where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.store.autotvm_targets import UnknownTargetError, target_of
from hilt.virtual.board_model import BOARD_MODELS

REGISTERED = """
[desk]
host = "192.168.2.99"
bitstream = "hilt-ultra96"

[odd]
host = "192.168.2.98"
bitstream = "kria"
"""
KRIA = """
[kria]
board = "kv260"
part = "xcvc1902-vsva2197"
parameters = "zcu104"
isa = "A"
bus_bits = 128
hazards = "interlock"
clock_hz = 300_000_000
register_base = 0xA000_0000
identity = true
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    (tmp_path / "boards.toml").write_text(REGISTERED)
    (tmp_path / "bitstreams").mkdir()
    (tmp_path / "bitstreams" / "manifest.toml").write_text(KRIA)
    return tmp_path


@pytest.mark.parametrize(
    ("board", "target"),
    [
        ("virtual:pynq_batched@desk", "pynq"),
        ("virtual:ultra96,virtual:ultra96@two", "ultra96"),
        ("virtual:zcu104_wide", "zcu104"),
        ("virtual:zcu102", "zcu102"),
        ("desk", "ultra96"),
        ("labgrid:desk", "ultra96"),
        ("tvm:de10nano_1x16_i8w8a32_15_15_18_17", "de10nano"),
    ],
)
def test_a_board_has_the_target_of_its_part(board: str, target: str) -> None:
    assert target_of(board) == target


@pytest.mark.parametrize("name", sorted(BOARD_MODELS))
def test_every_board_model_has_a_target(name: str) -> None:
    assert name.startswith(target_of(f"virtual:{name}"))


@pytest.mark.parametrize(
    ("board", "why"),
    [
        ("kv260", "no board 'kv260'"),
        ("virtual:nothing", "no virtual board 'nothing'"),
        ("odd", "TVM has none for its part xcvc1902-vsva2197"),
        ("dataset:some", "no board 'dataset:some'"),
    ],
)
def test_a_board_without_a_target_is_an_error_that_names_the_next_step(board: str, why: str) -> None:
    with pytest.raises(UnknownTargetError) as raised:
        target_of(board)
    text = str(raised.value)
    assert text.startswith(f"no TVM target for board {board}: ") and why in text and "\n" not in text
    assert "`hilt log export ID FILE --target TARGET`" in text
