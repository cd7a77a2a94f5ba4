"""The help: keys and words, made from the bindings themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

_WORDS = """
ok            the output was right
rejected      by the compiler, with its reason
wrong_answer  the output differed from the reference
timeout       the program did not end in time
crash         the board's worker died of it
bus_error     the memory refused an address
board_lost    the board's fault; the trial is tried again
valid         ok, with every element of the output compared: can be the best
bound         roofline: multiply-accumulates, or bytes over the memory bus

fallback      the schedule of who does not tune: TVM's, or the first that is right
confidence    the tuner's, that nothing is 1% better than the best so far
canary        a small program that says whether the board is sane
step          of the recovery ladder: reconnect, daemon, reboot, power cycle

Numbers, names on top and the mouse change screens; Ctrl+P finds any command.
The engine is a process of its own. Closing this window stops nothing;
`hilt tui` attaches again.
"""


class HelpScreen(ModalScreen[None]):
    """Any of its keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape,question_mark,q", "dismiss", "Close")]

    def __init__(self, bindings: Sequence[Binding]) -> None:
        super().__init__()
        self._shown = bindings

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            keys = [f"{_key(binding):>6}  {binding.tooltip or binding.description}" for binding in self._shown]
            yield Static(Content("\n".join([*keys, _WORDS])))

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).border_title = "keys and words: Escape closes"


def _key(binding: Binding) -> str:
    names = {"left_square_bracket": "[", "right_square_bracket": "]", "question_mark": "?", "slash": "/"}
    key = binding.key.partition(",")[0]
    return names.get(key, key)
