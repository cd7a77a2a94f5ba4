"""Trials by outcome."""

from __future__ import annotations

from textual.content import Content

from hilt.trial import Outcome
from hilt.tui import formatting
from hilt.tui.run_view import RunView
from hilt.tui.widgets.text_panel import TextPanel


class OutcomesPanel(TextPanel):
    """`ok 12 (40%)   rejected 18 (60%)`: those that occurred, in the order of the outcomes' definition."""

    BORDER_TITLE = "outcomes"

    def show(self, view: RunView) -> None:
        counts = view.progress.counts
        total = sum(counts.values())
        parts = [
            # Spaces within a count do not break over lines.
            f"{outcome} {counts[outcome]} ({formatting.share(counts[outcome], total)})".replace(
                " ", "\N{NO-BREAK SPACE}"
            )
            for outcome in Outcome
            if counts.get(outcome)
        ]
        self.put(Content("  ".join(parts) or "no trials yet"))
