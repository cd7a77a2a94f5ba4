"""The keys of the screen that is shown."""

from __future__ import annotations

from rich.cells import cell_len
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

_LEFT_OUT = ("toggle_theme", "note", "archive", "order", "tags", "export", "new_run")
"""Actions whose keys a narrow bar leaves out, the first of them first; Help lists them always."""


class KeyBar(Footer):
    """Textual's footer, made anew only for other keys.

    Textual asks for that several times a change of screen or focus, and each key is a widget. Help and Detach have
    room in 80 cells on every screen.
    """

    def __init__(self) -> None:
        super().__init__(compact=True)
        self._keys: list[tuple[str, str, bool]] = []

    def bindings_changed(self, screen: Screen[object]) -> None:
        if not self.app.app_focus or screen is not self.screen:
            return
        active = screen.active_bindings.values()
        keys = [(key.binding.key, key.binding.description, key.enabled) for key in active if key.binding.show]
        if keys != self._keys:
            self._keys = keys
            super().bindings_changed(screen)

    def on_resize(self, event: Resize) -> None:
        self._fit()

    async def recompose(self) -> None:
        await super().recompose()
        self._fit()

    def _fit(self) -> None:
        """Show every key, or leave out as many of _LEFT_OUT as the width asks for."""
        keys = list(self.query(FooterKey).exclude(".-command-palette"))
        needed = sum(map(_width, keys)) - 1
        left_out = set()
        for action in _LEFT_OUT:
            if needed <= self.size.width:
                break
            left_out.add(action)
            needed -= sum(_width(key) for key in keys if key.action == action)
        for key in keys:
            key.display = key.action not in left_out


def _width(key: FooterKey) -> int:
    """Return the cells of a key, its description and the space after it."""
    return cell_len(key.key_display) + 1 + cell_len(key.description) + 1
