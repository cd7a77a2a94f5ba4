"""Commands to a run whose engine is ending."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from hilt.cli.exit_codes import Exit
from hilt.cli.main import run as hilt
from hilt.engine import launch
from hilt.engine.run_files import RunFiles
from tests.unit.report.campaign_store import make


@pytest.mark.parametrize("command", ["pause", "stop"])
def test_an_engine_that_still_holds_its_lock_and_listens_no_more_is_not_running(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    uuid = make(tmp_path)[0].uuid
    with ExitStack() as engine:
        engine.enter_context(RunFiles(tmp_path, uuid).locked())
        monkeypatch.setattr(launch, "sleep", lambda seconds: engine.close())
        assert hilt([command, uuid]) == Exit.BAD_INPUT
    assert f"campaign {uuid[:8]} is not running; `hilt show {uuid[:8]}` shows its state" in capsys.readouterr().err
