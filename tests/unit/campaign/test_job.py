"""A campaign's job: who hears it, the requests of a layer's clients, the progress over all layers, and its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hilt.campaign import job as module
from hilt.campaign.budget import Budget
from hilt.campaign.design import make_campaign
from hilt.campaign.job import CampaignJob, open_campaign
from hilt.campaign.outputs import Written
from hilt.engine.client import EngineClient
from hilt.engine.errors import RunOverError
from hilt.engine.event_log import read_event_log
from hilt.engine.events import (
    EngineCommand,
    EngineHello,
    Event,
    FailureCause,
    Finished,
    Logged,
    NetworkUpdated,
    RunProgress,
    StateChanged,
    TrialRecorded,
)
from hilt.engine.run_files import RunFiles
from hilt.engine.run_spec import RunSpec
from hilt.engine.tuner_calls import AbandonedError
from hilt.schedule.onnx_model import Layer, Network
from hilt.store import Run, RunState, Store, Trial, UnknownRunError, database_path
from hilt.store.campaigns import end_layer, set_campaign_state
from hilt.trial import Outcome
from tests.unit.cli.network_engine import NetworkBoards
from tests.unit.store.examples import trial

SHAPES = ("ci=32,h=14,w=14,co=32,k=3x3,s=1x1,p=1x1", "ci=32,h=7,w=7,co=64,k=1x1,s=1x1,p=0x0")
NETWORK = Network("two", tuple(Layer(f"conv2d:n=1,{shape}", nodes=[shape]) for shape in SHAPES), {})
SECONDS = 30.0


class Bench:
    """A job in this process, its messages, and its layers' searches, which do nothing."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch, budget: Budget) -> None:
        self.home, self.store = home, Store(database_path(home))
        self.said: list[Event] = []
        self.watched: list[Event] = []
        self.hear: dict[str, Any] = {}
        self.fallback_first: list[bool] = []
        self.loop: Any = None
        self.now = 1000.0
        monkeypatch.setattr(module, "monotonic", lambda: self.now)
        monkeypatch.setattr(module, "LayerSearch", self._search)
        monkeypatch.setattr(module, "CampaignLoop", self._loop)
        settings = RunSpec("two", "table:plain", "random", trials=1, seed=3, batch=3)
        self.campaign = make_campaign(NETWORK, settings, budget)
        self.store.create_campaign(self.campaign)
        self.job: CampaignJob = open_campaign(self.store, self.campaign.uuid, NetworkBoards())  # type: ignore[arg-type]

    def _search(self, layer: Layer, run: Run, task: str, *rest: Any, fallback_first: bool) -> str:
        self.hear[run.uuid] = rest[-1]
        self.fallback_first.append(fallback_first)
        return f"search of {task}"

    def _loop(self, *given: Any) -> Any:
        self.loop = given
        return SimpleNamespace(run=lambda: "spent")

    @property
    def runs(self) -> list[Run]:
        """The runs as they are stored."""
        return [self.store.run(run.uuid) for run in self.job.runs]

    def search(self) -> Any:
        done = self.job.search("measurer", ["first", "second"])  # type: ignore[arg-type]
        self.said.clear()
        return done

    def attach(self, run: Run) -> EngineClient:
        client = EngineClient.attach(self.home, run.uuid)
        assert next(client.events(SECONDS)) == EngineHello(run.uuid, module.os.getpid())
        return client


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack) -> Bench:
    made = Bench(tmp_path, monkeypatch, Budget(trials=40))
    stack.callback(made.store.close)
    return made


@pytest.fixture
def begun(bench: Bench, stack: ExitStack) -> Bench:
    bench.job.begin(stack, bench.said.append, bench.watched.append)
    return bench


