"""A HILT_HOME of its own for every test, in which virtual boards are switched off afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hilt.virtual.control import ChassisControl
from hilt.virtual.directory import BoardDirectory


@pytest.fixture
def hilt_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    home = tmp_path / "hilt-home"
    monkeypatch.setenv("HILT_HOME", str(home))
    yield home
    for path in (home / "virtual").glob("*/"):
        chassis = ChassisControl.find(BoardDirectory(path.name))
        if chassis is not None:
            chassis.stop()
