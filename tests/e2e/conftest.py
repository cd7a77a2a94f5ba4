"""HILT_HOMEs for tests, in which virtual boards are switched off afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hilt.virtual.directory import BoardDirectory
from hilt.virtual.supervisor_control import SupervisorControl


@pytest.fixture
def hilt_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home without boards."""
    home = tmp_path / "hilt-home"
    monkeypatch.setenv("HILT_HOME", str(home))
    yield home
    stop_boards(home)


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home that the tests of a file share, so that its boards stay up between them."""
    home = tmp_path_factory.mktemp("shared") / "hilt-home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HILT_HOME", str(home))
        yield home
        stop_boards(home)


def stop_boards(home: Path) -> None:
    for path in (home / "virtual").glob("*/"):
        supervisor = SupervisorControl.find(BoardDirectory(path.name))
        if supervisor is not None:
            supervisor.stop()
