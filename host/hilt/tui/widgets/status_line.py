"""The top line: which run, on which board, and how it is, in words."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from hilt.tui.run_view import RunView


class StatusLine(Static):
    """One line. It says when what is below is no longer live."""

    def show(self, view: RunView) -> None:
        run = view.run
        self.set_class(view.interrupted, "-stale")
        name = f" {view.short_id}  {run.workload} on {run.board}  "
        self.update(Content.assemble((name, "bold"), f"{view.state_words} "), layout=False)
