"""A run or a campaign as it goes: a live panel on a terminal, plain lines elsewhere. Both show the engine's events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hilt.campaign.budget import Budget
from hilt.cli.formatting import short
from hilt.cli.live_view import LiveView, add_boards, facts_table
from hilt.cli.prose import print_text
from hilt.engine.durations import seconds_text
from hilt.engine.events import BoardChanged, Event, Logged, NetworkUpdated, RunProgress, StateChanged
from hilt.measure import DATASET_PREFIX
from hilt.network.latency import scaled
from hilt.store import Campaign, Run, RunState
from hilt.trial import Outcome

_LINES_A_RUN = 10
"""Plain progress lines in a whole run, beside those for each better configuration."""
_LINES_A_CAMPAIGN = 20
_QUIET = {"running", "ready"}
"""Board states that pass with every group of trials."""


class View(Protocol):
    """Shows events of a run or a campaign; entered before the first."""

    def show(self, event: Event) -> None: ...

    def note(self, words: str) -> None:
        """Print a line of the command itself."""

    def __enter__(self) -> View: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def run_view(run: Run, console: Console) -> View:
    """Return the view of a run that fits the console."""
    if console.is_terminal:
        return live_run_view(run, console)

    def milestone(progress: RunProgress) -> object:
        return progress.best_number, progress.trials * _LINES_A_RUN // progress.budget

    recorded = _is_recorded(run)

    def line(progress: RunProgress) -> str:
        return f"{format_pace(progress, recorded)}; best {format_best(progress, recorded)}"

    return PlainView(console, run_title(run), milestone, line)


def campaign_view(campaign: Campaign, console: Console) -> View:
    """Return the view of a campaign that fits the console."""
    budget = Budget.from_dict(campaign.budget)
    if console.is_terminal:
        return live_campaign_view(campaign, console)

    def milestone(progress: RunProgress) -> object:
        return progress.trials * _LINES_A_CAMPAIGN // budget.trials if budget.trials else progress.trials // 50

    return PlainView(
        console, campaign_title(campaign), milestone, lambda progress: campaign_pace(progress, budget), states=False
    )


def run_title(run: Run) -> str:
    return f"{_run_words(run)}, run {short(run.uuid)}"


def campaign_title(campaign: Campaign) -> str:
    return f"{_campaign_words(campaign)}, campaign {short(campaign.uuid)}"


def _run_words(run: Run) -> str:
    return f"{run.workload} on {run.board}, tuner {run.tuner}, seed {run.seed}"


def _campaign_words(campaign: Campaign) -> str:
    settings, budget = campaign.settings, Budget.from_dict(campaign.budget)
    return f"{campaign.name} on {settings['board']}, tuner {settings['tuner']}, budget {budget}"


def _is_recorded(run: Run) -> bool:
    """Return whether a dataset answers, so that nothing is verified."""
    return run.board.startswith(DATASET_PREFIX)


def format_best(progress: RunProgress, recorded: bool = False) -> str:
    if recorded:
        return "on record at the end"
    if progress.best_microseconds is None:
        return "none verified yet"
    return (
        f"{progress.best_microseconds:,.1f} µs, {progress.best_gops or 0:.1f} GOP/s, "
        f"{progress.best_percent_of_bound or 0:.1f}% of the roofline bound (trial {progress.best_number})"
    )


def format_pace(progress: RunProgress, recorded: bool = False) -> str:
    valid = progress.counts.get(Outcome.OK, 0) if recorded else progress.valid
    share = f" ({100 * valid / progress.trials:.0f}%)" if progress.trials else ""
    words = f"{progress.trials}/{progress.budget} trials, {valid} valid{' on record' if recorded else ''}{share}"
    if progress.trials_per_second is not None:
        words += f", {progress.trials_per_second:.1f} trials/s"
    if progress.seconds_left is not None and progress.trials < progress.budget:
        words += f", {seconds_text(progress.seconds_left)} left"
    return words


def campaign_pace(progress: RunProgress, budget: Budget) -> str:
    words = f"{progress.trials}/{budget.trials} trials" if budget.trials else f"{progress.trials} trials"
    words += f", {progress.valid} valid"
    if progress.seconds_left is not None:
        words += f", {seconds_text(progress.seconds_left)} left"
    return words


def format_network(update: NetworkUpdated) -> str:
    """Return the layer's and the network's latency, as in `C4 812.0 µs; network about 68.0 ms (3 of 10 measured)`."""
    return f"{_layer_latency(update)}; network {_network_latency(update)}"


def _layer_latency(update: NetworkUpdated) -> str:
    latency = "not measured yet" if update.layer_microseconds is None else f"{update.layer_microseconds:,.1f} µs"
    return f"{update.layer} {latency}"


def _network_latency(update: NetworkUpdated) -> str:
    gain = "" if update.gain is None else f", {update.gain:.2f} times as fast as the fallback"
    if update.measured_layers == update.layers:
        return f"{scaled(update.microseconds)}{gain}"
    part = f"{update.measured_layers} of {update.layers} layers measured"
    return f"about {scaled(update.microseconds)} ({part}, the others predicted){gain}"


class PlainView:
    """A title, a line of progress at each milestone, and a line for each other event."""

    def __init__(
        self,
        console: Console,
        title: str,
        milestone: Callable[[RunProgress], object],
        line: Callable[[RunProgress], str],
        *,
        states: bool = True,
    ) -> None:
        """Make a view; with `states` it prints the engine's activity while it runs, and other states in any case."""
        self._states = states
        self._network: NetworkUpdated | None = None
        self._console = console
        self._title = title
        self._milestone = milestone
        self._line = line
        self._passed: object = None
        self._boards: dict[str, str] = {}

    def __enter__(self) -> PlainView:
        self.note(self._title)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def note(self, words: str) -> None:
        print_text(self._console, words)

    def show(self, event: Event) -> None:
        if isinstance(event, RunProgress):
            if (milestone := self._milestone(event)) != self._passed:
                network = f"; {format_network(self._network)}" if self._network is not None else ""
                self.note(self._line(event) + network)
            self._passed = milestone
        elif isinstance(event, NetworkUpdated):
            self._network = event
        elif isinstance(event, StateChanged):
            self._state(event)
        elif isinstance(event, BoardChanged) and event.state not in _QUIET | {self._boards.get(event.board)}:
            self._boards[event.board] = event.state
            self.note(f"board {event.board} {event.state}{': ' if event.detail else ''}{event.detail}")
        elif isinstance(event, Logged):
            self.note(f"{event.level}: {event.text}")

    def _state(self, event: StateChanged) -> None:
        if event.state is not RunState.RUNNING or (event.detail and self._states):
            self.note(f"{event.state}: {event.detail}" if event.detail else event.state)


