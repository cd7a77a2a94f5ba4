"""HILT_HOME is its owner's alone, whoever made it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hilt import paths


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "hilt"
    monkeypatch.setenv("HILT_HOME", str(path))
    return path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_that_was_open_to_others_is_closed_with_all_in_it(home: Path) -> None:
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    for name in ("boards.toml", "hilt.db"):
        (home / name).touch()
        (home / name).chmod(0o644)
    (home / "runs").mkdir()
    (home / "runs").chmod(0o777)
    assert paths.home() == home
    assert [mode(home / name) for name in ("", "boards.toml", "hilt.db", "runs")] == [0o700, 0o600, 0o600, 0o700]


def test_a_folder_is_made_private_under_any_umask(home: Path) -> None:
    before = os.umask(0)
    try:
        paths.home()
    finally:
        os.umask(before)
    assert mode(home) == 0o700


def test_the_target_of_a_link_keeps_its_mode(home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.touch()
    elsewhere.chmod(0o644)
    home.mkdir()
    home.chmod(0o755)
    (home / "known_hosts").symlink_to(elsewhere)
    paths.home()
    assert mode(home) == 0o700 and mode(elsewhere) == 0o644


def test_a_folder_of_all_users_is_refused_and_stays_as_it_is(home: Path) -> None:
    home.mkdir()
    home.chmod(0o1777)
    with pytest.raises(paths.UnusableFolderError, match="shared by all users; set HILT_HOME to a folder of your own"):
        paths.home()
    assert mode(home) == 0o1777


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("rights", [0o700, 0o755, 0o777])
def test_a_folder_of_another_user_is_refused_and_stays_as_it_is(home: Path, rights: int) -> None:
    home.mkdir()
    home.chmod(rights)
    os.chown(home, 65534, 65534)
    with pytest.raises(paths.UnusableFolderError, match="belongs to user 65534, .*; set HILT_HOME to a folder of your"):
        paths.home()
    assert mode(home) == rights and not list(home.iterdir())


def test_the_root_folder_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_HOME", "/")
    with pytest.raises(paths.UnusableFolderError):
        paths.home()
