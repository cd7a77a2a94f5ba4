"""The top line: how the run is, in words, and which one it is."""

from __future__ import annotations

from textual.content import Content

from hilt.tui.run_view import RunView
from hilt.tui.widgets.text_panel import TextPanel


class StatusLine(TextPanel):
    """One line, or more where a reason is long. It says when the view below is no longer live."""

    def show(self, view: RunView) -> None:
        run = view.run
        self.set_class(view.interrupted, "-stale")
        name = f"{view.short_id}  {run.workload} on {run.board}"
        self.put(Content.assemble((f"{view.state_words}  ", "bold"), name))
