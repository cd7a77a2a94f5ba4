"""The loop of a campaign with played layers: the requests to each layer, the records, and its end."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from hilt.campaign import loop as module
from hilt.campaign.allocation import MINIMUM_TRIALS
from hilt.campaign.budget import Budget
from hilt.campaign.campaign_control import CampaignControl
from hilt.campaign.loop import CampaignLoop
from hilt.engine.events import EngineCommand
from hilt.engine.loop import TrialBatch
from hilt.store import Slice

BATCH = 3


class Layer:
    """A layer whose tuner has so many trials; it writes its calls into a list of all layers."""

    def __init__(self, name: str, trials: int, done: list[tuple[Any, ...]], fallbacks: int = 1) -> None:
        self.layer, self.workload = SimpleNamespace(name=name), f"work {name}"
        self.asked = 0
        self._trials, self._fallbacks, self._done = trials, fallbacks, done
        self.on_measure = lambda: None

    @property
    def searches_fallback(self) -> bool:
        return self._fallbacks > 0

    @property
    def standing(self) -> Any:
        return SimpleNamespace(asked=self.asked, layer=self) if self.asked < self._trials else None

    def ask(self, trials: int) -> TrialBatch:
        count = min(trials, self._trials - self.asked)
        batch = TrialBatch(self.asked, range(self.asked, self.asked + count))
        self.asked += count
        self._done.append(("ask", self.layer.name, trials))
        return batch

    def measure(self, batch: TrialBatch) -> None:
        self._done.append(("measure", self.layer.name, batch.first))
        self.on_measure()

    def tell(self, batch: TrialBatch) -> None:
        self._fallbacks -= 1
        self._done.append(("tell", self.layer.name, batch.first))

    def confirm(self) -> bool:
        self._done.append(("confirm", self.layer.name))
        return True


class Campaign:
    """A campaign whose store is a list of slices and a number of seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, trials: Sequence[int] = (20, 20), fallbacks: int = 1) -> None:
        self.done: list[tuple[Any, ...]] = []
        self.layers = [Layer(name, count, self.done, fallbacks) for name, count in zip("ab", trials, strict=False)]
        self.slices: list[Slice] = []
        self.seconds: list[float] = []
        self.said: list[str] = []
        self.begun: list[str] = []
        self.control = CampaignControl()
        self.now = 0.0
        self.spent = 0.0
        monkeypatch.setattr(module, "slices", lambda store, uuid: list(self.slices))
        monkeypatch.setattr(module, "record_slice", lambda store, uuid, made: self.slices.append(made))
        monkeypatch.setattr(module, "add_seconds", lambda store, uuid, seconds: self.seconds.append(seconds))
        monkeypatch.setattr(module, "choose", self._choose)

    def _choose(self, standings: Sequence[Any]) -> tuple[int, float] | None:
        """Choose the layer with the fewest trials."""
        places = [place for place, standing in enumerate(standings) if standing is not None]
        return min(((place, 1.5) for place in places), key=lambda pair: standings[pair[0]].asked, default=None)

    def run(self, budget: Budget) -> bool:
        campaign: Any = SimpleNamespace(uuid="u", settings={"batch": BATCH}, spent_seconds=self.spent)
        layers: Any = self.layers
        loop = CampaignLoop(
            campaign,
            budget,
            layers,
            None,
            self.control,
            self.said.append,
            self.begun.append,
            lambda: self.now,  # type: ignore[arg-type]
        )
        return loop.run()


@pytest.fixture
def campaign(monkeypatch: pytest.MonkeyPatch) -> Campaign:
    return Campaign(monkeypatch)


def test_a_budget_of_trials_is_spent_to_the_last(campaign: Campaign) -> None:
    assert campaign.run(Budget(trials=17))
    assert [layer.asked for layer in campaign.layers] == [10, 7]
    assert campaign.done[:6] == [
        *[("ask", "a", 1), ("measure", "a", 0), ("tell", "a", 0)],
        *[("ask", "b", 1), ("measure", "b", 0), ("tell", "b", 0)],
    ], "the fallbacks come first"
    assert campaign.done[-2:] == [("confirm", "a"), ("confirm", "b")]
    missing = MINIMUM_TRIALS - 1
    sizes = [(made.workload, made.trials) for made in campaign.slices]
    assert sizes == [("work a", missing), ("work b", missing), ("work a", 3), ("work b", 3), ("work a", 3)]
    assert [made.ordinal for made in campaign.slices] == list(range(5))
    assert all(made.expected_gain == 1.5 for made in campaign.slices)
    assert campaign.begun == ["work a", "work b", *(workload for workload, _ in sizes)]
    assert campaign.said[:3] == ["a: the fallback schedule", "b: the fallback schedule", "a: trials 1 to 3"]


@pytest.mark.parametrize("trials", [2, 3, 9])
def test_the_last_slice_has_what_is_left(campaign: Campaign, trials: int) -> None:
    assert campaign.run(Budget(trials=trials))
    assert sum(layer.asked for layer in campaign.layers) == trials
    assert [made.trials for made in campaign.slices] == {2: [], 3: [1], 9: [3, 3, 1]}[trials]


