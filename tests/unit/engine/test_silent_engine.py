"""An engine whose process is stopped: its socket takes connections, and nobody answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.engine import client
from hilt.engine.client import EngineClient, SilentEngineError
from hilt.engine.run_files import RunFiles

UUID = "3f2a91bc-0000-4000-8000-000000000001"


def test_who_attaches_again_and_again_never_waits_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that nobody accepts stay with the listener, which takes so many and then makes others wait."""
    monkeypatch.setattr(client, "_HELLO_SECONDS", 0.01)
    said = set()
    with RunFiles(tmp_path, UUID).listen():
        for _ in range(40):
            with pytest.raises(SilentEngineError) as error:
                EngineClient.attach(tmp_path, UUID)
            said.add(str(error.value))
    assert said == {
        "the engine does not answer; is its process stopped?",
        "the engine takes no more connections; is its process stopped?",
    }
