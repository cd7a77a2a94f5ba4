"""Messages from a run's feed to its screen, and from a screen to the app."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from hilt.engine.events import Event
from hilt.tui.run_view import RunView


@dataclass
class RunLoaded(Message, bubble=False):
    """All that the store holds of the run was read anew; `view.link` says whether an engine is attached."""

    view: RunView


@dataclass
class EventsArrived(Message, bubble=False):
    """Events of a fraction of a second, in order."""

    events: tuple[Event, ...]


@dataclass
class EngineGone(Message, bubble=False):
    """The engine closed the connection; without a `finished` before, it died."""


@dataclass
class RunChosen(Message):
    """A run of the list was chosen to be shown."""

    uuid: str


@dataclass
class CampaignChosen(Message):
    """A campaign was chosen; `show` asks for its screen too."""

    uuid: str
    show: bool = False


@dataclass
class ConfigurationChosen(Message):
    """A configuration of the run's space was chosen to be looked at in depth."""

    index: int
