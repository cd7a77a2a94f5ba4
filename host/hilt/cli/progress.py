"""A run as it goes: a live panel on a terminal, plain lines elsewhere. Both only show what the engine tells."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hilt.cli.formatting import seconds_text, short
from hilt.cli.live_view import LiveView, add_boards, facts_table, print_text
from hilt.engine.events import BoardChanged, Event, Logged, RunProgress, StateChanged
from hilt.store import Run, RunState

_LINES_A_RUN = 10
"""Plain progress lines in a whole run, beside those for each better configuration."""

QUIET = {"running", "ready"}
"""States that a board goes through all the time."""


class View(Protocol):
    """Shows events of a run; entered before the first."""

    def show(self, event: Event) -> None: ...

    def note(self, words: str) -> None:
        """A line of our own."""

    def __enter__(self) -> View: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def view_of(run: Run, console: Console) -> View:
    return live_view(run, console) if console.is_terminal else PlainRunView(run, console)


def title(run: Run) -> str:
    return f"{run.workload} on {run.board}, tuner {run.tuner}, seed {run.seed}, run {short(run.uuid)}"


def format_best(progress: RunProgress) -> str:
    if progress.best_microseconds is None:
        return "none verified yet"
    return (
        f"{progress.best_microseconds:,.1f} µs, {progress.best_gops or 0:.1f} GOP/s, "
        f"{progress.best_percent_of_bound or 0:.1f}% of the roofline bound (trial {progress.best_number})"
    )


def format_pace(progress: RunProgress) -> str:
    share = f" ({100 * progress.valid / progress.trials:.0f}%)" if progress.trials else ""
    words = f"{progress.trials}/{progress.budget} trials, {progress.valid} valid{share}"
    if progress.trials_per_second is not None:
        words += f", {progress.trials_per_second:.1f} trials/s"
    if progress.seconds_left is not None and progress.trials < progress.budget:
        words += f", {seconds_text(progress.seconds_left)} left"
    return words


class PlainRunView:
    """A line for each better configuration, for each tenth of the run, and for whatever happens to the board."""

    def __init__(self, run: Run, console: Console) -> None:
        self._run = run
        self._console = console
        self._best: int | None = None
        self._shown = -1
        self._boards: dict[str, str] = {}

    def __enter__(self) -> PlainRunView:
        self.note(title(self._run))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def note(self, words: str) -> None:
        print_text(self._console, words)

    def show(self, event: Event) -> None:
        if isinstance(event, RunProgress):
            self._progress(event)
        elif isinstance(event, StateChanged) and (event.detail or event.state is not RunState.RUNNING):
            self.note(f"{event.state}: {event.detail}" if event.detail else event.state)
        elif isinstance(event, BoardChanged) and event.state not in QUIET | {self._boards.get(event.board)}:
            self._boards[event.board] = event.state
            self.note(f"board {event.board} {event.state}{': ' if event.detail else ''}{event.detail}")
        elif isinstance(event, Logged):
            self.note(f"{event.level}: {event.text}")

    def _progress(self, progress: RunProgress) -> None:
        tenth = progress.trials * _LINES_A_RUN // progress.budget
        if progress.best_number != self._best or tenth != self._shown:
            self.note(f"{format_pace(progress)}; best {format_best(progress)}")
        self._best, self._shown = progress.best_number, tenth


def live_view(run: Run, console: Console) -> LiveView:
    """Progress, the best, outcomes and boards, below a bar."""

    def draw(progress: RunProgress, state: str, boards: Mapping[str, str]) -> RenderableType:
        counts = ", ".join(f"{outcome} {count}" for outcome, count in sorted(progress.counts.items())) or "none yet"
        facts = facts_table()
        facts.add_row("progress", Text(format_pace(progress)))
        facts.add_row("best", Text(format_best(progress), style="bold"))
        facts.add_row("outcomes", Text(counts))
        add_boards(facts, boards)
        facts.add_row("run", Text(state))
        bar = Table.grid(expand=True)  # a bar alone does not end its line
        bar.add_row(ProgressBar(total=progress.budget, completed=progress.trials))
        return Group(Text(title(run), style="bold", overflow="ellipsis", no_wrap=True), bar, facts)

    boards = dict.fromkeys(run.board.split(","), "not connected yet")
    return LiveView(console, RunProgress(0, run.budget, {}, 0, 0.0), boards, draw)
