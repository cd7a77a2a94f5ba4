"""Text of boards, logs and files without control characters, so that it is never a command to the terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


class PlainText(LineFilter):
    """A filter that leaves control characters out of the drawing. They take no cell, so nothing moves."""

    def apply(self, segments: Sequence[Segment], background: Color) -> list[Segment]:
        return [
            Segment(_CONTROL.sub("", text), style, control) if _CONTROL.search(text) else segment
            for segment in segments
            for text, style, control in (segment,)
        ]
