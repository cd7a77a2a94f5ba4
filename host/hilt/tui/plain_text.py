"""What a board, a log or a file says is text on the screen, and never a command to the terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


class PlainText(LineFilter):
    """Leaves control characters out of what is drawn. They take no cell, so that nothing moves."""

    def apply(self, segments: Sequence[Segment], background: Color) -> list[Segment]:
        return [
            Segment(_CONTROL.sub("", text), style, control) if _CONTROL.search(text) else segment
            for segment in segments
            for text, style, control in (segment,)
        ]
