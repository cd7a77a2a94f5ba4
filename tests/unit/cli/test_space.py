"""`hilt space`: one workload, and the group that a paper has figures of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hilt.cli.main import run as hilt


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))


def test_one_workload(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "space.csv"
    assert hilt(["space", "resnet18.C9", "--json", "--csv", str(file)]) == 0
    said = json.loads(capsys.readouterr().out)
    size = said["size"]
    for level in said["levels"].values():
        assert level["valid"] + sum(level["reasons"].values()) == size
        assert level["valid_ratio"] == level["valid"] / size
    assert said["levels"]["strict"]["valid"] <= said["levels"]["compiler"]["valid"] < size
    assert sum(",accepted," in line for line in file.read_text().splitlines()) == said["levels"]["compiler"]["valid"]

    assert hilt(["space", "resnet18.C9", "--checks", "strict"]) == 0
    text = capsys.readouterr().out
    assert f"resnet18.C9: {size:,} configurations" in text
    assert "checks strict" in text and "checks compiler" not in text
    assert "inp_overflow" in text


def test_a_group_beside_the_paper(capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["space", "deepbench"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 15
    assert lines[0].split()[:2] == ["workload", "size"]
    (row,) = [line.split() for line in lines if line.startswith("deepbench.17 ")]
    assert (row[2], row[-1]) == ("20,480", "0.027")
    assert lines[-1].split()[-1] == "0.083"  # the mean that the paper states


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["space", "deepbnch"], "no workload named 'deepbnch'"),
        (["space", "resnet18.C9", "--checks", "lenient"], "strict"),
        (["space", "deepbench", "--csv", "x.csv"], "one workload"),
    ],
)
def test_bad_input_gets_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert hilt(arguments) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and words in said
