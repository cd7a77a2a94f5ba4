"""One layer of a campaign: its predicted latency, its standing for the allocation, and its messages to its tuner."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hilt.campaign import layer as module
from hilt.campaign.campaign_control import CampaignControl
from hilt.campaign.layer import LayerSearch, predicted_microseconds
from hilt.engine.events import Logged, TrialRecorded, TunerUpdated
from hilt.engine.loop import TrialBatch
from hilt.simulator.compilation import BuildError
from hilt.simulator.device import SimulatorError
from hilt.store import RunState, Trial
from hilt.trial import Outcome
from tests.unit.store.examples import run, trial


class Problem:
    """A problem whose candidates take these cycles; None: it cannot be said."""

    accelerator = None

    def __init__(self, cycles: dict[int, float], error: Exception | None = None) -> None:
        self._cycles, self._error = cycles, error
        self.asked: list[int] = []

    def predicted_cycles(self, indices: Any, memories: Any) -> Any:
        assert memories == ["memory"]
        (index,) = indices.tolist()
        self.asked.append(index)
        if self._error is not None:
            raise self._error
        return np.array([[self._cycles[index]]])


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "prior_mean", lambda accelerator: "mean")
    monkeypatch.setattr(module, "memory_at", lambda mean, accelerator: "memory")


def test_the_first_candidate_that_ends_is_predicted() -> None:
    problem: Any = Problem({4: np.inf, 2: 5000.0, 9: 100.0})
    assert predicted_microseconds(problem, [4, 2, 9], 200_000_000) == 25.0
    assert problem.asked == [4, 2]
    assert predicted_microseconds(problem, [4], 200_000_000) is None
    assert predicted_microseconds(problem, [], 200_000_000) is None


@pytest.mark.parametrize("error", [BuildError("no compiler", None), SimulatorError("no end")])  # type: ignore[arg-type]
def test_without_the_twin_nothing_is_predicted(error: Exception) -> None:
    problem: Any = Problem({1: 1.0}, error)
    assert predicted_microseconds(problem, [1], 1) is None


class Loop:
    """A layer's loop: its batches are those of the test."""

    def __init__(self, *given: Any) -> None:
        self.hear = given[-1]
        self.asked = 0
        self.progress = Logged("info", "progress", 0.0)
        self.done: list[Any] = []

    def ask(self, count: int) -> TrialBatch:
        batch = TrialBatch(self.asked, range(self.asked, self.asked + count))
        self.asked += count
        return batch

    def measure(self, batch: TrialBatch) -> None:
        self.done.append(("measure", batch.first))

    def tell(self, batch: TrialBatch) -> None:
        self.done.append(("tell", batch.first))

    def confirm(self) -> bool:
        return True


class Bench:
    """A layer's search with a loop and a tuner of the test's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.recorded: list[Trial] = []
        self.predicted: list[tuple[str, float]] = []
        self.published: list[Any] = []
        self.first: list[list[int]] = []
        self.searching = True
        self.control = CampaignControl()
        monkeypatch.setattr(module, "TuningLoop", Loop)
        monkeypatch.setattr(module, "fallback_candidates", lambda problem: [7, 8])
        monkeypatch.setattr(module, "FallbackFirst", self._fallback)
        monkeypatch.setattr(module, "predicted_microseconds", lambda problem, candidates, clock: 12.5)
        monkeypatch.setattr(module, "set_prediction", lambda store, uuid, value: self.predicted.append((uuid, value)))
        monkeypatch.setattr(module.tune, "make_tuner", lambda *given, **options: (given, options))

    def _fallback(self, tuner: Any, candidates: list[int]) -> Any:
        self.first.append(candidates)
        bench = self

        class Tuner:
            @property
            def searching(self) -> bool:
                return bench.searching

        return Tuner()

    def search(self, **changes: Any) -> LayerSearch:
        made = run("a" * 32, **{key: value for key, value in changes.items() if key != "fallback_first"})
        store: Any = SimpleNamespace(trials=lambda uuid: self.recorded)
        layer: Any = SimpleNamespace(workload=made.workload, count=3, name="C5")
        task: Any = SimpleNamespace(problem="problem")
        return LayerSearch(
            layer, made, task, None, store, self.control, self.published.append,  # type: ignore[arg-type]
            fallback_first=changes.get("fallback_first", True),
        )  # fmt: skip


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def test_a_new_layer_is_predicted_and_shows_its_progress(bench: Bench) -> None:
    search = bench.search()
    assert bench.predicted == [("a" * 32, 12.5)] and bench.published == [Logged("info", "progress", 0.0)]
    assert bench.first == [[7, 8]] and search.workload == "resnet18.C5"
    bench.search(fallback_first=False)
    assert bench.first[1] == []


def test_a_layer_that_is_predicted_or_measured_is_not_predicted_again(bench: Bench) -> None:
    bench.search(predicted_microseconds=3.0)
    bench.recorded = [trial(0, 1, 40.0)]
    bench.search()
    assert bench.predicted == []
    bench.recorded = [Trial(0, 1, {}, Outcome.REJECTED, "inp_overflow")]
    bench.search()
    assert len(bench.predicted) == 1, "a trial that is not verified measures nothing"


def test_its_standing_has_the_best_after_each_trial(bench: Bench) -> None:
    search = bench.search(bound_cycles=1000)
    batch = search.ask(4)
    for event in (trial(1, 5, 40.0), trial(2, 6, 50.0), trial(3, 7, 30.0)):
        search._hear(TrialRecorded(event))
    search._hear(TrialRecorded(Trial(0, 1, {}, Outcome.REJECTED, "inp_overflow")))
    search.tell(batch)
    standing = search.standing
    assert standing is not None
    assert list(standing.bests) == [None, 40.0, 40.0, 30.0]
    assert (standing.instances, standing.asked, standing.confidence) == (3, 4, 0.0)
    assert standing.bound == search.run.bound_microseconds
    search._hear(TunerUpdated(4, 0.75, 1.0))
    search._hear(TunerUpdated(4, None, 1.0))
    later = search.standing
    assert later is not None and later.confidence == 0.75 and len(bench.published) == 7


def test_trials_of_earlier_sessions_count(bench: Bench) -> None:
    bench.recorded = [trial(0, 1, 40.0)]
    search = bench.search()
    search.tell(search.ask(1))
    assert search.standing is not None and list(search.standing.bests) == [40.0]


def test_a_tuner_that_asks_for_nothing_is_exhausted_until_it_hears_more(bench: Bench) -> None:
    search = bench.search()
    batch = search.ask(2)
    assert not search.exhausted and search.standing is not None
    search.ask(0)
    assert search.exhausted and search.standing is None
    search.tell(batch)
    assert not search.exhausted and search.standing is not None


def test_a_skipped_layer_gets_no_more_and_repeats_what_is_recorded(bench: Bench) -> None:
    bench.recorded = [trial(0, 1, 40.0), trial(1, 2, 50.0)]
    search = bench.search()
    assert search.searches_fallback and not search.skipped
    bench.control.skip("resnet18.C5")
    assert search.skipped and search.standing is None
    assert search.searches_fallback, "none of its two trials was asked for again"
    search.ask(2)
    assert not search.searches_fallback
    ended = bench.search(state=RunState.FINISHED)
    assert ended.skipped and ended.standing is None
    bench.searching = False
    assert not ended.searches_fallback


def test_its_trials_are_the_loops(bench: Bench) -> None:
    search = bench.search()
    batch = search.ask(1)
    search.measure(batch)
    search.tell(batch)
    assert search._loop.done == [("measure", 0), ("tell", 0)] and search.confirm()  # type: ignore[attr-defined]
