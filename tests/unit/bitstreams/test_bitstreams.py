"""Bitstreams: the manifest and the checks a .bit file must pass."""

from __future__ import annotations

import dataclasses
import os
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hilt import bitstreams
from hilt.bitstreams import manifest as manifest_module
from hilt.cli.main import run as hilt
from hilt_board.bitfile import NotABitfileError, TruncatedBitfileError, WrongPartError


def bit(part: str = "7z020clg400", payload: bytes = b"\xff\xff\xff\xff\xaa\x99\x55\x66" * 16) -> bytes:
    """A .bit file, field by field as the format has it."""
    design = "vta_wrapper;UserID=0XFFFFFFFF;Version=2018.3"
    texts = ((b"a", design), (b"b", part), (b"c", "2020/06/30"), (b"d", "22:36:25"))
    fields = b"".join(tag + struct.pack(">H", len(text) + 1) + text.encode() + b"\0" for tag, text in texts)
    return bytes.fromhex("00090ff00ff00ff00ff0000001") + fields + b"e" + struct.pack(">I", len(payload)) + payload


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HILT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_every_entry_describes_an_accelerator_that_can_be() -> None:
    entries = bitstreams.load_manifest()
    assert {"pynq", "ultra96", "hilt-pynq-z2", "hilt-ultra96", "hilt-zcu104", "hilt-zcu102"} <= set(entries)
    for entry in entries.values():
        assert entry.accelerator().isa.value == entry.isa
    assert entries["pynq"].accelerator().parameters.name == "1x16_i8w8a32_15_15_18_17"
    assert entries["pynq-batched"].accelerator().parameters.name == "4x8_i8w8a32_15_16_16_18"


def test_a_built_file_is_added_and_found_again(tmp_path: Path) -> None:
    file = tmp_path / "mine.bit"
    file.write_bytes(bit())
    entry = bitstreams.find("hilt-pynq-z2")
    with pytest.raises(bitstreams.BitstreamError, match="not here yet: build it"):
        bitstreams.path_of(entry)
    known = bitstreams.add(file, dataclasses.replace(entry, name="mine"))
    assert bitstreams.path_of(bitstreams.find("mine")).read_bytes() == file.read_bytes()
    assert bitstreams.find("mine") == known
    assert bitstreams.find("hilt-pynq-z2") == entry


@pytest.mark.parametrize("name", [b"a\nb.bit", b'"\\\x7f\x1b.bit', "größe 😀.bit".encode(), b"c\xff.bit"])
def test_a_file_of_any_name_is_added(tmp_path: Path, name: bytes) -> None:
    file = tmp_path / os.fsdecode(name)
    file.write_bytes(bit())
    assert hilt(["bitstream", "add", str(file), "--like", "hilt-pynq-z2", "--name", "mine"]) == 0
    assert bitstreams.find("mine").built == f"added from {name.decode(errors='replace')}"


@pytest.mark.parametrize("clock", ["nan", "inf", "-5", "1e30"])
def test_a_clock_that_cannot_be_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], clock: str) -> None:
    file = tmp_path / "mine.bit"
    file.write_bytes(bit())
    assert hilt(["bitstream", "add", str(file), "--like", "hilt-pynq-z2", "--clock-mhz", clock]) == 2
    assert f"--clock-mhz is {float(clock):g}; it must be above 0" in capsys.readouterr().err


def test_of_bitstreams_that_are_added_at_once_none_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "mine.bit"
    file.write_bytes(bit())
    entry = bitstreams.find("hilt-pynq-z2")
    names = {f"mine{number}" for number in range(16)}
    with ThreadPoolExecutor(len(names)) as pool:
        for _ in pool.map(lambda name: bitstreams.add(file, dataclasses.replace(entry, name=name)), names):
            pass
    assert names <= bitstreams.load_manifest().keys()


