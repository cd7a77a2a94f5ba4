"""A campaign as the job of an engine's process: holds the runs of its layers, serves their clients, writes results.

A client of the campaign gets its state, its boards and its progress over all layers; it may pause, resume and stop it.
Each layer's run has a socket of its own: pause and resume there act on the campaign, and stop skips the layer for good.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, time

from hilt.campaign.budget import Budget
from hilt.campaign.campaign_control import CampaignControl
from hilt.campaign.design import layer_runs
from hilt.campaign.layer import LayerSearch
from hilt.campaign.loop import CampaignLoop
from hilt.campaign.outputs import folders_of, write_outputs
from hilt.engine.campaign_results import Source, load_result
from hilt.engine.errors import RunOverError
from hilt.engine.event_log import EventLog
from hilt.engine.events import (
    EngineCommand,
    EngineHello,
    Event,
    Finished,
    Logged,
    NetworkUpdated,
    RunProgress,
    StateChanged,
    TrialRecorded,
)
from hilt.engine.job import Publish
from hilt.engine.pace import Pace
from hilt.engine.process import Boards, log_unexpected
from hilt.engine.run_files import RunFiles
from hilt.engine.run_spec import RunTask
from hilt.engine.server import EngineServer
from hilt.engine.tuner_calls import AbandonedError
from hilt.measure import Measurer
from hilt.schedule.onnx_model import Layer
from hilt.store import Campaign, Run, RunState, Store, UnknownRunError
from hilt.store.campaigns import end_layer, set_campaign_state
from hilt.trial import Outcome

_SKIPPED = "skipped"


def open_campaign(store: Store, uuid: str, boards: Boards) -> CampaignJob:
    """Return the job of the campaign with this whole uuid. Raises UnknownRunError, RunOverError."""
    campaign = store.campaign(uuid)
    if campaign is None:
        raise UnknownRunError(f"there is no campaign {uuid[:8]!r}; `hilt campaigns` lists them")
    if campaign.state is RunState.FINISHED:
        short = campaign.uuid[:8]
        raise RunOverError(f"campaign {short} has finished; `hilt show {short}` shows it")
    return CampaignJob(store, campaign, layer_runs(store, campaign, boards))


class CampaignJob:
    """The layers of a campaign, as a hilt.engine.job.Job."""

    def __init__(self, store: Store, campaign: Campaign, layers: Sequence[tuple[Layer, Run]]) -> None:
        self._store = store
        self._home: Path = store.path.parent
        self._campaign = campaign
        self._budget = Budget.from_dict(campaign.budget)
        self._layers = layers
        self._publish: Publish = lambda event: None
        self._watch: Publish = lambda event: None
        self._publish_layer: dict[str, Publish] = {}
        self._servers: dict[str, EngineServer] = {}
        self._progress: dict[str, RunProgress] = {}
        self._began = monotonic()
        self._pace = Pace()
        self.control = CampaignControl()
        self.verdict = ""

    @property
    def uuid(self) -> str:
        """The campaign's."""
        return self._campaign.uuid

    @property
    def runs(self) -> Sequence[Run]:
        """One for each layer, in the order of the model."""
        return [run for _, run in self._layers]

    def begin(self, stack: ExitStack, publish: Publish, watch: Publish) -> None:
        """Lock and serve the runs of the layers. See Job."""
        self._publish, self._watch = publish, watch
        for run in self.runs:
            if run.state is not RunState.FINISHED:  # a skipped layer stays finished
                self._store.set_state(run.uuid, RunState.RUNNING)
            files = RunFiles(self._home, run.uuid)
            stack.enter_context(files.locked())
            hello = EngineHello(run.uuid, os.getpid())
            server = stack.enter_context(EngineServer(files, hello, self._obeyer(run)))
            self._servers[run.uuid] = server
            self._publish_layer[run.uuid] = EventLog(files.event_log_path).recording(server.publish)

    def set_state(self, state: RunState, detail: str) -> None:
        """See Job."""
        set_campaign_state(self._store, self._campaign.uuid, state, detail)

    def obey(self, command: EngineCommand) -> None:
        """See Job."""
        self.control.obey(command)

    def search(self, measurer: Measurer, tasks: Sequence[RunTask]) -> bool:
        """See Job."""
        try:
            layers = [
                self._search_of(layer, run, task, measurer)
                for (layer, run), task in zip(self._layers, tasks, strict=True)
            ]
        except AbandonedError:
            return False
        loop = CampaignLoop(
            self._campaign, self._budget, layers, self._store, self.control, self._announce, self._publish_network
        )
        return loop.run()

    def end(self, finished: Finished) -> None:
        """Store how the layers and the campaign ended, then write the files. See Job."""
        skipped = self.control.skipped
        for run in self.runs:
            if run.state is RunState.FINISHED or run.workload in skipped:
                continue
            if finished.state is RunState.FINISHED:
                end_layer(self._store, run.uuid)
            else:
                self._store.set_state(run.uuid, finished.state, finished.detail, finished.failure or "")
        uuid = self._campaign.uuid
        set_campaign_state(self._store, uuid, finished.state, finished.detail, finished.failure or "")
        if finished.state is RunState.FINISHED:
            self._write_outputs()

    def share(self, event: Event) -> None:
        """See Job. The event logs of the layers get the end alone: the campaign's has the rest."""
        for uuid, server in self._servers.items():
            (self._publish_layer[uuid] if isinstance(event, Finished) else server.publish)(event)

    def _search_of(self, layer: Layer, run: Run, task: RunTask, measurer: Measurer) -> LayerSearch:
        self._announce(f"{layer.name}: looking at its space")

        def hear(event: Event) -> None:
            self._publish_layer[run.uuid](event)
            self._watch(event)
            if isinstance(event, TrialRecorded):
                measured = event.trial.outcome is not Outcome.REJECTED
                self._pace.add(event.trial.ordinal, measured=measured, of=run.workload)
            elif isinstance(event, RunProgress):
                self._progress[run.uuid] = event
                self._publish(self._whole_progress())
            elif isinstance(event, StateChanged):
                self.set_state(event.state, event.detail)
                self._publish(event)
                if event.state is RunState.PAUSED:
                    self._pace.pause_ended()
            elif isinstance(event, Logged):
                self._publish(event)

        first = self._campaign.fallback_first
        return LayerSearch(layer, run, task, measurer, self._store, self.control, hear, fallback_first=first)

    def _whole_progress(self) -> RunProgress:
        """Return the progress over all layers; its budget is 0 where the campaign has a budget of time."""
        parts = list(self._progress.values())
        counts: Counter[str] = Counter()
        for part in parts:
            counts.update(part.counts)
        elapsed = monotonic() - self._began - self.control.paused_seconds
        trials = sum(part.trials for part in parts)
        seconds = self._pace.seconds_per_trial
        left = None
        if self._budget.seconds is not None:
            left = max(0.0, self._budget.seconds - self._campaign.spent_seconds - elapsed)
        elif self._budget.trials is not None:
            left = self._pace.seconds_for(self._budget.trials)
        return RunProgress(
            trials=trials,
            budget=self._budget.trials or 0,
            counts=dict(counts),
            valid=sum(part.valid for part in parts),
            elapsed_seconds=elapsed,
            trials_per_second=1 / seconds if seconds else None,
            seconds_left=left,
        )

    def _publish_network(self, workload: str) -> None:
        """Publish the network's latency at the begin of a slice of the layer of this workload."""
        result = load_result(self._store, self._campaign)
        layer = next(layer for layer in result.layers if layer.layer.workload == workload)
        estimate = result.estimate
        self._publish(
            NetworkUpdated(
                layer=layer.layer.name,
                layer_microseconds=layer.best.microseconds if layer.best else None,
                microseconds=estimate.microseconds,
                measured_microseconds=result.microseconds,
                measured_layers=estimate.layers_by.get(Source.MEASURED, 0),
                layers=len(result.layers),
                gain=result.gain,
            )
        )

    def _write_outputs(self) -> None:
        self._announce("writing schedules, AutoTVM's log and the report")
        uuid = self._campaign.uuid
        try:
            written = [write_outputs(self._store, uuid, folder) for folder in folders_of(self._home, uuid)]
        except Exception as error:  # the results are in the store, whatever becomes of these files
            log_unexpected(error)
            short = self._campaign.uuid[:8]
            text = f"not all files of the campaign were written ({error}); `hilt report {short}` writes them"
            self._publish(Logged("error", text, time()))
            return
        for note in written[0].notes:
            self._publish(Logged("info", note, time()))

    def _announce(self, text: str) -> None:
        self._publish(StateChanged(RunState.RUNNING, text))

    def _obeyer(self, run: Run) -> Callable[[EngineCommand], None]:
        def obey(command: EngineCommand) -> None:
            if command is not EngineCommand.STOP:
                self.control.obey(command)
                self._announce("pausing after the trials on the board" if command is EngineCommand.PAUSE else "")
                return
            self.control.skip(run.workload)
            end_layer(self._store, run.uuid, _SKIPPED)
            name = next(layer.name for layer, own in self._layers if own.uuid == run.uuid)
            self._announce(f"{name}: skipped from here on")

        return obey