def test_only_a_campaign_that_goes_on_is_opened(bench: Bench) -> None:
    with pytest.raises(UnknownRunError, match="there is no campaign 'ffffffff'; `hilt campaigns`"):
        open_campaign(bench.store, "f" * 32, NetworkBoards())  # type: ignore[arg-type]
    for state in (RunState.STOPPED, RunState.FAILED):
        set_campaign_state(bench.store, bench.job.uuid, state)
        assert open_campaign(bench.store, bench.job.uuid, NetworkBoards()).runs == bench.job.runs  # type: ignore[arg-type]
    set_campaign_state(bench.store, bench.job.uuid, RunState.FINISHED)
    with pytest.raises(RunOverError, match=f"campaign {bench.job.uuid[:8]} has finished; `hilt show"):
        open_campaign(bench.store, bench.job.uuid, NetworkBoards())  # type: ignore[arg-type]


def test_its_layers_are_locked_and_run_but_one_that_was_skipped(bench: Bench, stack: ExitStack) -> None:
    first, second = bench.job.runs
    assert [run.workload for run in (first, second)] == [layer.workload for layer in NETWORK.layers]
    end_layer(bench.store, second.uuid, "skipped")
    opened = open_campaign(bench.store, bench.job.uuid, NetworkBoards())  # type: ignore[arg-type]
    with ExitStack() as inner:
        opened.begin(inner, bench.said.append, bench.watched.append)
        assert [run.state for run in bench.runs] == [RunState.RUNNING, RunState.FINISHED]
        assert all(RunFiles(bench.home, run.uuid).is_running() for run in opened.runs)
    assert not any(RunFiles(bench.home, run.uuid).is_running() for run in opened.runs)


def test_a_layers_clients_may_pause_all_and_skip_their_own(begun: Bench) -> None:
    layer = begun.job.runs[1]
    obey = begun.job._obeyer(layer)
    obey(EngineCommand.PAUSE)
    assert begun.job.control.paused
    obey(EngineCommand.RESUME)
    assert not begun.job.control.paused and not begun.job.control.stopping
    obey(EngineCommand.STOP)
    assert not begun.job.control.stopping and begun.job.control.skipped == {layer.workload}
    assert [run.detail for run in begun.runs] == ["", "skipped"]
    assert begun.runs[1].state is RunState.FINISHED
    details = [event.detail for event in begun.said if isinstance(event, StateChanged)]
    assert details == ["pausing after the trials on the board", "", f"{NETWORK.layers[1].name}: skipped from here on"]


def test_the_campaign_obeys_its_own_clients(begun: Bench) -> None:
    begun.job.obey(EngineCommand.STOP)
    assert begun.job.control.stopping


def test_a_search_hands_its_layers_to_the_loop(begun: Bench) -> None:
    assert begun.job.search("measurer", ["first", "second"]) == "spent"  # type: ignore[arg-type]
    campaign, budget, layers, store, control, *_ = begun.loop
    assert (campaign, budget, layers) == (begun.campaign, Budget(trials=40), ["search of first", "search of second"])
    assert store is begun.store and control is begun.job.control and begun.fallback_first == [True, True]
    assert [event.detail for event in begun.said if isinstance(event, StateChanged)] == [
        f"{layer.name}: looking at its space" for layer in NETWORK.layers
    ]


