"""Boards by name, without touching one."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest

from hilt.engine.errors import failure_of
from hilt.engine.events import FailureCause
from hilt.link.errors import UnknownBoardError
from hilt.measure import describe_board
from hilt.measure.board_description import board_names, identity_of, resolve
from hilt.virtual import bitstream
from hilt.virtual.board_model import BOARD_MODELS
from hilt.virtual.errors import UnknownBoardModelError, VirtualBoardError
from hilt.virtual.names import chaos_of


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    return tmp_path


def test_importing_measure_loads_no_network_library() -> None:
    code = "import sys, hilt.measure; print([m for m in ('paramiko', 'asyncssh', 'cryptography') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


def test_describing_a_virtual_board_makes_nothing(home: Path) -> None:
    pynq = describe_board("virtual:pynq")
    assert (pynq.name, pynq.clock_hz, pynq.deterministic) == ("virtual:pynq", 100_000_000, True)
    assert pynq.accelerator.parameters.name == "1x16_i8w8a32_15_15_18_17"
    assert len(pynq.bitstream) == 64
    assert describe_board("virtual:pynq@other").bitstream == pynq.bitstream
    assert describe_board("virtual:zcu104").bitstream != pynq.bitstream
    assert not (home / "virtual").exists()


def test_a_registered_board_is_described_by_its_bitstream(home: Path) -> None:
    (home / "boards.toml").write_text('[desk]\nhost = "192.168.2.99"\nbitstream = "pynq"\n')
    target = resolve("desk")
    assert target.description.bitstream == "0b24cdf9001d349512ab5fb34a0639056c87c8438dc3bce45be892ae43faf568"
    assert target.description.accelerator.hazards == "none"
    assert not target.description.deterministic
    assert target.manifest.identity is None
    assert (target.manifest.part, target.manifest.register_base) == ("7z020clg484", 0x43C0_0000)
    assert board_names()[:2] == ["desk", "virtual:pynq"]


def test_boards_opened_side_by_side_make_their_bitstream_once_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Boards opened side by side make their bitstream once, whole.

    The boards of a fleet do so if the cache is empty.
    """
    model = tmp_path / "model.so"
    model.write_bytes(bytes(4 << 20))
    monkeypatch.setenv("HILT_CACHE", str(tmp_path))
    monkeypatch.setattr(bitstream, "build", lambda *_: model)
    for _ in range(5):
        both_ready = Barrier(2)

        def make() -> bytes:
            both_ready.wait(10)  # noqa: B023  each round has its own
            return bitstream.make_bitstream(BOARD_MODELS["pynq"], "golden").path.read_bytes()

        with ThreadPoolExecutor(2) as pool:
            one, other = (future.result() for future in [pool.submit(make), pool.submit(make)])
        assert one == other and one.endswith(model.read_bytes())
        (made,) = (tmp_path / "bitstreams").iterdir()
        made.unlink()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("virtual:pynq?rate=2", "rate is 2.0; it must be from 0 to 1"),
        ("virtual:pynq?kinds=fire", "no kind 'fire'"),
        ("virtual:pynq?speed=9", "'speed=9' is none of rate="),
        ("virtual:pynq@a/b", "cannot name"),
        ("virtual:ultra", "virtual:ultra96"),
    ],
)
def test_a_name_that_no_virtual_board_can_have_is_bad_input(name: str, message: str) -> None:
    with pytest.raises(VirtualBoardError, match=message) as raised:
        chaos_of(name)
        describe_board(name)
    assert failure_of(raised.value) is FailureCause.INPUT


def test_unknown_boards_are_named_errors(home: Path) -> None:
    with pytest.raises(UnknownBoardModelError, match="virtual:ultra96"):
        describe_board("virtual:ultra")
    with pytest.raises(UnknownBoardError, match="no board 'desk'"):
        describe_board("desk")


def test_identity_words_are_those_of_the_register_map() -> None:
    """1x16, 8/8/32 bits, 15/15/18/17, ISA A, 64 bit, interlock, table, window: by hand from docs/architecture.md."""
    identity = identity_of(describe_board("virtual:pynq").accelerator)
    assert (identity.version, identity.geometry, identity.buffer_sizes) == (1, 0x53340, 0x11120F0F)
    assert identity.build == 0x13600


def test_read_ports_are_bits_14_and_15_of_the_build() -> None:
    names = ("virtual:zcu104_wide", "virtual:zcu104_wide_2p")
    one, two = (identity_of(describe_board(name).accelerator) for name in names)
    assert two.build == one.build | 1 << 14
    assert (two.geometry, two.buffer_sizes) == (one.geometry, one.buffer_sizes)
    four = identity_of(describe_board("virtual:zcu104_bands_4p").accelerator)
    assert four.build >> 14 & 3 == 2


def test_a_public_bitstream_has_no_table_and_no_window() -> None:
    accelerator = describe_board("virtual:pynq_public").accelerator
    assert not accelerator.table and not accelerator.window_rows


def test_other_memory_is_another_board_to_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    known = describe_board("virtual:pynq").bitstream
    slower = replace(BOARD_MODELS["pynq"], read_latency=BOARD_MODELS["pynq"].read_latency + 1)
    monkeypatch.setitem(BOARD_MODELS, "pynq", slower)
    assert describe_board("virtual:pynq").bitstream != known
