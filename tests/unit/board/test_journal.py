"""The journal: every record that append has accepted is there, however the file is torn afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hilt_board import journal as journal_module
from hilt_board.journal import DiskFullError, Journal, JournalFullError
from hilt_board.protocol import Measured
from tests.unit.board.examples import results


def measured(number: int) -> Measured:
    return Measured(key=f"run/{number}/0", outcome="ok", cycles=(float(number),))


@pytest.fixture
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace fsync, because waiting for the disk shows nothing in a test that tears the file by hand."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.mark.slow
@pytest.mark.usefixtures("no_fsync")
def test_torn_at_every_byte(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    kept = []
    ends = [0]
    for number in range(1, 4):
        kept.append(journal.append(measured(number)))
        ends.append(path.stat().st_size)
    journal.close()
    whole = path.read_bytes()
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        journal = Journal(path)
        complete = sum(end <= length for end in ends[1:])
        assert journal.since(0, 100) == kept[:complete]
        assert journal.next == complete + 1
        again = journal.append(measured(99))
        journal.close()
        journal = Journal(path)
        assert journal.since(0, 100) == [*kept[:complete], again]
        assert journal.damaged == 0
        journal.close()


@pytest.mark.slow
@pytest.mark.usefixtures("no_fsync")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(results, min_size=1, max_size=8, unique_by=lambda each: each.key), st.data())
def test_a_flipped_byte_costs_at_most_its_lines(tmp_path: Path, several: list[Measured], data: st.DataObject) -> None:
    path = tmp_path / "journal"
    path.unlink(missing_ok=True)
    journal = Journal(path)
    kept = [journal.append(each) for each in several]
    journal.close()
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(bytes(content))
    journal = Journal(path)
    found = journal.since(0, 100)
    journal.close()
    assert set(map(repr, found)) <= set(map(repr, kept))
    assert len(found) >= len(kept) - 2  # a damaged line end joins two lines


class JournalMachine(RuleBasedStateMachine):
    """A journal against a dictionary, closed and opened again at any moment."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(os.environ["HILT_TEST_JOURNAL"])
        self.path = self.folder / "journal"
        self.path.unlink(missing_ok=True)
        self.journal = Journal(self.path)
        self.kept: dict[int, Measured] = {}
        self.next = 1

    @rule(result=results)
    def append(self, result: Measured) -> None:
        if any(each.key == result.key for each in self.kept.values()):
            with pytest.raises(ValueError, match="already"):
                self.journal.append(result)
            return
        assert self.journal.append(result) == replace(result, sequence=self.next)
        self.kept[self.next] = replace(result, sequence=self.next)
        self.next += 1

    @precondition(lambda self: self.kept)
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        through = data.draw(st.integers(0, self.next + 2))
        self.journal.acknowledge(through)
        self.kept = {sequence: each for sequence, each in self.kept.items() if sequence > through}

    @rule()
    def reopen(self) -> None:
        self.journal.close()
        self.journal = Journal(self.path)
        assert self.journal.damaged == 0

    @rule(torn=st.binary(min_size=1, max_size=30).filter(lambda data: b"\n" not in data))
    def crash_within_a_line(self, torn: bytes) -> None:
        self.journal.close()
        with self.path.open("ab") as file:
            file.write(torn)
        self.journal = Journal(self.path)
        assert self.journal.damaged == 1

    @invariant()
    def holds_the_kept_entries(self) -> None:
        assert self.journal.since(0, 10_000) == list(self.kept.values())
        assert self.journal.next == self.next
        assert len(self.journal) == len(self.kept)
        for result in self.kept.values():
            assert self.journal.find(result.key) == result

    def teardown(self) -> None:
        self.journal.close()


@pytest.mark.slow
def test_any_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    monkeypatch.setenv("HILT_TEST_JOURNAL", str(tmp_path))
    monkeypatch.setattr(journal_module, "COMPACT_BYTES", 500)
    run_state_machine_as_test(JournalMachine, settings=settings(max_examples=30, stateful_step_count=25, deadline=None))


@pytest.mark.usefixtures("no_fsync")
def test_acknowledged_results_leave_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "COMPACT_BYTES", 10_000)
    journal = Journal(tmp_path / "journal")
    largest = 0
    for number in range(1, 501):
        journal.append(measured(number))
        assert journal.acknowledge(number) == number
        largest = max(largest, (tmp_path / "journal").stat().st_size)
    assert largest < 12_000
    assert journal.next == 501
    journal.close()
    assert Journal(tmp_path / "journal").next == 501  # a number is never given twice


def test_it_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "MAX_UNACKNOWLEDGED", 3)
    journal = Journal(tmp_path / "journal")
    for number in range(1, 4):
        journal.append(measured(number))
    with pytest.raises(JournalFullError, match="holds 3 results that were not acknowledged"):
        journal.append(measured(4))
    journal.acknowledge(1)
    assert journal.append(measured(4)).sequence == 4


