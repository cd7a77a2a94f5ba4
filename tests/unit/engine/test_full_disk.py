"""An engine whose log is on a full disk still says why it ends."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from hilt.campaign.job import open_campaign
from hilt.engine.process import OpenJob, main, open_run


@pytest.mark.parametrize("open_job", [open_run, open_campaign])
def test_a_log_that_cannot_be_written_silences_no_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_job: OpenJob
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    reading, writing = os.pipe()
    full = os.fdopen(os.open("/dev/full", os.O_WRONLY), "w", buffering=1)
    monkeypatch.setattr(sys, "stderr", full)
    assert main(["e" * 32, "--home", str(tmp_path), "--ready-fd", str(writing)], open_job=open_job) == 1
    with os.fdopen(reading) as ready:
        said = json.loads(ready.readline())
    assert said["failure"] == "input" and "eeeeeeee" in said["message"]
