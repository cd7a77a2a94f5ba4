"""Text that is set many times a second: the screen is laid out anew only where its height may change."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static


class TextPanel(Static):
    """A Static for lines that mostly keep their length."""

    _shown: Content | None = None

    def put(self, content: Content) -> None:
        """Show a text; the same text as before costs nothing."""
        before, self._shown = self._shown, content
        if before is not None and before.is_same(content):
            return
        self.update(content, layout=before is None or self._height(before) != self._height(content))

    def _height(self, content: Content) -> tuple[int, ...]:
        """Return the number of lines that each line takes; a broken line counts its length."""
        width = max(self.content_size.width, 1)
        return tuple(1 if len(line) <= width else len(line) for line in content.plain.splitlines())
