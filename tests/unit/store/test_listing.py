"""Some of a run's trials, in another order: compared with Python's own filters and sorts."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.store import Store, Trial, database_path
from hilt.store.listing import Listing, Order, Which, trial_numbers, trials_of
from hilt.trial import Outcome, Verification

from . import examples

UUID = "3f2a91bc-0000-4000-8000-000000000001"
OTHER = "77777777-0000-4000-8000-000000000002"


def trials() -> list[Trial]:
    found = []
    for ordinal in range(60):
        outcome = (Outcome.OK, Outcome.OK, Outcome.REJECTED, Outcome.TIMEOUT, Outcome.WRONG_ANSWER)[ordinal % 5]
        reason = {Outcome.REJECTED: "acc_overflow", Outcome.TIMEOUT: "Never 100%_done"}.get(outcome, "")
        latency = 1000.0 + (ordinal * 37) % 50 if outcome is Outcome.OK else None
        seen = Verification(examples.ELEMENTS, 0) if ordinal % 5 == 0 else None
        knobs = {"tile_h": ordinal % 7, "tile_w": ordinal % 5}
        found.append(
            Trial(ordinal, ordinal, knobs, outcome, reason, None, latency, (), seen, examples.ELEMENTS, "desk")
        )
    return found


@pytest.fixture
def store(tmp_path: Path):
    with Store(database_path(tmp_path)) as store:
        store.create_run(examples.run(UUID))
        store.create_run(examples.run(OTHER))
        store.record(UUID, trials())
        store.record(OTHER, trials()[:3])
        yield store


@pytest.mark.parametrize(
    ("which", "belongs"),
    [
        (Which.ALL, lambda trial: True),
        (Which.VALID, lambda trial: trial.verified),
        (Which.REJECTED, lambda trial: trial.outcome is Outcome.REJECTED),
        (Which.FAILED, lambda trial: trial.outcome in (Outcome.TIMEOUT, Outcome.WRONG_ANSWER)),
    ],
)
def test_which(store: Store, which: Which, belongs) -> None:
    wanted = [trial.ordinal for trial in trials() if belongs(trial)]
    assert trial_numbers(store, UUID, Listing(which)) == wanted
    assert trial_numbers(store, UUID, Listing(which, descending=True)) == wanted[::-1]


@pytest.mark.parametrize("descending", [False, True])
def test_latencies_are_sorted_and_trials_without_one_are_last(store: Store, descending: bool) -> None:
    sign = -1 if descending else 1
    timed = sorted((t for t in trials() if t.microseconds), key=lambda t: (sign * t.microseconds, t.ordinal))
    untimed = [t for t in trials() if t.microseconds is None]
    found = trial_numbers(store, UUID, Listing(order=Order.LATENCY, descending=descending))
    assert found == [t.ordinal for t in [*timed, *untimed]]


@pytest.mark.parametrize(("text", "ordinals"), [
    ("NEVER 100%_", [n for n in range(60) if n % 5 == 3]),
    ("100x", []),
    ("tile_h=6", [n for n in range(60) if n % 7 == 6]),
    (" h=6 w=4", [n for n in range(60) if n % 7 == 6 and n % 5 == 4]),
    ("tile_H=6 tile_w=4", [n for n in range(60) if n % 7 == 6 and n % 5 == 4]),
    ("' OR 1=1 --", []),
])  # fmt: skip
def test_text_is_looked_for_as_it_stands(store: Store, text: str, ordinals: list[int]) -> None:
    assert trial_numbers(store, UUID, Listing(text=text)) == ordinals


def test_rows_by_number_of_this_run_only(store: Store) -> None:
    assert trials_of(store, UUID, [5, 59, 3, 700]) == [trials()[ordinal] for ordinal in (3, 5, 59)]
    assert trials_of(store, OTHER, [1, 5]) == [trials()[1]]
    assert trials_of(store, UUID, []) == []
    assert len(trials_of(store, UUID, range(2000))) == 60
