"""The page of claims: states by the figures, kept results, and the rest for the next run."""

from __future__ import annotations

import csv
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hilt.measure.dataset import DatasetStore
from hilt_experiments import everything
from hilt_experiments.bench import Bench, BenchSettings, ClaimComparison
from hilt_experiments.catalogue import EXPERIMENTS, Experiment, QuickSize
from hilt_experiments.claims import Claim, State, claims, judge
from hilt_experiments.datasets import dataset_of, subject
from hilt_experiments.errors import ExperimentError
from hilt_experiments.everything import Everything

TABLE2 = "Table II: valid ratio, mean (least-most)"


@pytest.mark.parametrize(
    ("ours", "state"),
    [
        ("0.079 (0.024-0.213)", State.REPRODUCED),
        ("0.30", State.PARTLY),
        ("0.9", State.NOT),
        ("-0.079 (0.024-0.213)", State.NOT),
        ("nothing", State.NOT),
    ],
)
def test_a_state_follows_from_the_first_number(ours: str, state: State) -> None:
    assert Claim("a paper", "Table", "0.083", reproduced=(0.06, 0.11), partly=(0.1, 0.5)).state(ours) is state


def test_other_numbers_and_orders() -> None:
    last = Claim("a paper", "Figure", "-", number=-1, reproduced=(0.9, 1))
    assert last.state("random 0.83, AutoTVM 0.82, glimpse 0.99") is State.REPRODUCED
    falls = Claim("a paper", "Figure", "-", order="falls")
    assert falls.state("0.790 and 0.230") is State.REPRODUCED
    assert falls.state("0.230 and 0.790") is State.NOT
    assert Claim("a paper", "Trials", "-", reproduced=(1000, 2000)).state("1,500 trials") is State.REPRODUCED


def test_every_claim_names_an_experiment_or_why_there_is_none() -> None:
    for each in claims():
        assert each.experiment in EXPERIMENTS or (not each.experiment and each.cause), each.figure
        assert bool(each.experiment) == bool(each.reproduced or each.order), each.figure
        assert all(low < high for low, high in (limits for limits in (each.reproduced, each.partly) if limits))


def test_a_claim_without_its_run_is_not_reproduced() -> None:
    held = {"hw-aware-table2": [ClaimComparison(TABLE2, "0.083", "0.079 (0.024-0.213)")]}
    by_figure = {each.claim.figure: each for each in judge(held, {"trials": "the time was up"}, {})}
    assert by_figure["Table II: valid ratio"].state is State.REPRODUCED
    assert by_figure["Table II: valid ratio"].cause == ""
    clusters = by_figure["Figure 1: valid configurations lie in clusters"]
    assert (clusters.state, clusters.cause) == (State.NOT_RUN, "the run has no such layer, level or tuner")
    late = by_figure["pynq, tvm: hilt: trials to within 1%"]
    assert (late.state, late.cause) == (State.NOT_RUN, "the time was up")


class Counted:
    """An experiment in place of the catalogue's: it counts how often it is held."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ours: str = "0.079") -> None:
        self.held: list[BenchSettings] = []
        self.error: Exception | None = None
        self._ours = ours
        monkeypatch.setattr(Experiment, "hold", lambda entry, bench: self._hold(bench))

    def _hold(self, bench: Bench) -> None:
        self.held.append(bench.settings)
        if self.error:
            raise self.error
        bench.compare(TABLE2, "0.083", self._ours)
        bench.seed_rows.append({"dataset": "a", "tuner": "hilt", "seed": 0, "to_1%": 3})
        bench.finish()


def run(folder: Path, minutes: float = 1.0, **settings: Any) -> dict[str, str]:
    one = {"hw-aware-table2": Experiment("a", "b", "none:none", (1, 1), QuickSize(2, ("deepbench.8",)))}
    until = time.monotonic() + 60 * minutes
    made = Everything(BenchSettings(quick=True, **settings), folder, lambda line: None, until, one)
    return {each.claim.figure: str(each.state) for each in made.run()}


def test_what_ran_with_the_same_settings_is_not_held_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    for _ in range(2):
        assert run(tmp_path)["Table II: valid ratio"] == "reproduced"
    assert [(each.seeds, each.workloads) for each in counted.held] == [(2, ("deepbench.8",))]
    monkeypatch.setattr(everything, "provenance", lambda: {"commit": "another"})
    run(tmp_path)
    assert len(counted.held) == 2
    with (tmp_path / "seeds.csv").open(encoding="utf-8") as file:
        assert [row["to_1%"] for row in csv.DictReader(file)] == ["3"]
    rows = {row["claim"]: row for row in csv.DictReader((tmp_path / "claims.csv").open(encoding="utf-8"))}
    assert rows["Table II: valid ratio"]["command"] == "hilt bench hw-aware-table2 --seeds 2 --workloads deepbench.8"
    assert "<td>Table II: valid ratio<td>0.083" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_no_experiment_begins_once_the_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    assert run(tmp_path, minutes=0)["Table II: valid ratio"] == "not run"
    assert not counted.held
    assert run(tmp_path)["Table II: valid ratio"] == "reproduced"
    assert run(tmp_path, minutes=0)["Table II: valid ratio"] == "reproduced"


def test_an_experiment_that_cannot_run_is_a_reason_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    counted.error = ExperimentError("pip install <it>")
    assert run(tmp_path)["Table II: valid ratio"] == "not run"
    assert "pip install &lt;it&gt;" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_missing_dataset_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    of = subject("deepbench.3")
    sizes: list[int] = []
    monkeypatch.setattr(everything, "processes", ThreadPoolExecutor)
    request.addfinalizer(dataset_of.cache_clear)
    dataset_of.cache_clear()
    everything.with_datasets(lambda: sizes.append(len(dataset_of(of))), 1, lambda line: None)
    assert sizes == [768]
    assert DatasetStore().has(of)
