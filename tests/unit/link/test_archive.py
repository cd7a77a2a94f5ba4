"""The agent's archives: a real board's holds nothing that only a virtual board uses."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from typing import cast

import pytest

from hilt.link.agent import archive_for, build_archive
from hilt.link.deadline import Deadline
from hilt.link.session import Completed, SshSession

OF_A_REAL_BOARD = {
    "__main__.py",
    *(
        f"hilt_board/{name}.py"
        for name in (
            *("__init__", "__main__", "bitfile", "blobs", "board", "boot", "commands", "daemon", "driver"),
            *("execution", "extension", "home", "inspection", "journal", "leftovers", "log_lines"),
            *("memory", "memory_limit"),
            *("networks", "service", "session", "unix_socket", "worker", "worker_process"),
            *(f"protocol/{name}" for name in ("__init__", "fields", "frames", "messages", "trials")),
        )
    ),
}
ONLY_OF_VIRTUAL_BOARDS = {
    f"hilt_virtual_board/{name}.py"
    for name in (
        *("__init__", "board_model", "chaos", "chaos_clock", "chaos_daemon", "contiguous", "extension", "machine"),
        *("model", "public_time", "verilated"),
    )
}


def files(virtual: bool) -> set[str]:
    names = zipfile.ZipFile(io.BytesIO(build_archive(virtual).data)).namelist()
    assert len(names) == len(set(names))
    return {name for name in names if not name.startswith("hilt_runtime/")}


def test_the_content_of_a_real_boards_archive() -> None:
    assert files(virtual=False) == OF_A_REAL_BOARD


def test_a_virtual_boards_archive_has_its_device_and_its_faults_too() -> None:
    assert files(virtual=True) == OF_A_REAL_BOARD | ONLY_OF_VIRTUAL_BOARDS


class Session:
    """A session on a board with these environment variables."""

    def __init__(self, *variables: str) -> None:
        self._variables = variables

    def execute(self, words: Sequence[str], deadline: Deadline) -> Completed:
        program, name = words
        if program == "uname":
            return Completed(0, b"x86_64\n", b"")
        assert program == "printenv"
        return Completed(0 if name in self._variables else 1, b"", b"")


@pytest.mark.parametrize(("variables", "virtual"), [((), False), (("HILT_VERILATED",), True)])
def test_the_board_says_whether_it_is_virtual(variables: tuple[str, ...], virtual: bool) -> None:
    session = cast(SshSession, Session(*variables))
    assert archive_for(session, Deadline(1)) is build_archive(virtual, "x86_64")
