"""The agent's archives: a real board's holds nothing that only a virtual board uses."""

from __future__ import annotations

import io
import zipfile

import pytest

from hilt.link.agent import archive_for, build_archive
from hilt.link.board_registry import Endpoint

OF_A_REAL_BOARD = {
    "__main__.py",
    *(
        f"hilt_board/{name}.py"
        for name in (
            *("__init__", "__main__", "bitfile", "blobs", "board", "boot", "bounds", "commands", "daemon", "driver"),
            *("execution", "extension", "home", "inspection", "journal", "leftovers", "memory", "networks"),
            *("registers", "service", "session", "unix_socket", "worker", "worker_process"),
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


@pytest.mark.parametrize("virtual", [False, True])
def test_the_endpoint_decides(virtual: bool) -> None:
    assert archive_for(Endpoint("desk", "192.168.2.99", virtual=virtual)) is build_archive(virtual)
