"""A campaign's rows from its creation to its end, and the facts that make two runs the same."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from hilt.store import Campaign, Run, RunState, Slice, Store, UnknownRunError
from hilt.store.campaigns import (
    add_seconds,
    discard_campaign,
    end_layer,
    move_campaign,
    record_slice,
    set_campaign_state,
    set_prediction,
    slices,
)

from .examples import run, trial

A, B, C, D = ("a" * 32, "b" * 32, "c" * 32, "d" * 32)
DETAILS = {
    "board", "campaign", "confidence", "created", "detail", "failure", "finished", "predicted_microseconds", "state",
    "uuid", "versions",
}  # fmt: skip
"""Fields of a run that its equality does not compare."""


def campaign(uuid: str, **changes: Any) -> Campaign:
    return Campaign(uuid, "net", {"layers": [1]}, {"batch": 8}, 5.0, {"trials": 8.0}, **changes)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Two campaigns, C with the runs A and B, D without any."""
    monkeypatch.setattr("hilt.store.campaigns.time.time", lambda: 1234.5)
    opened = Store(tmp_path / "hilt.db")
    opened.create_campaign(campaign(C))
    opened.create_campaign(campaign(D, fallback_first=False))
    for uuid in (A, B):
        opened.create_run(run(uuid, campaign=C))
    return opened


@pytest.mark.parametrize("state", RunState)
def test_a_state_that_ends_a_campaign_sets_when(state: RunState, store: Store) -> None:
    set_campaign_state(store, C, RunState.FAILED, "gone", "board")
    set_campaign_state(store, C, state, "in words", "input")
    kept, other = store.campaign(C), store.campaign(D)
    assert kept is not None and (kept.state, kept.detail, kept.failure) == (state, "in words", "input")
    ended = state in (RunState.STOPPED, RunState.FAILED, RunState.FINISHED)
    assert kept.finished == (1234.5 if ended else None)
    assert other is not None and (other.state, other.finished, other.fallback_first) == (RunState.CREATED, None, False)
    with pytest.raises(UnknownRunError, match="there is no campaign 'no'"):
        set_campaign_state(store, "no", state)


def test_its_slices_seconds_and_board_are_its_own(store: Store) -> None:
    made = [Slice(1, "resnet18.C5", 8, 12.5), Slice(0, "resnet18.C2", 4, 0.0)]
    for each in made:
        record_slice(store, C, each)
    assert slices(store, C) == made[::-1] and slices(store, D) == []
    add_seconds(store, C, 2.5)
    add_seconds(store, C, 4.0)
    spent = {each.uuid: each.spent_seconds for each in store.campaigns()}
    assert spent == {C: 6.5, D: 0.0}
    store.create_run(run("e" * 32))
    move_campaign(store, C, "desk")
    assert [each.board for each in store.runs()] == ["virtual:pynq", "desk", "desk"]
    set_prediction(store, A, 77.5)
    assert [each.predicted_microseconds for each in store.runs_of(C)] == [77.5, None]


def test_the_end_of_a_layer_is_that_of_its_run(store: Store) -> None:
    store.set_state(A, RunState.FAILED, "lost", "board")
    store.record(A, [trial(0, 0, 7.0), trial(1, 1, 8.0)])
    end_layer(store, A, "skipped")
    end_layer(store, B)
    first, second = store.runs_of(C)
    facts = [(each.state, each.detail, each.failure, each.finished, each.budget) for each in (first, second)]
    assert facts == [
        (RunState.FINISHED, "skipped", "", 1234.5, 2),
        (RunState.FINISHED, "", "", 1234.5, 1),
    ]


def test_only_a_campaign_without_any_trial_is_discarded(store: Store) -> None:
    store.record(B, [trial(0, 0, 7.0)])
    assert not discard_campaign(store, C) and len(store.runs_of(C)) == 2
    assert discard_campaign(store, D) and [each.uuid for each in store.campaigns()] == [C]
    store.create_campaign(campaign(D))
    store.create_run(run("e" * 32, campaign=D))
    assert discard_campaign(store, D) and store.runs_of(D) == []
    assert [each.uuid for each in store.campaigns()] == [C] and {each.uuid for each in store.runs()} == {A, B}
    assert not store.discard_run(B) and store.discard_run(A) and [each.uuid for each in store.runs_of(C)] == [B]


def test_runs_are_equal_by_what_decides_their_trials() -> None:
    first = run(A)
    different: dict[str, Any] = {each.name: _other(getattr(first, each.name)) for each in fields(Run)}
    ignored = {name for name, value in different.items() if replace(first, **{name: value}) == first}
    assert ignored == DETAILS
    states = {"state": RunState.FINISHED, "detail": "d", "failure": "board", "finished": 2.0, "spent_seconds": 3.0}
    assert campaign(C, **states) == campaign(C) != campaign(D)
    assert campaign(C, fallback_first=False) != campaign(C)


def _other(value: Any) -> Any:
    if isinstance(value, dict):
        return {**value, "another": 1}
    return f"{value}, not" if isinstance(value, str) else (value or 0) + 1


def test_rates_of_a_run() -> None:
    made = run(A, macs=3_000_000, bound_cycles=5_000, clock_hz=50_000_000)
    assert (made.bound_microseconds, made.gops(200.0), made.percent_of_bound(400.0)) == (100.0, 30.0, 25.0)
