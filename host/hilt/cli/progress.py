"""A run as it goes: a live panel on a terminal, plain lines elsewhere. Both only show what the engine tells."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hilt.cli.words import seconds_text, short
from hilt.engine.events import BoardChanged, Event, Finished, Logged, Progress, StateChanged
from hilt.store import Run, RunState

_LINES_A_RUN = 10
"""Plain progress lines in a whole run, beside those for each better configuration."""

_QUIET = {"running", "ready"}
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
    return LiveView(run, console) if console.is_terminal else PlainView(run, console)


def print_words(console: Console, words: str) -> None:
    """Wrapped on a terminal; in a file each line stays one."""
    console.print(words, highlight=False, markup=False, soft_wrap=not console.is_terminal)


def title(run: Run) -> str:
    return f"{run.workload} on {run.board}, tuner {run.tuner}, seed {run.seed}, run {short(run.uuid)}"


def best_words(progress: Progress) -> str:
    if progress.best_microseconds is None:
        return "none verified yet"
    return (
        f"{progress.best_microseconds:,.1f} µs, {progress.best_gops or 0:.1f} GOP/s, "
        f"{progress.best_percent_of_bound or 0:.1f}% of the roofline bound (trial {progress.best_number})"
    )


def pace_words(progress: Progress) -> str:
    share = f" ({100 * progress.valid / progress.trials:.0f}%)" if progress.trials else ""
    words = f"{progress.trials}/{progress.budget} trials, {progress.valid} valid{share}"
    if progress.trials_per_second is not None:
        words += f", {progress.trials_per_second:.1f} trials/s"
    if progress.seconds_left is not None and progress.trials < progress.budget:
        words += f", {seconds_text(progress.seconds_left)} left"
    return words


class PlainView:
    """A line for each better configuration, for each tenth of the run, and for whatever happens to the board."""

    def __init__(self, run: Run, console: Console) -> None:
        self._run = run
        self._console = console
        self._best: int | None = None
        self._shown = -1
        self._boards: dict[str, str] = {}

    def __enter__(self) -> PlainView:
        self.note(title(self._run))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def note(self, words: str) -> None:
        print_words(self._console, words)

    def show(self, event: Event) -> None:
        if isinstance(event, Progress):
            self._progress(event)
        elif isinstance(event, StateChanged) and (event.detail or event.state is not RunState.RUNNING):
            self.note(f"{event.state}: {event.detail}" if event.detail else event.state)
        elif isinstance(event, BoardChanged) and event.state not in _QUIET | {self._boards.get(event.board)}:
            self._boards[event.board] = event.state
            self.note(f"board {event.board} {event.state}{': ' if event.detail else ''}{event.detail}")
        elif isinstance(event, Logged):
            self.note(f"{event.level}: {event.text}")

    def _progress(self, progress: Progress) -> None:
        tenth = progress.trials * _LINES_A_RUN // progress.budget
        if progress.best_number != self._best or tenth != self._shown:
            self.note(f"{pace_words(progress)}; best {best_words(progress)}")
        self._best, self._shown = progress.best_number, tenth


class LiveView:
    """A few lines that are drawn again a few times a second; what is logged scrolls above them."""

    def __init__(self, run: Run, console: Console) -> None:
        self._run = run
        self._progress = Progress(0, run.budget, {}, 0, 0.0)
        self._state = "starting"
        self._boards = dict.fromkeys(run.board.split(","), "not connected yet")
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self._render)

    def __enter__(self) -> LiveView:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def note(self, words: str) -> None:
        print_words(self._live.console, words)

    def show(self, event: Event) -> None:
        if isinstance(event, Progress):
            self._progress = event
        elif isinstance(event, StateChanged):
            self._state = event.detail or event.state
        elif isinstance(event, Finished):
            self._state = event.state
        elif isinstance(event, BoardChanged):
            self._boards[event.board] = f"{event.state}{': ' if event.detail else ''}{event.detail}"
        elif isinstance(event, Logged):
            self.note(f"{event.level}: {event.text}")

    def _render(self) -> RenderableType:
        progress = self._progress
        counts = ", ".join(f"{outcome} {count}" for outcome, count in sorted(progress.counts.items())) or "none yet"
        facts = Table.grid(padding=(0, 2))
        facts.add_column(style="dim", no_wrap=True)
        facts.add_column(overflow="ellipsis", no_wrap=True)
        facts.add_row("progress", Text(pace_words(progress)))
        facts.add_row("best", Text(best_words(progress), style="bold"))
        facts.add_row("outcomes", Text(counts))
        for board, state in self._boards.items():
            facts.add_row("board", Text(f"{board} {state}"))
        facts.add_row("run", Text(self._state))
        bar = Table.grid(expand=True)  # a bar alone does not end its line
        bar.add_row(ProgressBar(total=progress.budget, completed=progress.trials))
        return Group(Text(title(self._run), style="bold", overflow="ellipsis", no_wrap=True), bar, facts)
