"""The library of .bit files: fetched or added once, kept whole, found by name."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import tomllib
import urllib.request
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from hilt import bitstreams
from hilt.bitstreams import library
from hilt_board.bitfile import NotABitfileError

from .test_bitstreams import bit

SOURCE = "https://example.org/folder/vta.bit"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HILT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(autouse=True)
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the internet answers with."""
    file = tmp_path / "source.bit"

    def opened(address: str, timeout: float) -> BinaryIO:
        assert address == SOURCE and 0 < timeout <= 60
        return file.open("rb")

    monkeypatch.setattr(urllib.request, "urlopen", opened)
    return file


@pytest.fixture
def kept(home: Path) -> Path:
    return home / "bitstreams"


def served(tmp_path: Path, contents: bytes, **changes: Any) -> bitstreams.Bitstream:
    """Return an entry whose source answers with these contents."""
    (tmp_path / "source.bit").write_bytes(contents)
    return dataclasses.replace(bitstreams.find("hilt-pynq-z2"), name="mine", source=SOURCE, **changes)


def test_a_fetched_file_is_kept_by_its_content_and_its_entry_remembered(tmp_path: Path, kept: Path) -> None:
    contents = bit(payload=bytes(range(256)) * 9000)  # of more than two blocks
    digest = hashlib.sha256(contents).hexdigest()
    entry = served(tmp_path, contents)
    with pytest.raises(bitstreams.BitstreamError, match="mine is not here yet: hilt bitstream fetch mine$"):
        bitstreams.path_of(entry)
    known = bitstreams.fetch(entry)
    assert known == dataclasses.replace(entry, sha256=digest)
    assert bitstreams.path_of(known) == kept / f"{digest}.bit"
    assert (kept / f"{digest}.bit").read_bytes() == contents
    assert sorted(path.name for path in kept.iterdir()) == sorted([f"{digest}.bit", "manifest.lock", "manifest.toml"])
    assert kept.stat().st_mode & 0o077 == 0, "nobody else reads it"


def test_an_entry_whose_file_is_gone_says_how_to_get_it(tmp_path: Path) -> None:
    known = bitstreams.fetch(served(tmp_path, bit()))
    bitstreams.path_of(known).unlink()
    with pytest.raises(bitstreams.BitstreamError, match="not here yet: hilt bitstream fetch mine$"):
        bitstreams.path_of(known)
    built = dataclasses.replace(known, source="")
    with pytest.raises(bitstreams.BitstreamError, match=r"build it .*, then hilt bitstream add FILE --like mine$"):
        bitstreams.path_of(built)


@pytest.mark.parametrize("spare", [0, -1])
def test_a_download_is_cut_off_behind_the_largest_bitstream(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch, spare: int
) -> None:
    contents = bit(payload=b"\xaa" * (3 << 20))
    monkeypatch.setattr(library, "MAX_BYTES", len(contents) + spare)
    entry = served(tmp_path, contents)
    if spare == 0:
        assert bitstreams.path_of(bitstreams.fetch(entry)).read_bytes() == contents
        return
    with pytest.raises(bitstreams.BitstreamError, match="longer than 3 MiB, which no bitstream is; download it else"):
        bitstreams.fetch(entry)
    assert not kept.exists()


def test_a_source_that_gives_another_file_leaves_nothing(tmp_path: Path, kept: Path) -> None:
    with pytest.raises(bitstreams.HashMismatchError):
        bitstreams.fetch(served(tmp_path, bit(), sha256="0" * 64))
    with pytest.raises(NotABitfileError):
        bitstreams.fetch(served(tmp_path, b"<html>not found</html>"))
    assert not kept.exists()


def test_an_entry_without_a_source_is_built() -> None:
    entry = dataclasses.replace(bitstreams.find("hilt-pynq-z2"), source="")
    with pytest.raises(bitstreams.BitstreamError, match=r"hilt-pynq-z2 has no source; build it \(hls/vivado\), then"):
        bitstreams.fetch(entry)


def test_what_is_known_already_is_not_written_again(tmp_path: Path, kept: Path) -> None:
    entry = served(tmp_path, bit())
    known = bitstreams.fetch(entry)
    before = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in kept.iterdir()}
    assert bitstreams.fetch(entry) == known == bitstreams.add(tmp_path / "source.bit", known)
    assert {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in kept.iterdir()} == before
    other = bitstreams.add(tmp_path / "source.bit", dataclasses.replace(entry, name="other"))
    assert bitstreams.find("other") == other and bitstreams.find("mine") == known
    assert len(list(kept.glob("*.bit"))) == 1, "one file of both"


def test_an_entry_is_read_as_it_was_written_and_holds_what_is_not_usual(tmp_path: Path, kept: Path) -> None:
    given = served(tmp_path, bit(), built='by "hand" \\ today')
    known = bitstreams.fetch(given)
    table = tomllib.loads((kept / "manifest.toml").read_text())["mine"]
    values = {field.name: getattr(known, field.name) for field in dataclasses.fields(known) if field.name != "name"}
    assert table == {name: value for name, value in values.items() if value not in ("", False)}
    assert bitstreams.find("mine") == known


def test_a_copy_that_breaks_off_leaves_the_library_as_it_was(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bitstreams.fetch(served(tmp_path, bit()))
    before = {path.name: path.read_bytes() for path in kept.iterdir()}

    def breaks_off(source: Any, target: Any) -> None:
        target.write(source.read(20))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", breaks_off)
    with pytest.raises(OSError, match="No space left"):
        bitstreams.fetch(served(tmp_path, bit(payload=b"another")))
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == before
