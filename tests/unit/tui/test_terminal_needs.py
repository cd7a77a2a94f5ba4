"""A terminal that cannot show the interface is refused in a line, before anything is drawn."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hilt import tui
from hilt.engine.errors import SettingsError


def stream(terminal: bool = True, encoding: str = "utf-8") -> Any:
    return SimpleNamespace(isatty=lambda: terminal, encoding=encoding)


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEXTUAL_DRIVER", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def check(monkeypatch: pytest.MonkeyPatch, keys: Any, screen: Any) -> None:
    monkeypatch.setattr(tui, "sys", SimpleNamespace(__stdin__=keys, __stderr__=screen))
    tui.check_terminal()


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8"])
def test_a_terminal_of_utf_8_is_well(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    check(monkeypatch, stream(), stream(encoding=encoding))


@pytest.mark.parametrize(
    ("keys", "screen"),
    [(None, stream()), (stream(), None), (stream(False), stream()), (stream(), stream(False))],
    ids=["no-input", "no-error", "input", "error"],
)
def test_keys_and_screen_are_terminals(monkeypatch: pytest.MonkeyPatch, keys: Any, screen: Any) -> None:
    with pytest.raises(SettingsError, match="needs a terminal for its keys and its screen; `hilt show RUN` prints"):
        check(monkeypatch, keys, screen)
    monkeypatch.setenv("TEXTUAL_DRIVER", "textual_serve")
    check(monkeypatch, keys, screen)


def test_a_dumb_terminal_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with pytest.raises(SettingsError, match="TERM is dumb"):
        check(monkeypatch, stream(), stream())


def test_an_encoding_without_its_lines_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="the locale's encoding is latin-1, .* set LC_ALL=C.UTF-8"):
        check(monkeypatch, stream(), stream(encoding="latin-1"))


class Application:
    """The application: it ends at once, with a failure or a code."""

    failure: Exception | None = None
    return_code = 0

    def __init__(self, did: list[Any], *given: Any) -> None:
        self._did = did
        did.append(given[2])

    def run(self) -> None:
        self._did.append("run")


@pytest.fixture
def did(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> list[Any]:
    noted: list[Any] = []
    monkeypatch.setattr(tui, "gc", SimpleNamespace(disable=lambda: noted.append("gc")))
    monkeypatch.setattr(tui, "check_terminal", lambda: noted.append("check"))
    monkeypatch.setattr("hilt.tui.app.HiltApp", lambda *given: Application(noted, *given))
    monkeypatch.setattr("hilt.store.identifiers.run_or_campaign", lambda store, name: f"record of {name}")
    return noted


@pytest.mark.parametrize(("identifier", "record"), [(None, None), ("last", "record of last")])
def test_it_shows_what_was_asked_for(did: list[Any], tmp_path: Any, identifier: str | None, record: str | None) -> None:
    tui.run(tmp_path, identifier, lambda: did.append("drawing"))
    assert did == ["gc", "check", record, "drawing", "run"]


def test_it_says_when_it_broke_down(did: list[Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Application, "return_code", 1)
    with pytest.raises(RuntimeError, match="broke down, as told above; runs go on"):
        tui.run(tmp_path)
    monkeypatch.setattr(Application, "failure", KeyError("gone"))
    with pytest.raises(KeyError):
        tui.run(tmp_path)