def test_a_tuner_that_is_given_up_ends_the_search(begun: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(*given: Any, **options: Any) -> None:
        raise AbandonedError

    monkeypatch.setattr(module, "LayerSearch", give_up)
    assert begun.job.search("measurer", ["first", "second"]) is False  # type: ignore[arg-type]
    assert begun.loop is None


def progress(trials: int, valid: int, **counts: int) -> RunProgress:
    return RunProgress(trials, 20, counts, valid, 1.0)


def test_progress_is_the_sum_over_the_layers(begun: Bench) -> None:
    begun.search()
    first, second = begun.job.runs
    begun.hear[first.uuid](progress(3, 2, ok=2, timeout=1))
    begun.now += 30.0
    begun.hear[second.uuid](progress(4, 1, ok=1, rejected=3))
    begun.hear[second.uuid](progress(5, 2, ok=2, rejected=3))
    last = begun.said[-1]
    assert isinstance(last, RunProgress) and len(begun.said) == 3
    assert (last.trials, last.valid, last.budget, last.elapsed_seconds) == (8, 4, 40, 30.0)
    assert last.counts == {"ok": 4, "timeout": 1, "rejected": 3}
    assert (last.trials_per_second, last.seconds_left) == (None, None), "nothing was measured"
    assert begun.watched == [
        progress(3, 2, ok=2, timeout=1),
        progress(4, 1, ok=1, rejected=3),
        progress(5, 2, ok=2, rejected=3),
    ]


@pytest.mark.parametrize(("measured", "rate"), [(6, 0.5), (3, None)])
def test_the_pace_is_that_of_the_measured_trials(begun: Bench, measured: int, rate: float | None) -> None:
    begun.search()
    pace = begun.job._pace
    pace._clock = lambda: begun.now
    pace.begin()
    hear = begun.hear[begun.job.runs[0].uuid]
    for ordinal in range(measured):
        begun.now += 2.0
        hear(TrialRecorded(trial(ordinal, ordinal, 100.0)))
    hear(progress(measured, measured))
    last = begun.said[-1]
    assert isinstance(last, RunProgress)
    assert last.trials_per_second == (None if rate is None else pytest.approx(rate))
    assert last.seconds_left == (None if rate is None else pytest.approx(2.0 * (40 - measured)))


def test_a_rejected_trial_takes_no_time(begun: Bench) -> None:
    begun.search()
    added: list[Any] = []
    begun.job._pace = SimpleNamespace(add=lambda ordinal, **how: added.append((ordinal, how)))  # type: ignore[assignment]
    run = begun.job.runs[0]
    begun.hear[run.uuid](TrialRecorded(trial(4, 1, 9.0)))
    begun.hear[run.uuid](TrialRecorded(Trial(5, 2, {}, Outcome.REJECTED, "inp_overflow")))
    assert added == [(4, {"measured": True, "of": run.workload}), (5, {"measured": False, "of": run.workload})]
    assert begun.said == []


def test_the_time_that_a_budget_of_seconds_leaves_excludes_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack
) -> None:
    bench = Bench(tmp_path, monkeypatch, Budget(seconds=100.0))
    stack.callback(bench.store.close)
    monkeypatch.setattr("hilt.campaign.campaign_control.monotonic", lambda: bench.now)
    bench.job.begin(stack, bench.said.append, bench.watched.append)
    bench.search()
    hear = bench.hear[bench.job.runs[0].uuid]
    seen = []
    for command, seconds in ((None, 10.0), (EngineCommand.PAUSE, 50.0), (EngineCommand.RESUME, 20.0), (None, 90.0)):
        if command is not None:
            bench.job.obey(command)
        bench.now += seconds
        hear(progress(1, 1))
        last = bench.said[-1]
        assert isinstance(last, RunProgress) and last.budget == 0
        seen.append((last.elapsed_seconds, last.seconds_left))
    assert seen == [(10.0, 90.0), (10.0, 90.0), (30.0, 70.0), (120.0, 0.0)]


def test_a_layers_state_is_the_campaigns(begun: Bench) -> None:
    begun.search()
    begun.job._pace.begin()
    hear = begun.hear[begun.job.runs[0].uuid]
    for state in (RunState.RUNNING, RunState.PAUSED):
        hear(StateChanged(state, "why"))
        stored = begun.store.campaign(begun.job.uuid)
        assert stored is not None and (stored.state, stored.detail) == (state, "why")
        assert (begun.job._pace._begun is None) is (state is RunState.PAUSED), "a pause is no trial's time"
    hear(Logged("info", "hello", 1.0))
    assert begun.said == [
        StateChanged(RunState.RUNNING, "why"),
        StateChanged(RunState.PAUSED, "why"),
        Logged("info", "hello", 1.0),
    ]
    assert read_event_log(RunFiles(begun.home, begun.job.runs[0].uuid).event_log_path) == begun.watched


