"""hilt's folders: its sources, its state (HILT_HOME) and the files it can build again (HILT_CACHE)."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

import platformdirs


class UnusableFolderError(Exception):
    """HILT_HOME or HILT_CACHE cannot be made."""


_PACKAGE = Path(__file__).resolve().parent
_CLONE = _PACKAGE.parents[1]


def _asset(name: str) -> Path:
    in_clone = _CLONE / name
    return in_clone if (in_clone / "README.md").is_file() else _PACKAGE / "_data" / name


def hls_directory() -> Path:
    """Return the accelerator's sources: hls/ of the clone, or the copy in an installed wheel."""
    return _asset("hls")


def bitstreams_directory() -> Path:
    """Return the folder of the manifest and the VTA parameter files."""
    return _asset("bitstreams")


def board_package_directory() -> Path:
    """Return the `hilt_board` package that is shipped to boards."""
    in_clone = _CLONE / "board" / "hilt_board"
    return in_clone if in_clone.is_dir() else _PACKAGE.parent / "hilt_board"


def home() -> Path:
    """Return the folder of the state that must not be lost: the database, keys, known hosts, virtual boards.

    It is its owner's alone: made with mode 0700, and tightened to that, with its entries, if it was there before.

    Raises:
        UnusableFolderError: It cannot be made, is a folder that all users share, or belongs to another user.
    """
    path = _made("HILT_HOME", platformdirs.user_data_dir("hilt"))
    _tighten(path)
    return path


def cache() -> Path:
    """Return the folder of rebuildable files: Verilated models, agent archives. Raises UnusableFolderError."""
    return _made("HILT_CACHE", platformdirs.user_cache_dir("hilt"))


def _made(variable: str, usual: str) -> Path:
    path = Path(os.environ.get(variable) or usual)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UnusableFolderError(f"cannot make {path} ({error.strerror}); set {variable} to another folder") from error
    return path


_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def _tighten(path: Path) -> None:
    """Take the rights of group and others from the folder and from the files and folders in it that are ours.

    Folders below are left as they are: nobody else reaches them.
    """
    status = path.stat()
    if status.st_mode & stat.S_ISVTX or path.resolve() == Path(path.anchor or "/").resolve():
        raise UnusableFolderError(f"{path} is shared by all users; set HILT_HOME to a folder of your own")
    if status.st_uid != os.geteuid():
        raise UnusableFolderError(
            f"{path} belongs to user {status.st_uid}, who could change what hilt runs; set HILT_HOME to a folder of "
            "your own"
        )
    if not status.st_mode & _OTHERS:
        return
    with contextlib.suppress(OSError):  # a file system without rights, or one that is read-only
        path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)
    if path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UnusableFolderError(f"others may write to {path}, and its rights cannot be changed; set HILT_HOME anew")
    with contextlib.suppress(OSError):
        for entry in path.iterdir():
            mode = entry.lstat().st_mode
            if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
                entry.chmod(stat.S_IMODE(mode) & ~_OTHERS)


def board_python() -> Path:
    """Return the interpreter of the virtual boards (pynq with numpy<2).

    HILT_BOARD_PYTHON, else a clone's own as `make setup` makes it, else the one that hilt.virtual.board_environment
    makes in HILT_CACHE.
    """
    if named := os.environ.get("HILT_BOARD_PYTHON"):
        return Path(named)
    in_clone = _CLONE / "build" / "board-env" / "bin" / "python"
    return in_clone if in_clone.exists() else cached_board_python()


def cached_board_python() -> Path:
    """Return the path of the interpreter that hilt makes by itself. It need not exist yet."""
    return cache() / "board-env" / "bin" / "python"
