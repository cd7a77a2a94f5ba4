"""The state of each board, as the engine last told."""

from __future__ import annotations

from textual.content import Content

from hilt.tui import formatting
from hilt.tui.run_view import Link, RunView
from hilt.tui.widgets.text_panel import TextPanel


class BoardPanel(TextPanel):
    """A line a board: name, state, since when, and why."""

    BORDER_TITLE = "board"

    def show(self, view: RunView) -> None:
        if not view.boards:
            self.put(Content(f"{view.run.board}: {view.unheard}"))
            return
        past = "" if view.link is Link.ATTACHED else "last heard: "
        lines = [
            Content.assemble(
                f"{board.board}: {past}", (board.state, "bold"), f" since {formatting.clock(board.at)} {board.detail}"
            )
            for board in view.boards.values()
        ]
        self.put(Content("\n").join(lines))
