"""The trials, newest last, a page at a time: as quick with 100,000 as with ten."""

from __future__ import annotations

import json
from collections.abc import Sequence

from textual.widgets import DataTable

from hilt.tui import words
from hilt.tui.run_view import PAGE_TRIALS, RunView, TrialFacts

_MOST_ROWS = 2 * PAGE_TRIALS
_LATENCY_WIDTH = 9


class TrialsTable(DataTable[str]):
    """While the newest page is shown, new trials are added below, and the cursor stays with them if it was last."""

    def __init__(self) -> None:
        super().__init__(cursor_type="row", zebra_stripes=True)
        self._rows: dict[int, TrialFacts] = {}
        self._newest_page = True
        self._total = 0

    def on_mount(self) -> None:
        # Widths are given, so that a page need not be measured.
        self.add_column("trial", width=6)
        self.add_column("µs".rjust(_LATENCY_WIDTH), width=_LATENCY_WIDTH)
        self.add_column("outcome", width=12)
        self.add_column("reason", width=16)
        self.add_column("configuration", width=64)

    def show(self, view: RunView) -> None:
        """The titles only; rows come by `show_page` and `add`."""
        self._total = view.progress.trials
        self.border_title = f"trials, of a space of {view.run.space_size:,}"
        self._describe()

    def show_page(self, trials: Sequence[TrialFacts], newest: bool) -> None:
        """Replaces all rows; the cursor goes to the last."""
        self._newest_page = newest
        self.clear()
        self._rows = {}
        for trial in trials:
            self._append(trial)
        self.move_cursor(row=self.row_count - 1)
        self._describe()

    def add(self, trials: Sequence[TrialFacts]) -> None:
        """New trials. Nothing on an older page; there the title still counts them."""
        new = [trial for trial in trials if trial.number not in self._rows]
        if not self._newest_page or not new:
            return
        following = self.cursor_row >= self.row_count - 1
        if following and self.row_count + len(new) > _MOST_ROWS:
            self.show_page([*self._rows.values(), *new][-PAGE_TRIALS:], newest=True)
            return
        for trial in new[-PAGE_TRIALS:]:
            self._append(trial)
        if following:
            self.move_cursor(row=self.row_count - 1)
        self._describe()

    @property
    def first_number(self) -> int | None:
        """Number of the first trial on the page: an older page ends before it."""
        return min(self._rows, default=None)

    @property
    def last_number(self) -> int | None:
        return max(self._rows, default=None)

    @property
    def newest_page(self) -> bool:
        return self._newest_page

    def selected(self) -> str | None:
        """The trial under the cursor as one JSON object."""
        if not self.row_count:
            return None
        trial = list(self._rows.values())[self.cursor_row]
        names = ("number", "configuration", "knobs", "outcome", "reason", "cycles", "microseconds", "verified")
        return json.dumps({name: getattr(trial, name) for name in names} | {"knobs": dict(trial.knobs)})

    def _append(self, trial: TrialFacts) -> None:
        self._rows[trial.number] = trial
        latency = words.NONE if trial.microseconds is None else f"{trial.microseconds:,.1f}"
        self.add_row(
            str(trial.number),
            latency.rjust(_LATENCY_WIDTH),
            str(trial.outcome),
            trial.reason,
            words.knobs(trial.knobs),
        )

    def _describe(self) -> None:
        if not self._rows:
            self.border_subtitle = "none yet"
            return
        span = f"{self.first_number} to {self.last_number}, {self._total} recorded"
        self.border_subtitle = span if self._newest_page else f"older page: {span}; ] goes on"