def test_the_networks_latency_is_published_with_the_layer_that_is_next(begun: Bench) -> None:
    begun.search()
    first, second = begun.job.runs
    begun.store.record(second.uuid, [trial(0, 1, 40.0), trial(1, 2, 10.0)])
    for run in (first, second):
        begun.loop[6](run.workload)
    of_first, of_second = begun.said
    assert isinstance(of_first, NetworkUpdated) and isinstance(of_second, NetworkUpdated)
    assert (of_first.layer, of_first.layer_microseconds) == (NETWORK.layers[0].name, None)
    assert (of_second.layer, of_second.layer_microseconds) == (NETWORK.layers[1].name, 10.0)
    assert of_second.microseconds == pytest.approx(first.bound_microseconds + 10.0)
    assert (of_second.measured_layers, of_second.layers) == (1, 2)
    assert (of_first.measured_microseconds, of_second.measured_microseconds) == (10.0, 10.0)
    assert of_second.gain == 4.0


@pytest.mark.parametrize("state", [RunState.FINISHED, RunState.STOPPED, RunState.FAILED])
def test_the_end_of_a_campaign_is_that_of_its_layers(
    begun: Bench, monkeypatch: pytest.MonkeyPatch, state: RunState
) -> None:
    written: list[Path] = []
    monkeypatch.setattr(
        module, "write_outputs", lambda store, uuid, folder: written.append(folder) or Written([], ["a note"])
    )
    begun.store.record(begun.job.runs[0].uuid, [trial(0, 1, 40.0)])
    begun.job._obeyer(begun.job.runs[1])(EngineCommand.STOP)
    begun.said.clear()
    begun.job.end(Finished(state, "why", FailureCause.BOARD if state is RunState.FAILED else None))
    first, second = begun.runs
    assert (first.state, first.detail) == (state, "" if state is RunState.FINISHED else "why")
    assert first.failure == ("board" if state is RunState.FAILED else "")
    assert first.budget == (1 if state is RunState.FINISHED else begun.job.runs[0].budget)
    assert (second.state, second.detail) == (RunState.FINISHED, "skipped")
    campaign = begun.store.campaign(begun.job.uuid)
    assert campaign is not None and (campaign.state, campaign.detail) == (state, "why")
    assert campaign.failure == first.failure
    if state is RunState.FINISHED:
        assert begun.said[0] == StateChanged(RunState.RUNNING, "writing schedules, AutoTVM's log and the report")
        assert written and [(event.level, event.text) for event in begun.said[1:] if isinstance(event, Logged)] == [
            ("info", "a note")
        ]
    else:
        assert not written and not begun.said


def test_files_that_cannot_be_written_leave_the_results(begun: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    unexpected: list[Exception] = []

    def fail(*given: Any) -> None:
        raise OSError("no room")

    monkeypatch.setattr(module, "write_outputs", fail)
    monkeypatch.setattr(module, "log_unexpected", unexpected.append)
    begun.job.end(Finished(RunState.FINISHED, "", None))
    campaign = begun.store.campaign(begun.job.uuid)
    assert campaign is not None and campaign.state is RunState.FINISHED
    last = begun.said[-1]
    assert isinstance(last, Logged) and last.level == "error" and len(unexpected) == 1
    assert (
        last.text
        == f"not all files of the campaign were written (no room); `hilt report {begun.job.uuid[:8]}` writes them"
    )


def test_the_log_of_a_layer_has_the_end_and_its_clients_hear_all(begun: Bench) -> None:
    run = begun.job.runs[0]
    shared: tuple[Event, ...] = (Logged("info", "of the campaign", 1.0), Finished(RunState.STOPPED, "", None))
    with begun.attach(run) as client:
        for event in shared:
            begun.job.share(event)
        heard = client.events(SECONDS)
        assert (next(heard), next(heard)) == shared
    assert read_event_log(RunFiles(begun.home, run.uuid).event_log_path) == [shared[1]]
