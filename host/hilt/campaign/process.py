"""The campaign's process: holds the campaign and its layers' runs, serves their clients, runs the loop, writes results.

A client of the campaign gets its state, its boards and its progress over all layers, and may pause, resume and stop it.
Each layer's run is served too, as if it had an engine of its own: pause and resume there are the campaign's, and stop
skips the layer, for good.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, time

from hilt import measure
from hilt.campaign.budget import Budget
from hilt.campaign.campaign_control import CampaignControl
from hilt.campaign.design import layer_runs
from hilt.campaign.layer import LayerSearch
from hilt.campaign.loop import CampaignLoop
from hilt.campaign.outputs import write_outputs
from hilt.engine.board_health import BoardHealthMonitor
from hilt.engine.errors import RunOverError, failure_of
from hilt.engine.event_log import EventLog
from hilt.engine.events import (
    BoardChanged,
    EngineCommand,
    EngineHello,
    Event,
    FailureCause,
    Finished,
    Logged,
    RunProgress,
    StateChanged,
)
from hilt.engine.process import SAYINGS, Boards, EventHandler, announcer, log_unexpected
from hilt.engine.run_files import RunFiles
from hilt.engine.run_spec import check_same
from hilt.engine.server import EngineServer
from hilt.engine.stopping import closed_at_stop, opened_unless_stopped
from hilt.measure import BoardEvent, Measurer
from hilt.schedule.onnx_model import Layer
from hilt.store import Campaign, Run, RunState, Store, StoreError, database_path
from hilt.store.campaigns import end_layer, set_campaign_state

_SKIPPED = "skipped"


def main(arguments: Sequence[str] | None = None, boards: Boards = measure) -> int:
    """Runs one campaign to its end or until it is stopped; 0, or 1 where it failed (its record says why)."""
    parser = argparse.ArgumentParser(prog="python -m hilt.campaign", description="Runs one campaign; clients attach.")
    parser.add_argument("campaign", help="its whole uuid")
    parser.add_argument("--home", type=Path, required=True, help="hilt's home directory")
    parser.add_argument("--ready-fd", type=int, help="where to say that clients can attach, or why not")
    options = parser.parse_args(arguments)
    os.environ["HILT_HOME"] = str(options.home)  # the layers below keep their state in the same home
    announce = announcer(options.ready_fd)
    try:
        with Store(database_path(options.home)) as store, RunFiles(options.home, options.campaign).locked():
            campaign = store.campaign(options.campaign)
            if campaign is None or campaign.budget is None:
                raise RunOverError(f"{options.campaign[:8]} is no campaign with a budget")
            return _CampaignSession(store, options.home, campaign, boards, announce).run()
    except Exception as error:
        log_unexpected(error)
        announce({"failure": failure_of(error), "message": str(error)})
        return 1


class _CampaignSession:
    """One process's work on a campaign whose lock it holds."""

    def __init__(
        self,
        store: Store,
        home: Path,
        campaign: Campaign,
        boards: Boards,
        announce: Callable[[dict[str, object]], None],
    ) -> None:
        self._store = store
        self._home = home
        self._campaign = campaign
        self._budget = Budget.from_dict(campaign.budget or {})
        self._boards = boards
        self._announce = announce
        self._control = CampaignControl()
        self._publish: Callable[[Event], None] = lambda event: None
        self._publish_layer: dict[str, Callable[[Event], None]] = {}
        self._progress: dict[str, RunProgress] = {}
        self._began = monotonic()
        self._watch = BoardHealthMonitor(campaign.uuid, self._stop, lambda event: self._publish(event))

    def run(self) -> int:
        if self._campaign.state is RunState.FINISHED:
            short = self._campaign.uuid[:8]
            raise RunOverError(f"campaign {short} has finished; `hilt report {short} --html FILE` shows it")
        runs = layer_runs(self._store, self._campaign, self._boards)
        board = self._boards.describe_board(runs[0][1].board)
        for _, run in runs:
            check_same(run, board)
        for _, run in runs:
            if run.state is not RunState.FINISHED:  # which it is where it was skipped
                self._store.set_state(run.uuid, RunState.RUNNING)
        with ExitStack() as stack:
            self._serve(stack, [run for _, run in runs])
            handler = EventHandler(self._publish)
            logging.getLogger("hilt").addHandler(handler)
            stack.callback(logging.getLogger("hilt").removeHandler, handler)
            self._announce({"failure": None})
            try:
                finished = self._tune(runs, board.name)
            except Exception as error:
                log_unexpected(error)
                finished = Finished(RunState.FAILED, str(error), failure_of(error))
            finished = self._end(finished, [run for _, run in runs])
        return 1 if finished.failure else 0

    def _serve(self, stack: ExitStack, runs: Sequence[Run]) -> None:
        """Opens the sockets of the campaign and of its runs, whose locks it takes."""
        files = RunFiles(self._home, self._campaign.uuid)
        server = stack.enter_context(EngineServer(files, EngineHello(self._campaign.uuid, os.getpid()), self._obey))
        self._publish = EventLog(files.event_log_path).recording(server.publish)
        for ordinal in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ordinal, lambda *_: server.obey(EngineCommand.STOP))
        for run in runs:
            layer_files = RunFiles(self._home, run.uuid)
            stack.enter_context(layer_files.locked())
            obey = self._obeyer(run)
            served = stack.enter_context(EngineServer(layer_files, EngineHello(run.uuid, os.getpid()), obey))
            self._publish_layer[run.uuid] = EventLog(layer_files.event_log_path).recording(served.publish)

    def _tune(self, runs: Sequence[tuple[Layer, Run]], board: str) -> Finished:
        self._set_state(RunState.RUNNING, f"opening board {board}")
        measurer = opened_unless_stopped(self._control, lambda: self._boards.open_measurer(board, self._hear_board))
        if measurer is None:
            return Finished(RunState.STOPPED, f"`hilt resume {self._campaign.uuid[:8]}` goes on")
        try:
            layers = [self._search(layer, run, measurer) for layer, run in runs]
            self._set_state(RunState.RUNNING, "")
            loop = CampaignLoop(self._campaign, self._budget, layers, self._store, self._control, self._say)
            with closed_at_stop(self._control, measurer):
                complete = loop.run()
        finally:
            measurer.close()
        if complete:
            return Finished(RunState.FINISHED, "")
        if self._watch.failing is not None:
            return Finished(RunState.FAILED, self._watch.failing, FailureCause.BOARD)
        return Finished(RunState.STOPPED, f"`hilt resume {self._campaign.uuid[:8]}` goes on")

    def _search(self, layer: Layer, run: Run, measurer: Measurer) -> LayerSearch:
        self._say(f"{layer.workload}: looking at its space")

        def hear(event: Event) -> None:
            self._publish_layer[run.uuid](event)
            self._watch.hear(event)
            if isinstance(event, RunProgress):
                self._progress[run.uuid] = event
                self._publish(self._whole_progress())
            elif isinstance(event, StateChanged):
                set_campaign_state(self._store, self._campaign.uuid, event.state, event.detail)
                self._publish(event)
            elif isinstance(event, Logged):
                self._publish(event)

        return LayerSearch(layer, run, measurer, self._store, self._control, hear)

    def _whole_progress(self) -> RunProgress:
        """Of all layers. A budget of time is given in no trials: 0."""
        parts = list(self._progress.values())
        counts: Counter[str] = Counter()
        for each in parts:
            counts.update(each.counts)
        trials = sum(each.trials for each in parts)
        elapsed = monotonic() - self._began - self._control.paused_seconds
        left = None
        if self._budget.seconds is not None:
            left = max(0.0, self._budget.seconds - self._campaign.spent_seconds - elapsed)
        return RunProgress(
            trials=trials,
            budget=self._budget.trials or 0,
            counts=dict(counts),
            valid=sum(each.valid for each in parts),
            elapsed_seconds=elapsed,
            seconds_left=left,
        )

    def _end(self, finished: Finished, runs: Sequence[Run]) -> Finished:
        """Says how it ended wherever that is asked, and writes what it came to."""
        skipped = self._control.skipped
        try:
            for run in runs:
                if run.state is RunState.FINISHED or run.workload in skipped:
                    continue
                if finished.state is RunState.FINISHED:
                    end_layer(self._store, run.uuid)
                else:
                    self._set_run_state(run, finished.state, finished.detail, finished.failure)
            set_campaign_state(
                self._store, self._campaign.uuid, finished.state, finished.detail, finished.failure or ""
            )
            if finished.state is RunState.FINISHED:
                self._write_outputs()
        except StoreError as error:  # most likely what the campaign failed of; clients hear of it all the same
            finished = finished if finished.failure else Finished(RunState.FAILED, str(error), FailureCause.STORE)
        for publish in (*self._publish_layer.values(), self._publish):
            publish(finished)
        return finished

    def _write_outputs(self) -> None:
        directory = RunFiles(self._home, self._campaign.uuid).directory
        try:
            written = write_outputs(self._store, self._campaign.uuid, directory)
        except Exception as error:  # what was found is in the store, whatever becomes of these files
            log_unexpected(error)
            short = self._campaign.uuid[:8]
            text = f"not all files of the campaign were written ({error}); `hilt report {short}` writes them"
            self._publish(Logged("error", text, time()))
            return
        for note in written.notes:
            self._publish(Logged("warning", note, time()))

    def _set_state(self, state: RunState, detail: str) -> None:
        set_campaign_state(self._store, self._campaign.uuid, state, detail)
        self._publish(StateChanged(state, detail))

    def _set_run_state(self, run: Run, state: RunState, detail: str, failure: FailureCause | None = None) -> None:
        self._store.set_state(run.uuid, state, detail, failure or "")
        self._publish_layer[run.uuid](StateChanged(state, detail))

    def _say(self, words: str) -> None:
        self._publish(StateChanged(RunState.RUNNING, words))

    def _obey(self, command: EngineCommand) -> None:
        self._control.obey(command)
        self._say(SAYINGS[command])

    def _obeyer(self, run: Run) -> Callable[[EngineCommand], None]:
        def obey(command: EngineCommand) -> None:
            if command is not EngineCommand.STOP:
                self._obey(command)
                return
            self._control.skip(run.workload)
            end_layer(self._store, run.uuid, _SKIPPED)
            self._say(f"{run.workload}: skipped from here on")

        return obey

    def _stop(self) -> None:
        self._control.obey(EngineCommand.STOP)

    def _hear_board(self, event: BoardEvent) -> None:
        changed = BoardChanged(event.board, event.state, event.detail, event.at, event.celsius)
        self._publish(changed)
        self._watch.hear(changed)
