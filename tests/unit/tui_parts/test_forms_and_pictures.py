"""The form of a new run, its questions to boards, and a space unfolded into a plane."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hilt.campaign import launch as campaign_launch
from hilt.engine import launch
from hilt.engine.client import NoEngineError
from hilt.link.errors import PowerError
from hilt.measure.doctor import Finding
from hilt.schedule import load_workload, space_for
from hilt.trial import Outcome
from hilt.tui import board_work, new_work, space_picture, steering
from hilt.tui.new_work import FieldError, checked, is_network, taken_over
from hilt.tui.space_picture import ACCEPTED, BEST, FAILED, FIRST_LEVEL, GLYPHS, REJECTED, Unfolding
from hilt.vta.accelerator import Accelerator
from hilt.vta.parameters import load_parameters
from tests.unit.store.examples import run

VALUES = {"workload": "resnet18.C2", "board": "virtual:pynq", "tuner": "ga", "trials": "40", "seed": "7"}
LIKE = run("ab12cd34" + "0" * 24, batch=4, limit_seconds=1.5, tuner="ga", tuner_options={"population": 8})


def test_a_form_gives_the_settings_of_a_run() -> None:
    spec = checked(VALUES, None)
    assert (spec.workload, spec.board, spec.tuner, spec.trials, spec.seed) == (*list(VALUES.values())[:3], 40, 7)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("workload", "resnet18.C99", "no workload named 'resnet18.C99'"),
        ("workload", "missing.onnx", "missing.onnx"),
        ("board", "virtual:pynq,virtual:pink", "no virtual board 'pink'"),
        ("board", "nosuch", "no board 'nosuch'"),
        ("tuner", "annealer", "annealer"),
        ("trials", "0", "trials is 0; give 1 or more"),
        ("trials", "2h", "trials is '2h'; give a whole number"),
        ("seed", "-1", "seed is -1; give 0 or more"),
        ("seed", "", "seed is ''; give a whole number"),
    ],
)
def test_a_field_that_cannot_be_used_is_named(
    field: str, value: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    with pytest.raises(FieldError) as caught:
        checked({**VALUES, field: value}, None)
    assert caught.value.field == field and words in caught.value.message


def test_what_no_field_shows_is_as_in_the_run_that_is_watched() -> None:
    spec = checked({**VALUES, "workload": LIKE.workload}, LIKE)
    assert (spec.batch, spec.limit_seconds, spec.tuner_options) == (4, 1.5, {"population": 8})
    elsewhere = checked(VALUES, LIKE)
    assert elsewhere.batch == 4 and elsewhere.limit_seconds is None, "another layer has its own limit"
    other = checked({**VALUES, "workload": LIKE.workload, "tuner": "random"}, LIKE)
    assert other.tuner_options == {} and other.limit_seconds == 1.5
    assert checked({**VALUES, "workload": "resnet18"}, LIKE).batch == checked(VALUES, None).batch
    assert taken_over(None) == ""
    assert taken_over(LIKE) == "As run ab12cd34: batch 4, space autotvm, checks compiler, repeat 1, population=8"
    assert taken_over(run("c" * 32)).endswith("repeat 1")


def test_networks_are_tuned_as_campaigns() -> None:
    assert [is_network(name) for name in ("resnet18", "some.onnx", "resnet18.C2")] == [True, True, False]


def test_a_form_starts_a_run_or_a_campaign(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    began: list[Any] = []

    def begin(*given: Any) -> Any:
        began.append(given)
        return SimpleNamespace(uuid="d" * 32)

    monkeypatch.setattr(new_work.launch, "start", begin)
    monkeypatch.setattr(new_work.campaigns, "start", begin)
    assert new_work.start(VALUES, None, tmp_path) == new_work.Started("d" * 32, False)
    assert began[0] == (checked(VALUES, None), tmp_path)
    assert new_work.start({**VALUES, "workload": "resnet18"}, None, tmp_path) == new_work.Started("d" * 32, True)
    network, spec, budget, home = began[1]
    assert (network.name, spec.trials, budget.trials, home) == ("resnet18", 40, 40, tmp_path)


def test_who_goes_on_with_a_layer_goes_on_with_its_campaign(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    went: list[str] = []
    monkeypatch.setattr(launch, "resume", lambda uuid, home: went.append(f"run {uuid}"))
    monkeypatch.setattr(campaign_launch, "resume", lambda uuid, home: went.append(f"campaign {uuid}"))
    campaigns = {"c": SimpleNamespace(uuid="c")}
    for of in (None, "c", "gone"):
        store: Any = SimpleNamespace(run=lambda uuid, of=of: SimpleNamespace(campaign=of), campaign=campaigns.get)
        steering.resume_run(store, tmp_path, "r")
    assert went == ["run r", "campaign c", "run r"]
    with pytest.raises(NoEngineError):
        steering.send(tmp_path, "e" * 32, steering.EngineCommand.STOP)
    steering.resume_campaign(tmp_path, "e" * 32)
    assert went[-1] == "campaign " + "e" * 32 and steering.answers(tmp_path, "e" * 32)


class Target:
    """A board that can be reached for."""

    def __init__(self) -> None:
        self.released = False
        self.switch: Any = None

    def endpoint(self) -> str:
        return "desk"

    def power(self) -> Any:
        return self.switch

    def release(self) -> None:
        self.released = True


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Target:
    made = Target()
    monkeypatch.setattr(board_work, "resolve", lambda name: made)
    return made


Tell = Callable[[tuple[str, str]], None]


def test_a_check_tells_each_finding_and_the_remedy_of_a_bad_one(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    findings = [Finding("SSH", True, "its key\nis known", "no remedy"), Finding("disk", False, "full", "remove\nfiles")]
    monkeypatch.setattr(board_work, "check_board", lambda given: [*findings, Finding("lease", False, "in use")])
    told: list[Any] = []
    board_work.check("desk", told.append)
    assert told == [
        ("well     SSH: its key is known", "good"),
        ("NOT WELL disk: full", "error"),
        ("         remove files", "warning"),
        ("NOT WELL lease: in use", "error"),
    ]
    assert target.released


@pytest.mark.parametrize(
    ("text", "first", "count"),
    [("", "the agent's log is empty", 1), ("one\ntwo\n", "one", 2), ("x\n" * 2001 + "last", "x", 2000)],
)
def test_a_log_of_an_agent_is_told_from_its_end(
    target: Target, monkeypatch: pytest.MonkeyPatch, text: str, first: str, count: int
) -> None:
    monkeypatch.setattr(board_work, "run_agent", lambda endpoint, words, deadline: text if words == ("log",) else "")
    told: list[Any] = []
    board_work.agent_log("desk", told.append)
    assert told[0] == (first, "") and len(told) == count and target.released


def test_a_board_without_a_switch_is_not_switched_and_a_recording_is_no_board(target: Target) -> None:
    with pytest.raises(PowerError, match="board desk has no power switch"):
        board_work.power_cycle("desk")
    cycles: list[int] = []
    target.switch = SimpleNamespace(cycle=lambda: cycles.append(1))
    board_work.power_cycle("desk")
    assert cycles == [1]
    with pytest.raises(board_work.NoBoardError, match="dataset:some is a recording, not a board"):
        board_work.power_cycle("dataset:some")


SPACE = space_for(load_workload("resnet18.C5"), Accelerator.for_parameters(load_parameters("pynq")), orders=4)
UNFOLDED = Unfolding(SPACE)


def test_every_configuration_has_a_place_and_neighbours_in_a_row_differ_in_one_knob() -> None:
    places = [UNFOLDED.place(index) for index in range(len(SPACE))]
    assert len(set(places)) == len(SPACE) == UNFOLDED.width * UNFOLDED.height
    assert all(UNFOLDED.index(*place) == index for index, place in enumerate(places))
    assert max(column for column, _ in places) == UNFOLDED.width - 1
    first = UNFOLDED.columns[0]
    here, beside = (SPACE.knobs_at(UNFOLDED.index(column, 0)) for column in (0, 1))
    assert {name for name in here if here[name] != beside[name]} == {first}
    below = SPACE.knobs_at(UNFOLDED.index(0, 1))
    assert {name for name in here if here[name] != below[name]} == {UNFOLDED.rows[0]}


def test_a_cell_is_twice_as_high_as_wide_and_the_largest_knobs_lie_innermost() -> None:
    assert (UNFOLDED.width, UNFOLDED.height) == (6 * 4 * 4 * 2, 6 * 4 * 2)
    sizes = {knob.name: len(knob.values) for knob in SPACE.knobs}
    for names in (UNFOLDED.columns, UNFOLDED.rows):
        assert [sizes[name] for name in names] == sorted((sizes[name] for name in names), reverse=True)
    assert {*UNFOLDED.columns, *UNFOLDED.rows} == {name for name, size in sizes.items() if size > 1}


def test_values_of_configurations_become_cells() -> None:
    values = (np.arange(len(SPACE)) % 5).astype(np.int8)
    grid = UNFOLDED.grid(values)
    assert grid.shape == (UNFOLDED.height, UNFOLDED.width)
    column, row = UNFOLDED.place(891)
    assert grid[row, column] == values[891]


def facts(*labels: int) -> Any:
    return SimpleNamespace(labels=np.array(labels))


def test_the_fastest_is_marked_and_latencies_have_levels_by_their_logarithms() -> None:
    trials = [(0, "ok", 100.0), (1, "ok", 210.0), (2, "ok", 100.0 * 2**8), (4, Outcome.TIMEOUT, None),
              (5, Outcome.REJECTED, None), (6, Outcome.WRONG_ANSWER, None)]  # fmt: skip
    cells, measured = space_picture.by_latency(facts(0, 0, 1, 0, 0, -1, -1, -1), trials)
    assert cells.tolist() == [BEST, FIRST_LEVEL + 1, FIRST_LEVEL + 7, ACCEPTED, FAILED, REJECTED, FAILED, REJECTED]
    assert measured == {0: 100.0, 1: 210.0, 2: 25_600.0}
    assert len(GLYPHS) == FIRST_LEVEL + space_picture.LEVELS == len(set(GLYPHS))


def test_of_one_latency_and_of_none_there_is_a_picture_too() -> None:
    cells, _ = space_picture.by_latency(facts(0, 0), [(1, "ok", 5.0)])
    assert cells.tolist() == [ACCEPTED, BEST]
    cells, measured = space_picture.by_latency(facts(0, -1), [])
    assert cells.tolist() == [ACCEPTED, REJECTED] and measured == {}


def test_the_largest_clusters_have_a_level_each_and_the_others_the_last() -> None:
    cells = space_picture.by_cluster(facts(0, 1, 6, 7, 8, 99, -1))
    assert cells.tolist() == [*(FIRST_LEVEL + level for level in (0, 1, 6, 7, 7, 7)), REJECTED]
