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


def test_tvm_compiles_and_runs_the_known_cases(capsys: pytest.CaptureFixture[str]) -> None:
    """C9 of docs/TVM_FACTS.md section 1: of 480, 44 compile and 40 run."""
    assert hilt(["space", "resnet18.C9", "--orders", "1", "--checks", "tvm", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["size"], said["levels"]["tvm"]["compiled"], said["levels"]["tvm"]["valid"]) == (480, 44, 40)


def test_a_group_beside_the_paper(capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["space", "deepbench", "--checks", "tvm"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 16
    (row,) = [line.split() for line in lines if line.startswith("deepbench.17 ")]
    assert (row[1:4], row[-1]) == (["5,120", "20,480", "20,480"], "0.027")
    mean = lines[-1].split()
    assert (mean[0], mean[1], mean[-1]) == ("mean", "0.169", "0.083")  # by R1 to R5, and as the paper states it


def test_other_spaces(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert hilt(["space", "resnet18.C9", "--json", "--checks", "compiler"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["size"] == 4 * 480 and said["knobs"]["loop_order"] == [1, 2, 3, 4]
    file = tmp_path / "ml2.csv"
    assert hilt(["space", "resnet18.C9", "--space", "ml2", "--checks", "strict", "--csv", str(file)]) == 0
    assert "TH" in capsys.readouterr().out
    assert file.read_text().splitlines()[0] == "index,TH,TW,nVT,nFilterInLoop,tile_ci,verdict,reason"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["space", "deepbnch"], "no workload named 'deepbnch'"),
        (["space", "resnet18.C9", "--checks", "lenient"], "strict"),
        (["space", "deepbench", "--csv", "x.csv"], "one workload"),
        (["space", "resnet18.C9", "--orders", "3"], "1 or 4"),
        (["space", "resnet18.C9", "--space", "all"], "none of autotvm, ml2, rows"),
    ],
)
def test_bad_input_gets_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert hilt(arguments) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and words in said
