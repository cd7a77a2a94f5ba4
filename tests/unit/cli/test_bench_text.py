"""Refusals, counts and texts of `hilt bench`, with short experiments in place of the real ones, which take minutes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hilt.cli import bench as command
from hilt.cli.main import run

catalogue = pytest.importorskip("hilt_experiments.catalogue", reason="the experiments are not installed")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


def row(tuner: str, **changes: Any) -> dict[str, Any]:
    values = {
        "where": "resnet18 on pynq", "tuner": tuner, "median": 1234.4, "lower": 1000.6, "upper": 1500.2, "never": 2,
        "runs": 30, "invalid_share": 0.125, "ratio": 0.8126, "low": 0.7, "high": 0.95, "p_value": 0.0321,
        "test": "Wilcoxon's signed ranks", "datasets": 3,
    }  # fmt: skip
    return values | changes


ROWS = [
    row("autotvm", ratio=None, low=None, high=None, p_value=None, test=""),
    row("hilt"),
    row("grid", p_value=0.0009, where="yolo on pynq", datasets=1, never=0),
]


def printed(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    return [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]


def test_each_place_has_a_table_of_its_tuners(capsys: pytest.CaptureFixture[str]) -> None:
    command._print_summary(ROWS)
    lines = printed(capsys)
    assert " ".join(lines[0]) == "resnet18 on pynq: trials to within 1% of the optimum"
    (tvm,) = [line for line in lines if line[0] == "autotvm"]
    assert tvm == ["autotvm", "1,234", "1,001-1,500", "2/30", "12.5%", "-", "-", "-"]
    (own,) = [line for line in lines if line[0] == "hilt"]
    assert own[1:] == ["1,234", "1,001-1,500", "2/30", "12.5%", "0.813", "0.700-0.950", "0.032"]
    (grid,) = [line for line in lines if line[0] == "grid"]
    assert grid[3] == "0/30" and grid[-1] == "<0.001"
    notes = [" ".join(line) for line in lines if line[0] == "p:"]
    assert [note.split("; ")[1] for note in notes] == ["3 datasets", "1 dataset"]
    assert "two-sided Wilcoxon's signed ranks, Holm's correction" in notes[0]


@pytest.mark.parametrize(("p_value", "text"), [(0.0, "<0.001"), (0.00099, "<0.001"), (0.001, "0.001"), (1.0, "1.000")])
def test_a_p_value_has_three_places(p_value: float, text: str) -> None:
    assert command._p_text(p_value) == text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["all", "trials"], "no experiment is called 'all'"),
        (["trials", "--full", "--quick"], "--full and --quick are two sizes; give one"),
        (["trials", "--minutes", "3"], "--minutes is for all, which no other experiment stands beside"),
        (
            ["hw-aware-fig5", "--tuner", "grid"],
            "--tuner is for trials, mismatch, baselines, score, not for hw-aware-fig5",
        ),
        (["trials", "--seed", "1"], "--seed is for foreign, certainty, sides, score, not for trials"),
        (["autotvm-fig6", "--checks", "tvm"], "glimpse-fig7, not for autotvm-fig6"),
        (["all", "--workloads", "resnet18.C2"], "all has the sizes --quick, --full and the usual one"),
        (["all", "--seeds", "2"], "and no other selection"),
        (["all", "--seed", "0"], "and no other selection"),
        (["all", "--checks", "tvm"], "and no other selection"),
        (["all", "--tuner", "grid"], "and no other selection"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["bench", *words]) == 2
    error = capsys.readouterr().err
    assert said in " ".join(error.split()) and error.count("\n") == 1


def test_the_list_has_every_experiment_with_its_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["items"]
    assert [each["experiment"] for each in listed] == list(catalogue.EXPERIMENTS)
    assert run(["bench", "--list"]) == 0
    first = {line[0]: line for line in printed(capsys)}
    for name, entry in catalogue.EXPERIMENTS.items():
        assert first[name][-2:] == [f"{minutes:g}" for minutes in entry.minutes], name


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[dict[str, Any]]], None]:
    """Put an experiment in place of all, which tells two lines and ends with this summary."""

    def hold(summary: list[dict[str, Any]]) -> None:
        def held(bench: Any) -> None:
            bench.report("3/12 runs of grid")
            bench.report("a line without a count")
            bench.summary = summary

        entry = SimpleNamespace(sized=lambda settings: settings, hold=held)
        monkeypatch.setattr(catalogue, "experiment", lambda name: entry)

    return hold


def test_an_experiment_ends_with_its_summary_or_one_json_object(
    home: Path, held: Callable[[list[dict[str, Any]]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    held(ROWS[:2])
    assert run(["bench", "trials", "--output", str(home / "out")]) == 0
    output = capsys.readouterr()
    assert "autotvm" in output.out and "a line without a count" in output.err
    assert output.out.splitlines()[-1].endswith(f"; all of it in {home / 'out' / 'trials'}")
    assert run(["bench", "trials", "--json"]) == 0
    output = capsys.readouterr()
    result = json.loads(output.out)["trials"]
    assert result == {"folder": str(home / "experiments" / "trials"), "comparisons": [], "summary": ROWS[:2]}
    assert "all of it in" in output.err and "autotvm" not in output.err


@pytest.mark.parametrize(
    "words", [["score", "--tuner", "grid"], ["score", "--seed", "1"], ["baselines", "--tuner", "grid"]]
)
def test_an_experiment_takes_the_options_that_it_reads(
    words: list[str], held: Callable[[list[dict[str, Any]]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    held([])
    assert run(["bench", *words]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(("words", "minutes"), [([], float("inf")), (["--quick"], 30.0), (["--minutes", "0"], 0.0)])
def test_all_experiments_end_with_the_counts_of_their_claims(
    words: list[str], minutes: float, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from hilt_experiments import everything
    from hilt_experiments.claims import claims

    until: list[float] = []

    class Everything:
        def __init__(self, settings: Any, folder: Path, report: Any, ends: float, experiments: Any) -> None:
            until.append(ends)
            assert folder == home / "experiments" / "all" and experiments is catalogue.EXPERIMENTS

        def run(self) -> list[Any]:
            from hilt_experiments.claims import Judgement

            states: list[Any] = ["reproduced", "not held", "reproduced"]
            return [Judgement(claims()[0], "1.5", state, "", "hilt bench") for state in states]

    monkeypatch.setattr(everything, "Everything", Everything)
    monkeypatch.setattr(command.time, "monotonic", lambda: 1000.0)
    assert run(["bench", "all", *words]) == 0
    assert capsys.readouterr().out == (
        f"2 reproduced, 1 not held\nThe page is {home / 'experiments' / 'all' / 'page.html'}.\n"
    )
    assert until == [1000.0 + 60 * minutes]
    assert run(["bench", "all", *words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [each["state"] for each in said["claims"]] == ["reproduced", "not held", "reproduced"]
