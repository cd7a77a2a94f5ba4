"""The command that makes a report's trials again, from runs and campaigns of every kind, and the facts beside it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hilt.report.reproduce import commands, origin_rows, records_digest
from hilt.store import Campaign, Trial
from tests.unit.store.examples import run, trial

BASE = "hilt tune resnet18.C5 --board virtual:pynq --trials 64 --tuner random --seed 1 --batch 8 --space autotvm"


def facts(result: object = None, *, trials: tuple[Trial, ...] = (), **changes: Any) -> Any:
    record = run("a" * 32, **changes)
    return SimpleNamespace(result=result, runs=(SimpleNamespace(run=record, name=record.workload, trials=trials),))


@pytest.mark.parametrize(
    ("changes", "ending"),
    [
        ({}, "--orders 4 --checks compiler"),
        ({"orders": 1}, "--orders 1 --checks compiler"),
        ({"repeat": 3}, "--orders 4 --checks compiler --repeat 3"),
        ({"rounds": None}, "--orders 4 --checks compiler --repeat auto"),
        ({"rounds": None, "repeat": 3}, "--orders 4 --checks compiler --repeat auto"),
        ({"number": 2}, "--orders 4 --checks compiler --number 2"),
        (
            {"tuner_options": {"b": "two words", "a": 0.5, "none": None, "yes": True}},
            "--orders 4 --checks compiler --tuner-option a=0.5 --tuner-option 'b=two words' --tuner-option yes=true",
        ),
    ],
)
def test_a_run_is_made_again_with_what_differs_from_the_defaults(changes: dict[str, Any], ending: str) -> None:
    assert commands(facts(**changes)) == [f"{BASE} {ending}"]


def test_a_space_without_orders_has_none_and_boards_are_named_one_by_one() -> None:
    (command,) = commands(facts(space_kind="rows", board="desk,bench"))
    assert "--board desk --board bench --trials" in command and command.endswith("--space rows --checks compiler")


@pytest.mark.parametrize(
    ("name", "budget", "words"),
    [
        ("resnet18", {"trials": 500.0}, "hilt campaign resnet18 --board virtual:pynq --budget 500 --tuner"),
        ("my net", {"seconds": 90.5}, "hilt campaign 'my net.onnx' --board virtual:pynq --budget 90.5s --tuner"),
    ],
)
def test_a_campaign_is_made_again_by_its_network(name: str, budget: dict[str, float], words: str) -> None:
    campaign = Campaign("c" * 32, name, {}, {}, 1.0, budget)
    assert commands(facts(SimpleNamespace(campaign=campaign)))[0].startswith(words)
    nothing: Any = SimpleNamespace(result=SimpleNamespace(campaign=campaign), runs=())
    assert commands(nothing) == []


def test_everything_that_the_trials_depend_on_has_a_row() -> None:
    made = facts(versions={"numpy": "2", "hilt": "1"}, clock_hz=142_500_000, tuner_options={"b": 1, "a": "x"})
    digest = records_digest(made.runs)
    assert origin_rows(made) == [
        ("VTA parameters", "1x16_i8w8a32_15_15_18_17"),
        ("ISA", "A"),
        ("clock", "142.5 MHz"),
        ("bitstream", "0" * 64),
        ("tuner", 'random {"a": "x", "b": 1}'),
        ("seed", "1"),
        ("checks", "compiler"),
        ("space", "autotvm, 4 loop orders"),
        ("each latency", "of one run of the program"),
        ("version of hilt", "1"),
        ("version of numpy", "2"),
        ("run", "a" * 32),
        ("sha256 of the records", digest),
    ]
    rows = dict(origin_rows(facts(orders=1, repeat=3)))
    assert rows["space"] == "autotvm, 1 loop order"
    assert rows["each latency"] == "median of 3, each the mean of 1 runs of the program"
    rows = dict(origin_rows(facts(number=5)))
    assert rows["each latency"] == "median of 1, each the mean of 5 runs of the program"
    nothing: Any = SimpleNamespace(result=None, runs=())
    assert origin_rows(nothing) == []


def test_the_digest_is_of_what_a_deterministic_board_repeats() -> None:
    one, other = trial(0, 7, 9.0), trial(1, 8, 10.0)
    assert records_digest(()) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    digests = {records_digest(facts(trials=trials).runs) for trials in ((one, other), (other, one), (one,))}
    assert len(digests) == 3
    assert records_digest(facts(trials=(one,), seed=9).runs) == records_digest(facts(trials=(one,)).runs)