def live_run_view(run: Run, console: Console) -> LiveView:
    """Return a panel with progress, the best, outcomes and boards below a bar."""
    recorded = _is_recorded(run)

    def draw(
        progress: RunProgress, state: str, boards: Mapping[str, str], network: NetworkUpdated | None
    ) -> RenderableType:
        counts = ", ".join(f"{outcome} {count}" for outcome, count in sorted(progress.counts.items())) or "none yet"
        facts = facts_table()
        facts.add_row("progress", Text(format_pace(progress, recorded)))
        facts.add_row("best", Text(format_best(progress, recorded), style="bold"))
        facts.add_row("outcomes", Text(counts))
        add_boards(facts, boards)
        facts.add_row("run", Text(state))
        bar = Table.grid(expand=True)  # a bar alone does not end its line
        bar.add_row(ProgressBar(total=progress.budget, completed=progress.trials))
        title = f"run {short(run.uuid)}: {_run_words(run)}"  # the id comes first, so it is never cut
        return Group(Text(title, style="bold", overflow="ellipsis", no_wrap=True), bar, facts)

    boards = dict.fromkeys(run.board.split(","), "not connected yet")
    return LiveView(console, RunProgress(0, run.budget, {}, 0, 0.0), boards, draw)


def live_campaign_view(campaign: Campaign, console: Console) -> LiveView:
    """Return a panel with progress, the current layer and boards."""
    budget = Budget.from_dict(campaign.budget)

    def draw(
        progress: RunProgress, state: str, boards: Mapping[str, str], network: NetworkUpdated | None
    ) -> RenderableType:
        facts = facts_table()
        title = f"{short(campaign.uuid)}: {_campaign_words(campaign)}"
        facts.add_row("campaign", Text(title, style="bold"))
        facts.add_row("progress", Text(campaign_pace(progress, budget)))
        if network is not None:
            facts.add_row("network", Text(_network_latency(network), style="bold"))
            facts.add_row("layer", Text(_layer_latency(network)))
        facts.add_row("now", Text(state))
        add_boards(facts, boards)
        return facts

    return LiveView(console, RunProgress(0, budget.trials or 0, {}, 0, 0.0), {}, draw)
