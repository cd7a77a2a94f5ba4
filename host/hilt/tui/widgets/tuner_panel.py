"""The tuner's confidence, and the accuracy of its predictions."""

from __future__ import annotations

from textual.content import Content

from hilt.tui import formatting
from hilt.tui.run_view import RunView
from hilt.tui.watched_run import WatchedRun
from hilt.tui.widgets.text_panel import TextPanel


class TunerPanel(TextPanel):
    """Its confidence, the share of valid trials lately, the last better one, how well the twin orders the trials."""

    BORDER_TITLE = "tuner and model"
    agreement: float | None = None
    """Share of pairs of the latest valid trials that the twin orders as the board; None if it is not known."""

    def show(self, view: RunView, watch: WatchedRun) -> None:
        lines = [_confidence(view, watch), _lately(view)]
        if self.agreement is not None:
            lines.append(f"twin orders {100 * self.agreement:.0f}% of pairs of trials as the board does")
        self.put(Content("\n".join(lines)))


def _confidence(view: RunView, watch: WatchedRun) -> str:
    told = watch.told
    if told is None or told.confidence is None:
        return f"{view.run.tuner}: has told no confidence"
    return f"{100 * told.confidence:.1f}% sure that nothing is 1% better, after {told.trials} trials"


def _lately(view: RunView) -> str:
    if not view.recent:
        return "no trials yet"
    share = formatting.share(sum(view.recent), len(view.recent))
    lately = f"{share} of the last {len(view.recent)} valid"
    if not view.curve:
        return lately
    # Of trials that are answered out of their order, one may have a number above those that are recorded.
    return f"{lately}; last better one {max(view.progress.trials - 1 - view.curve[-1][0], 0)} trials ago"
