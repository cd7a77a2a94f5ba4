"""Follows a campaign to its end, or until the user lets go of it, and says what it came to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hilt.campaign.budget import Budget
from hilt.campaign.outputs import LOG, REPORT, SCHEDULE, write_outputs
from hilt.cli import tables
from hilt.cli.exit_codes import Exit, exit_of, say
from hilt.cli.following import Detached, asking_to_stop, show_all, stopped_by_ctrl_c
from hilt.cli.following import wake as wake_up
from hilt.cli.formatting import best_json, print_json, seconds_text, short
from hilt.cli.live_view import LiveView, add_boards, facts_table, print_text
from hilt.cli.network import listing as network_listing
from hilt.cli.progress import QUIET, View
from hilt.engine.campaign_results import CampaignResult, LayerResult, load_result
from hilt.engine.client import CrowdedEngineError, EngineClient, NoEngineError, SilentEngineError
from hilt.engine.events import (
    BoardChanged,
    EngineCommand,
    Event,
    FailureCause,
    Finished,
    Logged,
    RunProgress,
    StateChanged,
)
from hilt.engine.run_files import RunFiles
from hilt.report.html import latency_text
from hilt.schedule.onnx_model import Network
from hilt.store import Campaign, RunState, Store, Trial, database_path

_LINES = 20
"""Lines of progress in a whole campaign that goes to a file."""


def listing(network: Network, as_json: bool) -> None:
    """What the network holds, and what of it VTA cannot run."""
    print_text(Console(stderr=as_json), network_listing(network))


def attend(
    home: Path, campaign: Campaign, detach: bool, as_json: bool, output: Path | None, *, wake: bool = False
) -> Exit:
    """Follows a campaign that has a process, or has finished; what to exit with."""
    console, name = Console(stderr=as_json), short(campaign.uuid)
    if detach:
        if wake:
            wake_up(home, campaign.uuid)
        print_text(console, f"campaign {name} goes on by itself; `hilt campaign {name}` attaches to it")
        return _left(home, campaign, as_json, Exit.OK)
    with stopped_by_ctrl_c(home, campaign.uuid):
        ending = _follow(home, campaign, console, wake)
    if ending is None:
        print_text(console, f"left campaign {name}, which stops when the board is done; `hilt resume {name}` goes on")
        return _left(home, campaign, as_json, Exit.INTERRUPTED)
    with Store(database_path(home)) as store:
        result = load_result(store, store.campaign(campaign.uuid) or campaign)
        directory = output or RunFiles(home, campaign.uuid).directory
        # Its process writes them at its end, unless it was killed just then.
        missing = ending.state is RunState.FINISHED and not (directory / REPORT).exists()
        if output is not None or missing:
            for note in write_outputs(store, campaign.uuid, directory).notes:
                print_text(console, note)
    if as_json:
        print_json(result_values(result), "campaign")
    else:
        tables.console().print(_table(result))
        print_text(console, format_total(result))
    files = [str(directory / each) for each in (SCHEDULE, LOG, REPORT) if (directory / each).exists()]
    if files:
        print_text(console, f"schedules, AutoTVM's log and report: {' '.join(files)}")
    return _exit(result, ending, campaign)


def _left(home: Path, campaign: Campaign, as_json: bool, code: Exit) -> Exit:
    """Says with --json how far a campaign is that goes on without us."""
    if as_json:
        with Store(database_path(home)) as store:
            print_json(result_values(load_result(store, store.campaign(campaign.uuid) or campaign)), "campaign")
    return code


def _exit(result: CampaignResult, ending: Finished, campaign: Campaign) -> Exit:
    if ending.failure is not None:
        say(f"campaign {short(campaign.uuid)} failed: {ending.detail}")
        return exit_of(ending.failure)
    if ending.state is not RunState.FINISHED:
        return Exit.INTERRUPTED
    return Exit.NOTHING_VERIFIED if result.unsolved else Exit.OK


def _follow(home: Path, campaign: Campaign, console: Console, wake: bool) -> Finished | None:
    """None where the user let go of it with a second Ctrl-C."""
    budget = Budget.from_dict(campaign.budget or {})
    make = _live_view if console.is_terminal else PlainCampaignView
    view: View = make(campaign, budget, console)
    try:
        client = EngineClient.attach(home, campaign.uuid)
    except (CrowdedEngineError, SilentEngineError):
        raise  # it runs: how it ended is not on record
    except NoEngineError:
        return _recorded_end(home, campaign)
    with view, client:
        if wake:
            client.send(EngineCommand.RESUME)
        try:
            with asking_to_stop(client) as presses:
                finished = show_all(client, view, presses)
        except Detached:
            return None
    return finished or _recorded_end(home, campaign)


def _recorded_end(home: Path, campaign: Campaign) -> Finished:
    with Store(database_path(home)) as store:
        now = store.campaign(campaign.uuid) or campaign
    if now.state in (RunState.FINISHED, RunState.STOPPED, RunState.FAILED):
        return Finished(now.state, now.detail, FailureCause(now.failure) if now.failure else None)
    detail = f"its process ended without a word; `hilt resume {short(now.uuid)}` goes on with what is recorded"
    return Finished(RunState.FAILED, detail, FailureCause.INTERNAL)


def _pace(progress: RunProgress, budget: Budget) -> str:
    words = f"{progress.trials}/{budget.trials} trials" if budget.trials else f"{progress.trials} trials"
    words += f", {progress.valid} valid"
    if progress.seconds_left is not None:
        words += f", {seconds_text(progress.seconds_left)} of {budget} left"
    return words


class PlainCampaignView:
    """Some lines of progress, and one for whatever happens."""

    def __init__(self, campaign: Campaign, budget: Budget, console: Console) -> None:
        self._campaign = campaign
        self._budget = budget
        self._console = console
        self._shown = -1
        self._boards: dict[str, str] = {}

    def __enter__(self) -> PlainCampaignView:
        self.note(_title(self._campaign, self._budget))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def note(self, words: str) -> None:
        print_text(self._console, words)

    def show(self, event: Event) -> None:
        if isinstance(event, RunProgress):
            share = event.trials * _LINES // self._budget.trials if self._budget.trials else event.trials // 50
            if share != self._shown:
                self._shown = share
                self.note(_pace(event, self._budget))
        elif isinstance(event, BoardChanged) and event.state not in QUIET | {self._boards.get(event.board)}:
            self._boards[event.board] = event.state
            self.note(f"board {event.board} {event.state}{': ' if event.detail else ''}{event.detail}")
        elif isinstance(event, StateChanged) and event.state is not RunState.RUNNING:
            self.note(f"{event.state}: {event.detail}" if event.detail else event.state)
        elif isinstance(event, Logged):
            self.note(f"{event.level}: {event.text}")


def _live_view(campaign: Campaign, budget: Budget, console: Console) -> LiveView:
    def draw(progress: RunProgress, state: str, boards: Mapping[str, str]) -> Table:
        facts = facts_table()
        facts.add_row("campaign", Text(_title(campaign, budget), style="bold"))
        facts.add_row("progress", Text(_pace(progress, budget)))
        facts.add_row("now", Text(state))
        add_boards(facts, boards)
        return facts

    return LiveView(console, RunProgress(0, budget.trials or 0, {}, 0, 0.0), {}, draw)


def _title(campaign: Campaign, budget: Budget) -> str:
    settings = campaign.settings
    name = short(campaign.uuid)
    return f"{campaign.name} on {settings['board']}, tuner {settings['tuner']}, budget {budget}, campaign {name}"


def format_total(result: CampaignResult) -> str:
    """What the network takes now, and with the fallback schedules."""
    words = f"{result.network.name}: {latency_text(result.microseconds)} in all its layers on the board"
    if result.gain is not None:
        fallback = latency_text(result.fallback_microseconds)
        words += f"; {fallback} with the fallback schedules: {result.gain:.2f} times as fast"
        if len(result.compared) < len(result.layers):
            words += f" (over the {len(result.compared)} of {len(result.layers)} layers that have both)"
    wanted = (result.campaign.budget or {}).get("trials", 0)
    if result.campaign.state is RunState.FINISHED and result.trials < wanted:
        words += f"\n{result.trials} of {wanted:.0f} trials: no tuner took what was left to be worth one"
    if result.unsolved:
        words += f"; without {', '.join(each.layer.workload for each in result.unsolved)}: nothing verified was found"
    return words


def _table(result: CampaignResult) -> tables.Table:
    ordinals = (">times", ">trials", ">fallback µs", ">best µs", ">gain", ">all µs", ">share", ">% of bound")
    table = tables.table("layer", *ordinals, "run")
    total = result.microseconds or 1.0
    for each in result.layers:
        table.add_row(
            each.layer.workload,
            str(each.layer.count),
            str(each.trials),
            _latency(each.fallback),
            _latency(each.best),
            f"{each.gain:.2f}" if each.gain else "-",
            f"{each.microseconds:,.1f}" if each.microseconds else "-",
            f"{100 * each.microseconds / total:.1f}%" if each.microseconds else "-",
            _percent(each),
            short(each.run.uuid) if each.run else "-",
        )
    return table


def _latency(trial: Trial | None) -> str:
    return f"{trial.microseconds:,.1f}" if trial is not None and trial.microseconds else "-"


def _percent(each: LayerResult) -> str:
    if each.run is None or each.best is None or each.best.microseconds is None:
        return "-"
    return f"{each.run.percent_of_bound(each.best.microseconds):.1f}"


def result_values(result: CampaignResult) -> dict[str, Any]:
    """As --json prints it."""
    return {
        "campaign": result.campaign.uuid,
        "network": result.network.name,
        "state": str(result.campaign.state),
        "detail": result.campaign.detail,
        "budget": dict(result.campaign.budget or {}),
        "spent_seconds": result.campaign.spent_seconds,
        "trials": result.trials,
        "microseconds": result.microseconds,
        "fallback_microseconds": result.fallback_microseconds,
        "gain": result.gain,
        "layers": [
            {
                "workload": each.layer.workload,
                "count": each.layer.count,
                "run": each.run.uuid if each.run else None,
                "trials": each.trials,
                "valid": each.valid,
                "best": best_json(each.run, each.best) if each.run else None,
                "fallback": best_json(each.run, each.fallback) if each.run else None,
                "gain": each.gain,
            }
            for each in result.layers
        ],
    }