def test_a_disk_that_fills_within_a_line_keeps_the_earlier_lines(tmp_path: Path) -> None:
    """A real short write, by the kernel: a limit on the file's size in a process of its own."""
    program = """
import resource, signal, sys
from pathlib import Path
from hilt_board.journal import DiskFullError, Journal
from hilt_board.protocol import Measured
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = Journal(Path(sys.argv[1]))
kept = 0
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
for number in range(1, 20):
    try:
        journal.append(Measured(key="run/%d/0" % number, outcome="ok"))
        kept += 1
    except DiskFullError:
        pass
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.append(Measured(key="run/20/0", outcome="ok"))
print(kept)
"""
    path = tmp_path / "journal"
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    kept = int(done.stdout)
    assert 1 <= kept < 19
    journal = Journal(path)
    assert journal.damaged == 0
    assert [each.key for each in journal.since(0, 100)] == [f"run/{n}/0" for n in (*range(1, kept + 1), 20)]


def test_a_disk_that_cannot_even_be_cut_costs_no_later_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    first = journal.append(measured(1))
    write, truncate = os.write, os.ftruncate

    def half_a_write(file: int, data: bytes) -> int:
        return write(file, data[: len(data) // 2])

    def no_truncate(file: int, length: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "write", half_a_write)
        broken.setattr(os, "ftruncate", no_truncate)
        with pytest.raises(DiskFullError):
            journal.append(measured(2))
    assert os.ftruncate is truncate
    second = journal.append(measured(2))
    with monkeypatch.context() as full:  # now it can be cut again, and must not be cut too short
        full.setattr(os, "write", half_a_write)
        with pytest.raises(DiskFullError):
            journal.append(measured(3))
    journal.close()
    assert Journal(path).since(0, 10) == [first, second]


def test_its_lines_are_as_documented(tmp_path: Path) -> None:
    Journal(tmp_path / "journal").append(measured(1))
    (line,) = (tmp_path / "journal").read_bytes().splitlines()
    checksum, text = line.split(b" ", 1)
    assert int(checksum, 16) == zlib.crc32(text)
    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o600


def test_acknowledging_a_run_keeps_results_that_another_host_has_not_seen(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    abandoned = journal.append(Measured(key="old/1/0", outcome="ok"))
    for number in range(3):
        last = journal.append(Measured(key=f"new/{number}/0", outcome="ok"))
    journal.acknowledge(last.sequence, "new")
    assert journal.since(0, 10) == [abandoned]
    journal.close()
    again = Journal(tmp_path / "journal")
    assert (again.since(0, 10), again.next, again.find("new/1/0")) == ([abandoned], last.sequence + 1, None)
    again.acknowledge(last.sequence)
    assert len(again) == 0
    again.close()


def test_a_full_journal_drops_the_oldest_abandoned_run_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hilt_board.journal.MAX_UNACKNOWLEDGED", 4)
    journal = Journal(tmp_path / "journal")
    for key in ("first/0/0", "second/0/0", "first/1/0", "now/0/0"):
        journal.append(Measured(key=key, outcome="ok"))
    journal.append(Measured(key="now/1/0", outcome="ok"))
    assert [each.key for each in journal.since(0, 10)] == ["second/0/0", "now/0/0", "now/1/0"]
    for number in (2, 3):
        journal.append(Measured(key=f"now/{number}/0", outcome="ok"))
    with pytest.raises(JournalFullError):
        journal.check_room("now/4/0")
    journal.close()


def test_a_journal_of_protocol_version_1_is_read(tmp_path: Path) -> None:
    """An agent that replaces one of version 1 finds its results under their old names."""
    fields = {
        "key": "run/3/0", "outcome": "wrong_answer", "reason": "", "sequence": 7, "cycles": [], "microseconds": [],
        "comparison": {"compared": 32, "mismatched": 2, "first": 7, "largest_error": 255}, "worker_restarts": 0,
        "canary": None, "seconds": {}, "wall_microseconds": [],
    }  # fmt: skip
    text = json.dumps(fields).encode()
    (tmp_path / "journal").write_bytes(b"%08x %s\n" % (zlib.crc32(text), text))
    journal = Journal(tmp_path / "journal")
    (result,) = journal.since(0, 10)
    assert journal.damaged == 0 and journal.next == 8
    assert result.verification is not None and result.verification.mismatched == 2


def test_twenty_thousand_results_wait_for_a_host(tmp_path: Path) -> None:
    """A night of trials on a board that nobody fetches from."""
    journal = Journal(tmp_path / "journal")
    journal._results = dict.fromkeys(range(1, 20_000), measured(1))
    journal.check_room("run/1/0")
    journal._results[20_000] = measured(1)
    with pytest.raises(JournalFullError, match="holds 20000 results"):
        journal.check_room("run/1/0")
    journal.close()


@pytest.mark.parametrize(("free", "room"), [(1 << 20, True), ((1 << 20) - 4096, False)])
def test_a_mebibyte_of_the_disk_is_left_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, room: bool
) -> None:
    journal = Journal(tmp_path / "journal")
    statistics = SimpleNamespace(f_bavail=free // 4096, f_frsize=4096)
    monkeypatch.setattr(os, "fstatvfs", lambda file: statistics)
    if room:
        assert journal.append(measured(1)).sequence == 1
    else:
        with pytest.raises(DiskFullError, match="less than 1 MiB is free"):
            journal.append(measured(1))
    journal.close()


@pytest.mark.parametrize(("grown", "lines"), [(1 << 20, 2), ((1 << 20) - 200, 3)])
def test_a_file_that_has_grown_by_a_mebibyte_is_rewritten(tmp_path: Path, grown: int, lines: int) -> None:
    journal = Journal(tmp_path / "journal")
    journal.append(measured(1))
    journal.append(measured(2))
    journal._bytes += grown - (tmp_path / "journal").stat().st_size
    journal.acknowledge(1)
    journal.close()
    assert len((tmp_path / "journal").read_bytes().splitlines()) == lines
    again = Journal(tmp_path / "journal")
    assert [each.key for each in again.since(0, 9)] == ["run/2/0"] and again.next == 3
    again.close()


def test_an_acknowledgement_does_not_rewrite_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "COMPACT_BYTES", 2000)
    path = tmp_path / "journal"
    journal = Journal(path)
    for number in range(20):
        journal.append(Measured(key=f"other/{number}/0", outcome="ok"))
    rewritten = set()
    for number in range(40):
        journal.acknowledge(journal.append(measured(number)).sequence, "run")
        rewritten.add(path.stat().st_ino)
    journal.close()
    written = 40 * 300  # a result and its acknowledgement are less than that
    assert 2 <= len(rewritten) <= 1 + written // 2000


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_rewriting_closes_the_old_file_and_syncs_the_whole_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "journal")
    journal.append(measured(1))
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_size))
    before = open_files()
    journal._compact()
    assert open_files() == before
    assert synced[0] == (tmp_path / "journal").stat().st_size > 0
    journal.close()