def test_the_next_slice_is_asked_for_while_one_is_measured_and_told_behind(campaign: Campaign) -> None:
    campaign.run(Budget(trials=11))
    behind = [entry for entry in campaign.done[6:] if entry[0] != "measure"]
    assert behind == [
        *[("ask", "a", 3), ("ask", "b", 3), ("tell", "a", 1), ("ask", "a", 3), ("tell", "b", 1)],
        *[("tell", "a", 4), ("confirm", "a"), ("confirm", "b")],
    ]
    measured = [entry for entry in campaign.done if entry[0] == "measure"]
    assert measured == [("measure", *place) for place in (("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 4))]


def test_recorded_slices_are_made_again_and_none_is_recorded_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Campaign(monkeypatch)
    first.run(Budget(trials=14))
    again = Campaign(monkeypatch)
    again.slices = first.slices[:3]
    monkeypatch.setattr(module, "choose", lambda standings: (1, 9.0) if standings[1] else None)
    again.run(Budget(trials=14))
    assert again.slices[:3] == first.slices[:3] and [made.ordinal for made in again.slices] == [0, 1, 2, 3]
    assert again.slices[3] == Slice(3, "work b", 3, 9.0)


def test_a_tuner_without_trials_ends_its_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = Campaign(monkeypatch, trials=(2, 6))
    assert campaign.run(Budget(trials=100))
    assert [layer.asked for layer in campaign.layers] == [2, 6]
    assert campaign.done[-2:] == [("confirm", "a"), ("confirm", "b")]


def test_a_slice_that_is_empty_is_said_and_the_next_one_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = Campaign(monkeypatch)
    campaign.slices = [Slice(0, "work a", 3, 0.0), Slice(1, "work b", 3, 0.0)]
    campaign.layers[0]._trials = 1
    campaign.run(Budget(trials=5))
    assert "a: its tuner takes nothing that is left to be worth a trial" in campaign.said
    assert ("measure", "b", 1) in campaign.done and ("measure", "a", 1) not in campaign.done


@pytest.mark.parametrize("batches", [1, 2, 3, 4])
def test_a_stop_ends_it_before_anything_is_told_and_nothing_is_confirmed(campaign: Campaign, batches: int) -> None:
    counted: list[int] = []

    def stop_at() -> None:
        counted.append(1)
        if len(counted) == batches:
            campaign.control.obey(EngineCommand.STOP)

    for layer in campaign.layers:
        layer.on_measure = stop_at
    assert not campaign.run(Budget(trials=100))
    assert len([entry for entry in campaign.done if entry[0] == "tell"]) == batches - 1
    assert "confirm" not in {entry[0] for entry in campaign.done} and len(campaign.seconds) >= 1


def test_a_fault_stops_what_is_on_the_board_and_keeps_the_time(campaign: Campaign) -> None:
    def fail() -> None:
        campaign.now += 5.0
        raise OSError("the board is gone")

    campaign.layers[1].on_measure = fail
    with pytest.raises(OSError, match="the board is gone"):
        campaign.run(Budget(trials=100))
    assert campaign.control.stopping and sum(campaign.seconds) == 5.0


def test_seconds_are_saved_as_they_pass(campaign: Campaign) -> None:
    def pass_by() -> None:
        campaign.now += 2.0

    for layer in campaign.layers:
        layer.on_measure = pass_by
    campaign.run(Budget(trials=11))
    assert sum(campaign.seconds) == 10.0 and len(campaign.seconds) == 4, "behind each slice, and at the end"


@pytest.mark.parametrize("spent", [0.0, 10.0])
def test_a_time_that_is_over_gives_each_layer_its_least_trials_still(campaign: Campaign, spent: float) -> None:
    campaign.spent = spent
    for layer in campaign.layers:
        layer.on_measure = lambda: setattr(campaign, "now", campaign.now + 2.5)
    assert campaign.run(Budget(seconds=10.0))
    least = [("work a", MINIMUM_TRIALS - 1), ("work b", MINIMUM_TRIALS - 1)]
    sizes = [(made.workload, made.trials) for made in campaign.slices]
    if spent:
        assert sizes == least
    else:  # 5 s are left behind the fallbacks; the clock goes on while the next slice is decided
        assert sizes[:2] == least and 3 <= len(sizes) <= 5 and {trials for _, trials in sizes} == {BATCH}


def test_a_layer_without_a_fallback_of_its_own_searches_until_it_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = Campaign(monkeypatch, fallbacks=2)
    campaign.run(Budget(trials=100))
    assert [entry for entry in campaign.done if entry[0] == "ask"][:4] == [("ask", "a", 1)] * 2 + [("ask", "b", 1)] * 2
    campaign = Campaign(monkeypatch, fallbacks=9)
    campaign.run(Budget(trials=3))
    assert [layer.asked for layer in campaign.layers] == [3, 0], "within the budget"
