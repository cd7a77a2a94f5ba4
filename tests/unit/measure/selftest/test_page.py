"""The page of a selftest: it shows the results, and no user or place."""

from __future__ import annotations

import getpass
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from hilt.link.board_registry import Endpoint, registered_board, write_memory
from hilt.link.errors import BoardFileError, UnknownBoardError
from hilt.measure import describe_board
from hilt.measure.selftest import Check, page_text

ENDPOINT = Endpoint("attic", "192.168.7.31", 2222, "lovelace", Path.home() / ".ssh" / "id_board")
SECRETS = ("attic", "192.168.7.31", "lovelace", str(Path.home()), "id_board", socket.gethostname(), getpass.getuser())


def page(*checks: Check) -> str:
    manifest = SimpleNamespace(board="pynq", part="7z020clg400")
    description = describe_board("virtual:pynq")
    target = SimpleNamespace(manifest=manifest, description=description, virtual=False, endpoint=lambda: ENDPOINT)
    return page_text(target, checks)  # type: ignore[arg-type]


def test_a_page_has_no_secrets() -> None:
    told = " ".join(SECRETS) + f" {ENDPOINT.user}@{ENDPOINT.host} key {ENDPOINT.key_file}"
    text = page(Check("SSH", True, told), Check("agent", False, f"cannot write {Path.home()}/.hilt"))
    assert "root: yes" in page(Check("root", True, "root: yes"))
    for secret in SECRETS:
        if secret != "root":
            assert secret not in text, secret


def test_a_page_names_the_fault_and_keeps_its_table() -> None:
    text = page(Check("memory", True, "read | latency\n32 cycles"), Check("drift", False, "\x1b[31m5 %"))
    assert "- 1 of 2 checks are well; not: drift" in text
    assert "| memory | well | read / latency 32 cycles |" in text
    assert "| drift | NOT WELL | [31m5 % |" in text


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    path = tmp_path / "boards.toml"
    path.write_text('# mine\n[desk]\nhost = "a"\nbitstream = "pynq"\n\n[lab]\nhost = "b"\nbitstream = "pynq"\n')
    return path


def memory(read: int) -> dict[str, float]:
    return {"read_latency": read, "write_latency": 16, "bytes_per_cycle": 7.25}


def test_the_memory_that_was_found_is_written_to_the_boards_entry_and_replaced(file: Path) -> None:
    write_memory("desk", memory(32))
    write_memory("lab", memory(50))
    write_memory("desk", memory(33))
    assert registered_board("desk").memory == memory(33)
    assert registered_board("lab").memory == memory(50)
    text = file.read_text()
    assert text.startswith("# mine\n[desk]\n") and text.count("[desk.memory]") == 1


def test_a_board_that_there_is_not_gets_no_memory(file: Path) -> None:
    before = file.read_text()
    with pytest.raises(UnknownBoardError):
        write_memory("attic", memory(32))
    assert file.read_text() == before


@pytest.mark.parametrize(
    "entry",
    [
        "memory = 7",
        "memory = {read_latency = 1}",
        'memory = {read_latency = "1", write_latency = 1, bytes_per_cycle = 1}',
        "memory = {read_latency = -1, write_latency = 1, bytes_per_cycle = 1}",
    ],
)
def test_a_memory_that_cannot_be_is_refused(file: Path, entry: str) -> None:
    file.write_text(f'[desk]\nhost = "a"\nbitstream = "pynq"\n{entry}\n')
    with pytest.raises(BoardFileError, match="memory"):
        registered_board("desk")


def test_a_memory_written_by_hand_is_left_as_it_is(file: Path) -> None:
    file.write_text(
        '[desk]\nhost = "a"\nbitstream = "pynq"\nmemory = {read_latency = 1, write_latency = 1, bytes_per_cycle = 1}\n'
    )
    before = file.read_text()
    with pytest.raises(BoardFileError, match="has a memory already, written otherwise"):
        write_memory("desk", memory(32))
    assert file.read_text() == before