def spoiled(path: Path, tail: bytes) -> None:
    journal = Journal(path)
    journal.append(measured(1))
    journal.close()
    with path.open("ab") as file:
        file.write(tail)


@pytest.mark.parametrize(
    ("tail", "damaged"),
    [
        (b"torn", 1),
        (b"00000000 {}\n", 1),
        (b"no checksum\n", 1),
        (journal_module._encode({"key": 7}), 1),
        (b"no checksum\ntorn", 2),
        (b"", 0),
    ],
)
def test_unreadable_lines_are_counted(tmp_path: Path, tail: bytes, damaged: int) -> None:
    path = tmp_path / "journal"
    spoiled(path, tail)
    journal = Journal(path)
    assert journal.damaged == damaged
    assert [each.key for each in journal.since(0, 9)] == ["run/1/0"]
    journal.close()


def test_a_torn_line_is_cut_off_even_if_the_file_cannot_be_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    spoiled(path, b"torn")

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", full)
        journal = Journal(path)
    assert not path.read_bytes().endswith(b"torn")
    journal.append(measured(2))
    journal.close()
    again = Journal(path)
    assert ([each.key for each in again.since(0, 9)], again.damaged) == (["run/1/0", "run/2/0"], 0)
    assert sorted(tmp_path.iterdir()) == [path]
    again.close()


def test_an_error_of_the_disk_is_passed_on_and_its_line_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)

    def broken_disk(file: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", broken_disk)
        with pytest.raises(OSError, match="Input/output error"):
            journal.append(measured(1))
    assert path.read_bytes() == b"" and len(journal) == 0
    assert journal.append(measured(1)).sequence == 1
    journal.close()


def test_results_above_a_sequence_number_come_oldest_first(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    kept = [journal.append(measured(number)) for number in range(1, 6)]
    assert journal.since(2, 2) == kept[2:4]
    assert journal.since(4, 100) == kept[4:] and journal.since(5, 100) == []
    journal.close()


def test_closing_gives_the_file_back(tmp_path: Path) -> None:
    before = open_files()
    Journal(tmp_path / "journal").close()
    assert open_files() == before


@pytest.mark.parametrize(
    ("number", "error"), [(28, DiskFullError), (122, DiskFullError), (27, DiskFullError), (5, OSError)]
)
def test_a_line_that_did_not_reach_the_disk_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    """Only ENOSPC, EDQUOT and EFBIG say that the disk is full; a broken card says EIO."""
    journal = Journal(tmp_path / "journal")
    first = journal.append(measured(1))

    def fails(file: int) -> None:
        raise OSError(number, "not on the disk")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fails)
        with pytest.raises(error) as caught:
            journal.append(measured(2))
    assert type(caught.value) is error
    assert journal.since(0, 9) == [first] and journal.find("run/2/0") is None
    assert journal.append(measured(2)).sequence == 2
    journal.close()
    again = Journal(tmp_path / "journal")
    assert [each.key for each in again.since(0, 9)] == ["run/1/0", "run/2/0"] and again.damaged == 0
    again.close()


def test_a_rewritten_file_is_its_owners_and_its_directory_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut the directory must not have the old file under the name."""
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.append(measured(1))
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_ino))
    journal._compact()
    assert synced == [path.stat().st_ino, tmp_path.stat().st_ino]
    assert path.stat().st_mode & 0o777 == 0o600
    journal.close()
