"""The wait for the end of the boot, with a systemctl that gives scripted answers."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from hilt.virtual.board_model import board_model
from hilt_board import boot

_SCRIPT = """#!/bin/sh
echo "$@" >> {log}
state=$(head -n 1 {states})
sed -i 1d {states}
echo "$state"
test "$state" = running
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the log of the requests to systemctl, one a line; it answers with the lines of `states`."""
    log, script = tmp_path / "log", tmp_path / "systemctl"
    log.touch()
    script.write_text(_SCRIPT.format(log=log, states=tmp_path / "states"))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("HILT_VERILATED", raising=False)
    monkeypatch.setattr(boot, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(boot, "_uptime", lambda: 20.0)
    return log


def wait(tmp_path: Path, *states: str) -> None:
    (tmp_path / "states").write_text("".join(f"{state}\n" for state in states))
    asyncio.run(boot.wait_for_boot(tmp_path))


@pytest.mark.parametrize("last", ["running", "degraded", "unknown"])
def test_nothing_is_loaded_while_the_board_boots(asked: Path, tmp_path: Path, last: str) -> None:
    wait(tmp_path, "initializing", "starting", "starting", last, "running")
    assert asked.read_text().splitlines() == ["is-system-running"] * 4


def test_a_boot_that_never_ends_is_not_waited_for_for_ever(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(boot, "_uptime", lambda: 151.0)
    wait(tmp_path, *["starting"] * 9)
    assert "still booting" in caplog.text
    assert asked.read_text().splitlines() == ["is-system-running"]  # an agent that is started later waits for nothing


def test_a_systemctl_that_hangs_is_ended(asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "systemctl").write_text("#!/bin/sh\nexec sleep 1000\n")
    monkeypatch.setattr(boot, "_ANSWER_SECONDS", 0.2)
    uptimes = iter([20.0, 151.0])
    monkeypatch.setattr(boot, "_uptime", lambda: next(uptimes))
    started: list[asyncio.subprocess.Process] = []
    start = asyncio.create_subprocess_exec

    async def noted(*words: str, **more: Any) -> asyncio.subprocess.Process:
        started.append(await start(*words, **more))
        return started[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    asyncio.run(boot.wait_for_boot(tmp_path))
    assert [each.returncode for each in started] == [-signal.SIGKILL] * 2


def settings_file(tmp_path: Path, name: str) -> str:
    path = tmp_path / "board_model.json"
    path.write_text(json.dumps(board_model(name).device_settings()))
    return str(path)


def test_a_board_without_systemd_and_a_virtual_one_are_not_asked(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(boot.wait_for_boot(tmp_path / "none"))
    monkeypatch.setenv("HILT_VERILATED", settings_file(tmp_path, "pynq"))
    wait(tmp_path, "starting")
    assert asked.read_text() == ""


def test_an_emulated_board_boots_a_system_of_its_own(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HILT_VERILATED", settings_file(tmp_path, "pynq_linux"))
    wait(tmp_path, "starting", "running")
    assert asked.read_text().splitlines() == ["is-system-running"] * 2


def test_where_systemctl_cannot_be_run_nothing_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("HILT_VERILATED", raising=False)
    asyncio.run(boot.wait_for_boot(tmp_path))
