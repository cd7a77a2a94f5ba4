"""The settings of a run: the refused ones, and the run that the others make."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from hilt import schedule
from hilt.engine.errors import RunMismatchError, SettingsError
from hilt.engine.run_spec import RunSpec, make_run, resolve_run, spec_of
from hilt.run_choices import CheckLevel, SpaceName
from hilt.schedule import Space

from .table import CLOCK_HZ, WORKLOAD, description


def settings(**changes: object) -> RunSpec:
    values = {"workload": "resnet18.C2", "board": "virtual:pynq", "tuner": "random", "trials": 8}
    return RunSpec(**values | changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value", "limit"),
    [
        ("seed", -1, "from 0 to 9223372036854775807"),
        ("seed", 2**63, "from 0 to 9223372036854775807"),
        ("trials", 0, "at least 1"),
        ("trials", 2**63, "at most 9223372036854775807"),
        ("batch", 2**63, "at most 9223372036854775807"),
        ("repeat", 1001, "at most 1000"),
        ("number", 1001, "at most 1000"),
    ],
)
def test_a_number_that_neither_database_nor_board_can_hold_is_refused(name: str, value: int, limit: str) -> None:
    with pytest.raises(SettingsError, match=rf"{name} is {value}; it must be .*{re.escape(limit)}"):
        settings(**{name: value})


def test_the_largest_numbers_are_taken() -> None:
    largest = settings(seed=2**63 - 1, trials=2**63 - 1, repeat=1000, number=1000)
    assert (largest.seed, largest.trials) == (2**63 - 1, 2**63 - 1)


@pytest.mark.parametrize(
    ("name", "taken", "refused", "words"),
    [
        ("rounds", (None, 1, 100), (0, 10**9), "rounds is .*; it must be from 1 to"),
        (
            "limit_seconds",
            (None, 1e-3, 3600.0),
            (0.0, -1.0, 3601.0, float("nan")),
            "time limit is .* above 0 and at most",
        ),
        ("seed", (0, 1), (-1,), "seed is -1; it must be from 0"),
        ("orders", (None, 1), (0, 99), "order"),
        ("space_kind", ("autotvm", "rows"), ("", "odd"), "space '.*' is none of "),
        ("checks", ("compiler", "off"), ("", "odd"), "checks '.*' is none of "),
    ],
)
def test_a_setting_that_no_run_can_have_is_refused(name: str, taken: Any, refused: Any, words: str) -> None:
    for value in taken:
        assert getattr(RunSpec("resnet18.C5", "virtual:pynq", "random", 8, **{name: value}), name) == value  # type: ignore[arg-type]
    for value in refused:
        with pytest.raises(SettingsError, match=words):
            RunSpec("resnet18.C5", "virtual:pynq", "random", 8, **{name: value})  # type: ignore[arg-type]


def test_the_time_limit_is_a_hundred_times_the_bound_or_a_twentieth_of_a_second() -> None:
    """The time limit is a hundred times the bound or a twentieth of a second, as `--time-limit` documents.

    The slow board's limit follows its clock.
    """
    workload = "conv2d:n=1,ci=512,h=56,w=56,co=512,k=3x3,s=1x1,p=1x1"
    large = make_run(settings(workload=workload), description())
    assert large.limit_seconds == pytest.approx(100 * large.bound_cycles / CLOCK_HZ) and large.limit_seconds > 0.05
    slow = make_run(settings(workload=workload), replace(description(), clock_hz=CLOCK_HZ // 4))
    assert slow.limit_seconds == pytest.approx(4 * large.limit_seconds)
    small = make_run(settings(workload=WORKLOAD), description())
    assert 100 * small.bound_cycles / CLOCK_HZ < 0.05 == small.limit_seconds
    assert make_run(settings(workload=WORKLOAD, limit_seconds=2.5), description()).limit_seconds == 2.5


def test_a_run_has_all_loop_orders_of_its_kind_unless_told() -> None:
    assert make_run(settings(workload=WORKLOAD), description()).orders == 4
    assert make_run(settings(workload=WORKLOAD, orders=1), description()).orders == 1
    assert make_run(settings(workload=WORKLOAD, space_kind=SpaceName.ML2), description()).orders == 1
    with pytest.raises(SettingsError, match="orders is 4; a space of kind ml2 has 1"):
        settings(space_kind=SpaceName.ML2, orders=4)


def test_output_elements_are_of_whole_blocks() -> None:
    """5 of 16 channels are used; the board writes, and hilt compares, all 16."""
    run = make_run(settings(workload="conv2d:n=1,ci=16,h=8,w=8,co=5,k=3x3,s=1x1,p=1x1"), description())
    assert run.output_elements == 16 * 8 * 8


def test_a_run_of_row_programs_is_resumed_with_its_space() -> None:
    run = make_run(settings(workload=WORKLOAD, space_kind=SpaceName.ROWS), description())
    task = resolve_run(run, description())
    assert (run.space_kind, run.orders, len(task.space)) == ("rows", 1, run.space_size)
    assert run.space.split()[-3:] == ["fold=1,2,3", "keep=1,2,3,4", "merge=1"]
    assert make_run(spec_of(run), description()) == run
    with pytest.raises(RunMismatchError, match="space: fold=1 then"):
        resolve_run(replace(run, space="fold=1"), description())


def test_a_run_makes_the_spec_that_makes_it() -> None:
    run = make_run(settings(workload=WORKLOAD, checks=CheckLevel.TVM, orders=1, seed=7), description())
    assert make_run(spec_of(run), description()) == run
    with pytest.raises(SettingsError, match="checks 'lenient' is none of compiler, strict, tvm, off"):
        spec_of(replace(run, checks="lenient"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bitstream": "0" * 64}, f"bitstream: {'f' * 64} then, {'0' * 64} now"),
        ({"clock_hz": 5}, "clock: 100000000 Hz then, 5 Hz now"),
    ],
)
def test_another_board_is_refused_with_both_values(changes: dict[str, Any], words: str) -> None:
    run = make_run(settings(workload=WORKLOAD), description())
    resolve_run(run, description())
    with pytest.raises(RunMismatchError, match=words):
        resolve_run(run, replace(description(), **changes))


def test_a_run_is_designed_once_for_the_check_and_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(settings(workload=WORKLOAD), description())
    spaces: list[Space] = []
    space_for = schedule.space_for

    def counted(*arguments: Any, **options: Any) -> Space:
        spaces.append(space_for(*arguments, **options))
        return spaces[-1]

    monkeypatch.setattr(schedule, "space_for", counted)
    task = resolve_run(run, description())
    assert [task.space] == spaces and task.problem.space is task.space