def test_wrong_part_truncation_hash_and_garbage_each_have_their_message(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "file.bit"
    file.write_bytes(bit(part="7z010clg400"))
    with pytest.raises(WrongPartError, match="is for part 7z010clg400, this board has 7z020clg400"):
        bitstreams.add(file, bitstreams.find("hilt-pynq-z2"))
    file.write_bytes(bit()[:-1])
    with pytest.raises(TruncatedBitfileError, match="announces 128 bytes of payload, it holds 127"):
        bitstreams.add(file, bitstreams.find("hilt-pynq-z2"))
    file.write_bytes(bit(part="7z020clg484"))
    with pytest.raises(bitstreams.HashMismatchError, match="the manifest's pynq is 0b24cdf9"):
        bitstreams.add(file, bitstreams.find("pynq"))
    file.write_bytes(b"\x7fELF not a bitstream")
    with pytest.raises(NotABitfileError):
        bitstreams.add(file, bitstreams.find("hilt-pynq-z2"))
    assert not list(home.glob("bitstreams/*")), "a refused file leaves nothing behind"


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    whole = bit()
    entry = bitstreams.find("hilt-pynq-z2")
    file = tmp_path / "cut.bit"
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        with pytest.raises((NotABitfileError, TruncatedBitfileError)):
            bitstreams.verify(entry, file)


def test_an_unknown_name_lists_close_ones() -> None:
    with pytest.raises(bitstreams.UnknownBitstreamError, match="'pynk'.*pynq"):
        bitstreams.find("pynk")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[x]\nboard = 3\n", "lacks a key"),
        ("[x]\nbored = 'pynq'\n", "unknown key 'bored'"),
        ("[x\n", "is not TOML"),
        ("x = 1\n", "is not a table"),
    ],
)
def test_a_broken_manifest_is_one_clear_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "manifest.toml"
    path.write_text(text)
    with pytest.raises(bitstreams.ManifestError, match=message) as caught:
        manifest_module.read_manifest(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("clock_hz", "100", "clock_hz is '100'; it must be int"),
        ("clock_hz", True, "clock_hz is True; it must be int"),
        ("table", 1, "table is 1; it must be bool"),
        ("board", 3, "board is 3; it must be str"),
        ("board", "pynq\ud800", r"board is 'pynq\\ud800', which is no text"),
        ("name", "Pynq", "'Pynq' is no bitstream name: use a-z, 0-9"),
        ("name", "", "'' is no bitstream name"),
        ("name", "p" * 65, "is no bitstream name: .*, at most 64"),
        ("name", "pynq\n", "is no bitstream name"),
        ("isa", "C", "isa is 'C'; it must be A, B or wide"),
        ("register_base", 0x43C0_0800, "register_base 0x43c00800 is not 4 KiB aligned"),
        ("sha256", "0" * 63, "sha256 is not 64 hex digits"),
        ("sha256", "g" * 64, "sha256 is not 64 hex digits"),
        ("source", "http://example.org/a.bit", "source must start with https://"),
    ],
)
def test_an_entry_that_cannot_be_is_refused_by_its_field(field: str, value: object, message: str) -> None:
    entry = bitstreams.find("pynq")
    with pytest.raises(bitstreams.ManifestError, match=message):
        dataclasses.replace(entry, **{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        *({"name": "p" * 64}, {"name": "0.a_b-c"}, {"isa": "wide"}, {"isa": "B"}, {"register_base": 0x43C0_1000}),
        *({"sha256": ""}, {"sha256": "0f" * 32}, {"source": ""}, {"source": "https://example.org/a.bit"}),
    ],
    ids=str,
)
def test_an_entry_at_the_limits_of_its_fields_is_one(change: dict[str, object]) -> None:
    entry = dataclasses.replace(bitstreams.find("pynq"), **change)  # type: ignore[arg-type]
    assert {name: getattr(entry, name) for name in change} == change


def test_a_manifest_that_is_no_text_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "manifest.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(bitstreams.ManifestError, match="manifest.toml is not text"):
        manifest_module.read_manifest(path)


def test_a_source_that_does_not_answer_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = dataclasses.replace(bitstreams.find("pynq"), source="https://127.0.0.1:1/x.bit")
    with pytest.raises(bitstreams.BitstreamError, match="download it elsewhere, then hilt bitstream add"):
        bitstreams.fetch(entry)
