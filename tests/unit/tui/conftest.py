"""What all tests of the terminal UI share."""

from __future__ import annotations

from typing import Any

import pytest
from textual.app import App


@pytest.fixture(autouse=True)
def notices_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep each notice on the screen: on a busy machine it goes before a test has looked."""
    notify = App.notify
    monkeypatch.setattr(App, "notify", lambda app, message, **how: notify(app, message, **_lasting(how)))


def _lasting(how: dict[str, Any]) -> dict[str, Any]:
    return how | {"timeout": 3600.0}
