"""The keys of the screen that is shown."""

from __future__ import annotations

from textual.screen import Screen
from textual.widgets import Footer


class KeyBar(Footer):
    """Textual's footer, made anew only for other keys.

    Textual asks for that several times a change of screen or focus, and it is a widget a key.
    """

    def __init__(self) -> None:
        super().__init__(compact=True)
        self._keys: list[tuple[str, str, bool]] = []

    def bindings_changed(self, screen: Screen[object]) -> None:
        if not self.app.app_focus or screen is not self.screen:
            return
        active = screen.active_bindings.values()
        keys = [(each.binding.key, each.binding.description, each.enabled) for each in active if each.binding.show]
        if keys != self._keys:
            self._keys = keys
            super().bindings_changed(screen)
