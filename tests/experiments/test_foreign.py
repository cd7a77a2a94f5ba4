"""Worlds of another structure: their part of the space, and the bench's results for runs on them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hilt.measure.dataset import Dataset, DatasetKey
from hilt.schedule import load_workload
from hilt.virtual.board_model import board_model
from hilt_experiments import foreign_runs
from hilt_experiments.bench import Bench, BenchSettings
from hilt_experiments.contenders import Contender
from hilt_experiments.datasets import subject
from hilt_experiments.foreign import EDGES, _certainty, reliability, summarise
from hilt_experiments.foreign_runs import FACTORS, PROTOCOL, one_run, runs_on_worlds, shards_of, worlds_of
from hilt_experiments.foreign_worlds import WORLDS, foreign_datasets
from hilt_experiments.problem import SharedTuningProblem
from hilt_experiments.replay import replay

LAYER = DatasetKey.on(
    load_workload("conv2d:n=1,ci=32,h=14,w=14,co=64,k=3x3,p=1x1"), board_model("pynq"), checks="tvm", orders=4
)
PLAIN = ("hls_older", "hls_newer", "hls_serial", "rtl_serial", "chisel", "slow_alu", "dram_pages", "small_cache")


@pytest.fixture(scope="module")
def datasets() -> dict[str, Dataset]:
    return foreign_datasets(LAYER)


def test_there_are_at_least_eight_structures(datasets: dict[str, Dataset]) -> None:
    """Two worlds whose latencies are proportional would be one structure."""
    valid = LAYER.summarize_validity.verdicts == 0
    logs = np.stack([np.log(datasets[name].cycles[valid].astype(float)) for name in PLAIN])
    for one in range(len(PLAIN)):
        for other in range(one):
            assert (logs[one] - logs[other]).std() > 0.02, (PLAIN[one], PLAIN[other])
    assert {world.family for world in WORLDS.values()} == {"hls", "chisel", "serial", "rules", "noise", "other"}


def test_a_world_keeps_the_verdicts_but_for_its_own_rules(datasets: dict[str, Dataset]) -> None:
    valid = LAYER.summarize_validity.verdicts == 0
    for name, dataset in datasets.items():
        refused = valid & ~dataset.valid
        assert not (dataset.valid & ~valid).any()
        assert refused.any() == (WORLDS[name].refuses is not None), name
        assert {str(dataset.outcome_of(int(index))) for index in np.flatnonzero(refused)} <= {"wrong_answer"}


def test_stages_in_turn_take_as_long_as_all_instructions(datasets: dict[str, Dataset]) -> None:
    valid = datasets["hls_serial"].valid
    serial, overlapped = (datasets[name].cycles[valid].astype(float) for name in ("hls_serial", "hls_alu2"))
    assert (serial > overlapped).all()


def test_worlds_are_the_same_each_time(datasets: dict[str, Dataset]) -> None:
    foreign_datasets.cache_clear()
    again = foreign_datasets(LAYER)
    assert all(np.array_equal(again[name].cycles, datasets[name].cycles) for name in datasets)


@pytest.mark.slow
@pytest.mark.parametrize("world", ["hls_older", "hls_serial", "chisel", "thread_rules"])
def test_the_default_tuner_is_right_where_it_is_sure(datasets: dict[str, Dataset], world: str) -> None:
    dataset = datasets[world]
    problem = SharedTuningProblem.of_subject(LAYER)
    for seed in range(2):
        run = one_run(Contender.of("hilt"), problem, dataset, seed)
        assert run["confidence"] >= 0.99 and run["off"] <= 0.01
        assert run["to_1%"] <= 40
        assert run["trials"] < 750


@pytest.mark.slow
def test_a_run_notes_its_confidence_after_each_batch_and_stays_the_same(datasets: dict[str, Dataset]) -> None:
    problem = SharedTuningProblem.of_subject(LAYER)
    run = one_run(Contender.of("hilt"), problem, datasets["chisel"], 0)
    plain = replay(Contender.of("hilt").make(problem, 0), datasets["chisel"], PROTOCOL)
    assert len(plain.indices) == run["trials"]
    assert len(run["batches"]) == -(-run["trials"] // PROTOCOL.batch)
    assert run["batches"][-1] == (pytest.approx(run["confidence"], abs=1e-4), 1)
    assert run["batches"][0][0] < run["confidence"]


def test_shards_begin_with_the_first_seeds_of_every_space_and_tuner() -> None:
    subjects = [subject(name, checks="tvm") for name in ("resnet18.C9", "resnet18.C10")]
    shards = shards_of(subjects, [Contender.of("random"), Contender.of("grid")], 6)
    assert [(shard.told[0], json.loads(str(shard.told[2]))["tuner"], shard.told[3]) for shard in shards[:9:4]] == [
        ("resnet18.C9", "random", 0),
        ("resnet18.C9", "grid", 0),
        ("resnet18.C10", "random", 0),
    ]
    assert len({shard.path for shard in shards}) == 24
    fewer = shards_of(subjects, [Contender.of("grid")], 5)
    assert {shard.path for shard in fewer} < {shard.path for shard in shards}


def test_only_the_tuner_that_asks_a_timing_model_depends_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def paths(tuner: str) -> set[Path]:
        foreign_runs.facts_of.cache_clear()
        return {shard.path for shard in shards_of([LAYER], [Contender.of(tuner)], 1)}

    before = {name: paths(name) for name in ("hilt", "random")}
    monkeypatch.setattr(foreign_runs, "design_key", lambda accelerator, form: f"another {form}")
    assert paths("random") == before["random"]
    assert not paths("hilt") & before["hilt"]
    foreign_runs.facts_of.cache_clear()


def test_each_seed_has_own_factors_of_another_draw(datasets: dict[str, Dataset]) -> None:
    first, second, third = (foreign_datasets(LAYER, worlds_of(FACTORS, seed)) for seed in (1, 2, 3))
    assert list(first) == ["random_error", "hls_random_error"]
    assert np.array_equal(first["random_error"].cycles, datasets["random_error"].cycles)
    assert np.array_equal(second["hls_random_error"].cycles, datasets["hls_random_error"].cycles)
    valid = first["random_error"].valid
    one, other = (np.log(each["random_error"].cycles[valid].astype(float)) for each in (first, third))
    assert (one - other).std() == pytest.approx(0.1 * np.sqrt(2), rel=0.1)


def test_rows_of_own_factors_are_of_the_runs_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_runs, "subject", lambda name, checks: LAYER)
    shards = shards_of([LAYER], [Contender.of("random")], 4, FACTORS)
    assert {shard.told[-1] for shard in shards} == {FACTORS}
    for shard in shards[1::2]:
        row, _ = runs_on_worlds([], *shard.told)
        world = foreign_datasets(LAYER, worlds_of(FACTORS, row["seed"]))["random_error"]
        assert row["within_1%"] == np.count_nonzero(world.microseconds <= 1.01 * world.optimum)


def test_rows_are_of_every_world(datasets: dict[str, Dataset], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_runs, "subject", lambda name, checks: LAYER)
    described = json.dumps({"label": "random", "tuner": "random", "options": {}})
    rows = runs_on_worlds([], "a layer", "tvm", described, 1, "any")
    assert [row["world"] for row in rows] == list(datasets)
    assert all(row["confidence"] is None and row["trials"] <= 750 and row["batches"] == [] for row in rows)
    summary = summarise(rows + [row | {"tuner": "autotvm", "to_1%": 2 * (row["to_1%"] or 751)} for row in rows])
    assert all(row["within_1%"] >= 1 for row in rows)
    assert {row["over_autotvm"] for row in summary if row["tuner"] == "random"} == {0.5}


def test_a_summary_has_quartiles_an_interval_and_a_p_value() -> None:
    def row(tuner: str, workload: str, trials: int | None) -> dict[str, object]:
        fields = {"level": "tvm", "world": "chisel", "family": "chisel", "tuner": tuner, "workload": workload}
        return fields | {"to_1%": trials, "to_0%": trials}

    rows = [row("autotvm", name, trials) for name in ("a", "b") for trials in (90, 100, 110, 120, 130)]
    rows += [row("hilt", name, trials) for name in ("a", "b") for trials in (1, 1, 2, 4, None)]
    theirs, ours = summarise(rows)
    assert (ours["lower_quartile"], ours["trials_to_1%"], ours["upper_quartile"]) == (1, 2, 4)
    assert ours["over_autotvm"] == pytest.approx(2 / 110, abs=1e-4)
    assert ours["low"] <= ours["over_autotvm"] <= ours["high"]
    assert ours["p_value"] < theirs["p_value"] == 1
    assert ours["never"] == 2 and ours["trials_to_0%"] == 2


def test_reliability_counts_each_statement_once() -> None:
    bins = reliability([(0.0, True), (0.44, True), (0.45, False), (0.97, False), (0.99, True), (1.0, True)])
    counted = {(row["from"], row["to"]): (row["stated"], row["right"]) for row in bins if row["stated"]}
    assert counted == {(0.0, 0.1): (1, 1), (0.4, 0.5): (2, 1), (0.9, 0.99): (1, 0), (0.99, 1.0): (2, 2)}
    assert bins[-1]["mean_stated"] == pytest.approx(0.995)
    assert len(bins) == len(EDGES) - 1


def test_false_certainty_is_counted_and_named(tmp_path: Path) -> None:
    said: list[str] = []
    bench = Bench("certainty", BenchSettings(), tmp_path, said.append)
    fields = {"world": "chisel", "workload": "a", "level": "tvm", "seed": 0, "trials": 24, "batches": [(0.4, 1)]}
    ends = [(0.999, 0.0)] * 97 + [(0.995, 0.2), (0.995, None), (0.5, 0.3)]
    _certainty(bench, [fields | {"confidence": stated, "off": off} for stated, off in ends])
    assert "2.0% (2 of 99; at most 6.2" in said[0]
    assert [line.split(": ")[1] for line in said[1:]] == [
        "stated 0.9950, best 20.0% off after 24 trials",
        "stated 0.9950, best none off after 24 trials",
    ]
    assert (tmp_path / "reliability.csv").is_file() and (tmp_path / "reliability.svg").is_file()
