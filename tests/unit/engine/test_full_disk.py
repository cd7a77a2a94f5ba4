"""An engine whose log is on a full disk still says why it ends."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hilt.campaign.process import main as campaign_main
from hilt.engine.process import main as engine_main


@pytest.mark.parametrize("main", [engine_main, campaign_main])
def test_a_log_that_cannot_be_written_silences_no_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, main: Callable[[list[str]], int]
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    reading, writing = os.pipe()
    full = os.fdopen(os.open("/dev/full", os.O_WRONLY), "w", buffering=1)
    monkeypatch.setattr(sys, "stderr", full)
    assert main(["e" * 32, "--home", str(tmp_path), "--ready-fd", str(writing)]) == 1
    with os.fdopen(reading) as ready:
        said = json.loads(ready.readline())
    assert said["failure"] == "input" and "eeeeeeee" in said["message"]
