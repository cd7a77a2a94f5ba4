"""`hilt bitstream`: its list, and its words about a file that is checked, kept or fetched."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest

from hilt import bitstreams
from hilt.bitstreams import BitstreamError
from hilt.cli.main import run as hilt
from tests.unit.bitstreams.test_bitstreams import bit

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HILT_HOME", str(tmp_path / "home"))
    path = tmp_path / "mine.bit"
    path.write_bytes(bit())
    return path


def test_the_list_says_of_each_where_it_is_to_be_had(file: Path, capsys: Captured) -> None:
    assert hilt(["bitstream", "add", str(file), "--like", "hilt-pynq-z2", "--name", "mine"]) == 0
    capsys.readouterr()
    assert hilt(["bitstream", "list"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line for line in lines}
    assert header.split() == ["name", "board", "part", "parameters", "ISA", "bus", "clock", "hazards", "file"]
    assert set(rows) == {*bitstreams.load_manifest()}
    assert rows["mine"].split()[-1] == "here"
    assert rows["pynq"].endswith("to fetch") and rows["hilt-pynq-z2"].endswith("to build")
    assert " 7z020clg400 " in rows["mine"] and " 100 MHz " in rows["pynq"]
    assert rows["pynq"].split()[-3] == bitstreams.find("pynq").hazards


def test_json_has_the_manifests_fields_and_whether_it_is_here(file: Path, capsys: Captured) -> None:
    hilt(["bitstream", "add", str(file), "--like", "hilt-pynq-z2", "--name", "mine"])
    capsys.readouterr()
    assert hilt(["bitstream", "list", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    here = {entry["name"]: entry["here"] for entry in said["items"]}
    assert said["kind"] == "bitstreams" and here["mine"] is True and here["pynq"] is False
    (mine,) = (entry for entry in said["items"] if entry["name"] == "mine")
    assert mine == dataclasses.asdict(bitstreams.find("mine")) | {"here": True}


def test_a_file_is_checked_against_its_entry(file: Path, capsys: Captured) -> None:
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert hilt(["bitstream", "verify", "hilt-pynq-z2", str(file)]) == 0
    about, verdict = capsys.readouterr().out.splitlines()
    assert about == f"mine.bit: vta_wrapper for 7z020clg400, built 2020/06/30 22:36:25, sha256 {digest}"
    assert verdict == "the manifest has no sha256 for it: part and length agree"
    hilt(["bitstream", "add", str(file), "--like", "hilt-pynq-z2", "--name", "mine"])
    assert capsys.readouterr().out == f"mine: kept, sha256 {digest}\n"
    assert hilt(["bitstream", "verify", "mine", str(file)]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "it is the manifest's"


def test_an_added_file_differs_from_its_like_only_where_it_is_said(file: Path) -> None:
    like = bitstreams.find("hilt-pynq-z2")
    options = ["--clock-mhz", "142.857142", "--parameters", "ultra96"]
    assert hilt(["bitstream", "add", str(file), "--like", like.name, "--name", "mine", *options]) == 0
    mine = bitstreams.find("mine")
    assert mine == dataclasses.replace(
        like, name="mine", sha256=hashlib.sha256(file.read_bytes()).hexdigest(), source="", built="added from mine.bit",
        clock_hz=142_857_142, parameters="ultra96",
    )  # fmt: skip
    assert hilt(["bitstream", "add", str(file), "--like", like.name]) == 0
    assert bitstreams.find(like.name).built == like.built, "a build of that very entry keeps its origin"


@pytest.mark.parametrize(("clock", "code"), [("10000", 0), ("10000.5", 2), ("-1", 2), ("0.000001", 0)])
def test_a_clock_has_bounds(file: Path, capsys: Captured, clock: str, code: int) -> None:
    assert hilt(["bitstream", "add", str(file), "--like", "hilt-pynq-z2", "--name", "m", "--clock-mhz", clock]) == code
    assert ("it must be above 0 and at most 10,000" in " ".join(capsys.readouterr().err.split())) is bool(code)


def test_what_was_fetched_is_named_with_its_hash(file: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    def fetch(entry: bitstreams.Bitstream) -> bitstreams.Bitstream:
        if entry.name == "ultra96":
            raise BitstreamError("nobody answers")
        return entry

    monkeypatch.setattr(bitstreams, "fetch", fetch)
    assert hilt(["bitstream", "fetch", "pynq"]) == 0
    assert capsys.readouterr().out == f"pynq: fetched, sha256 {bitstreams.find('pynq').sha256}\n"
    assert hilt(["bitstream", "fetch", "ultra96"]) != 0 and "nobody answers" in capsys.readouterr().err
