"""Trials as CSV and Parquet, pictures as files, and the command that writes them."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet
import pytest

from hilt.cli.exit_codes import Exit
from hilt.cli.main import run as hilt
from hilt.store import Campaign, Run

from .campaign_store import EVIL, LATENCIES, make


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Campaign, Run]:
    monkeypatch.setenv("HILT_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return make(tmp_path / "home")


@pytest.mark.slow
def test_csv_and_parquet_say_the_same(made: tuple[Campaign, Run], tmp_path: Path) -> None:
    as_csv, as_parquet = tmp_path / "t.csv", tmp_path / "t.parquet"
    assert hilt(["report", made[0].uuid[:8], "--csv", str(as_csv), "--parquet", str(as_parquet)]) == Exit.OK
    with as_csv.open(newline="") as file:
        lines = list(csv.DictReader(file))
    table = pyarrow.parquet.read_table(as_parquet).to_pylist()
    assert len(lines) == len(table) == sum(map(len, LATENCIES))
    latencies = [latency for each in LATENCIES for latency in each]
    assert [row["microseconds"] for row in table] == latencies
    assert [float(row["microseconds"]) if row["microseconds"] else None for row in lines] == latencies
    for line, row in zip(lines, table, strict=True):
        assert list(line) == list(row)
        assert line["reason"] == row["reason"] and (EVIL in row["reason"]) == (row["outcome"] != "ok")
        assert int(line["knob_tile_w"]) == row["knob_tile_w"] == 7 + row["ordinal"]
        assert row["verified"] is (row["outcome"] == "ok")
    assert table[0]["cycles"] == 4_400_000 and table[0]["seconds_run"] == 0.25 and table[2]["seconds_run"] is None


@pytest.mark.slow
def test_pictures_and_schedule(made: tuple[Campaign, Run], tmp_path: Path) -> None:
    png, svg, schedule = tmp_path / "png", tmp_path / "deep" / "svg", tmp_path / "s.json"
    arguments = ["--png", str(png), "--svg", str(svg), "--schedule", str(schedule)]
    assert hilt(["report", made[0].uuid, *arguments]) == Exit.OK
    names = {"network", "allocation", "roofline", "curve-0", "curve-1", "space-0", "space-1"}
    assert {path.stem for path in png.iterdir()} == {path.stem for path in svg.iterdir()} == names
    assert all(path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" for path in png.iterdir())
    for path in svg.iterdir():
        words = "".join(ElementTree.parse(path).getroot().itertext())
        assert "µs" in words or "trials" in words or "GOP/s" in words, "words are words"
    written = json.loads(schedule.read_text())
    assert written["layers"][0]["schedule"]["microseconds"] == 4_700.5
    assert written["layers"][1]["fallback"]["microseconds"] == 12_000.0
    assert written["unsupported"][0]["nodes"] == ["odd"]


@pytest.mark.slow
def test_the_same_picture_is_the_same_text(made: tuple[Campaign, Run], tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert hilt(["report", made[1].uuid, "--svg", str(tmp_path / name)]) == Exit.OK
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


@pytest.mark.slow
def test_bad_input_is_one_line(made: tuple[Campaign, Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    html = str(tmp_path / "r.html")
    for arguments, words in (
        (["report", "beef", "--html", html], "hilt campaigns"),
        (["report", made[1].uuid, "--schedule", html], "--schedule is of a campaign"),
        (["report", made[1].uuid, "--html", str(tmp_path / "no" / "r.html")], "cannot write"),
        (["report", made[1].uuid, "--html", str(tmp_path)], "Is a directory"),
        (["report", made[1].uuid, "--csv", str(tmp_path)], "Is a directory"),
        (["report", made[1].uuid, "--parquet", str(tmp_path)], "Is a directory"),
        (["report", made[1].uuid, "--png", f"{__file__}/pictures"], "cannot make the folder"),
    ):
        assert hilt(arguments) == Exit.BAD_INPUT
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and words in said
    assert not Path(html).exists()


def test_a_missing_library_of_a_report_is_no_internal_error(
    made: tuple[Campaign, Run], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert hilt(["report", made[1].uuid, "--parquet", str(tmp_path / "trials.parquet")]) == Exit.BAD_INPUT
    assert capsys.readouterr().err == "hilt: a Parquet file needs pyarrow: pip install 'hilt[report]'\n"


@pytest.mark.parametrize("option", ["--csv", "--parquet"])
def test_a_pipe_is_written_to_and_not_replaced(made: tuple[Campaign, Run], tmp_path: Path, option: str) -> None:
    pipe, whole = tmp_path / "pipe", tmp_path / "whole"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        assert hilt(["report", made[1].uuid, option, str(pipe)]) == Exit.OK
        read, _ = reader.communicate(timeout=20)
    assert pipe.is_fifo()
    assert hilt(["report", made[1].uuid, option, str(whole)]) == Exit.OK
    assert read == whole.read_bytes()


def test_a_link_goes_on_to_lead_where_it_led(made: tuple[Campaign, Run], tmp_path: Path) -> None:
    link, target = tmp_path / "link.csv", tmp_path / "target.csv"
    target.write_text("older")
    link.symlink_to(target)
    assert hilt(["report", made[1].uuid, "--csv", str(link)]) == Exit.OK
    assert link.is_symlink() and target.read_text().startswith("run,")
    assert {each.name for each in tmp_path.iterdir()} >= {"link.csv", "target.csv"}
    assert not list(tmp_path.glob(".*"))
