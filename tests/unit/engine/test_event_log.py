"""The records of a run's events beside its trials."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.engine import event_log
from hilt.engine.event_log import EventLog, is_kept, previous, read_event_log
from hilt.engine.events import (
    MAX_EVENT_BYTES,
    BoardChanged,
    Event,
    Finished,
    Logged,
    RunProgress,
    StateChanged,
    TunerUpdated,
    event_line,
)
from hilt.store import RunState
from hilt.tui.event_lines import line_of

KEPT: list[Event] = [
    StateChanged(RunState.RUNNING, ""),
    BoardChanged("desk", "recovering", "reboot over SSH: timeout", 1.0),
    TunerUpdated(8, 0.5, 1.0),
    Logged("warning", "desk: reboot over SSH took 12.0 s, canary well", 2.0),
]
PASSED_BY: list[Event] = [
    BoardChanged("desk", "running", "", 1.0),
    RunProgress(1, 2, {}, 0, 1.0),
    TunerUpdated(8, None, 1.0),
]


def test_states_boards_and_log_lines_are_kept_and_all_is_handed_on(tmp_path: Path) -> None:
    path, heard = tmp_path / "events.jsonl", list[Event]()
    publish = EventLog(path).recording(heard.append)
    for event in [*KEPT, *PASSED_BY]:
        publish(event)
    assert read_event_log(path) == KEPT
    assert heard == [*KEPT, *PASSED_BY]


def test_half_a_line_and_another_versions_words_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    EventLog(path).recording(lambda event: None)(KEPT[3])
    with path.open("ab") as file:
        file.write(b'{"event":"weather"}\nnoise\n{"event":"log","lev')
    assert read_event_log(path) == [KEPT[3]]


def test_states_of_older_versions_have_no_time_and_a_blank_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(
        b'{"event":"state","state":"running","detail":"opening board desk"}\n'
        b'{"event":"finished","state":"failed","detail":"no board","failure":"board"}\n'
    )
    state, finished = read_event_log(path)
    assert isinstance(state, StateChanged) and isinstance(finished, Finished)
    assert state.at == finished.at == 0.0
    assert line_of(state) == (" " * 8 + " run running: opening board desk", "heading")
    assert line_of(state, date=True) == (" " * 14 + " run running: opening board desk", "heading")
    assert line_of(finished) == (" " * 8 + " run failed: no board", "error")
    assert str(line_of(StateChanged(RunState.RUNNING))[0]).strip() != "run running", "a new one has a time"


def test_only_the_end_of_a_long_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    publish = EventLog(path).recording(lambda event: None)
    for ordinal in range(100):
        publish(Logged("info", f"line {ordinal}", 0.0))
    found = [event.text for event in read_event_log(path, 500)]
    assert found == [f"line {ordinal}" for ordinal in range(100 - len(found), 100)] and 2 < len(found) < 20


def test_a_long_file_is_begun_anew_and_the_earlier_file_is_read_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "MOST_BYTES", 200)
    path = tmp_path / "events.jsonl"
    publish = EventLog(path).recording(lambda event: None)
    for ordinal in range(6):
        publish(Logged("info", f"line {ordinal}", 0.0))
    assert previous(path).exists()
    found = [event.text for event in read_event_log(path)]
    assert found == [f"line {ordinal}" for ordinal in range(6 - len(found), 6)] and len(found) >= 3


def test_no_file_and_no_place_for_one_are_no_errors(tmp_path: Path) -> None:
    assert read_event_log(tmp_path / "none") == []
    EventLog(tmp_path / "no" / "such" / "place").recording(lambda event: None)(KEPT[0])


@pytest.mark.parametrize(("cut", "first"), [(0, 0), (1, 1)])
def test_a_file_that_fits_is_read_from_its_first_line(tmp_path: Path, cut: int, first: int) -> None:
    """A longer file loses the first line that is read: it is a part of one, or happens to be whole."""
    path = tmp_path / "events.jsonl"
    publish = EventLog(path).recording(lambda event: None)
    for ordinal in range(4):
        publish(Logged("info", f"line {ordinal}", 0.0))
    found = read_event_log(path, path.stat().st_size - cut)
    assert [event.text for event in found] == [f"line {ordinal}" for ordinal in range(first, 4)]  # type: ignore[union-attr]


def test_a_line_longer_than_any_event_is_left_out_and_the_next_is_read(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines = [event_line(Logged("info", name, 0.0)).rstrip(b"\n") for name in ("fits", "too long", "next")]
    padded = [lines[0].ljust(MAX_EVENT_BYTES), lines[1].ljust(MAX_EVENT_BYTES + 1), lines[2]]
    path.write_bytes(b"".join(line + b"\n" for line in padded))
    found = read_event_log(path, 4 * MAX_EVENT_BYTES)
    assert [event.text for event in found] == ["fits", "next"]  # type: ignore[union-attr]


def test_a_file_is_begun_anew_once_it_is_past_its_limit_and_one_before_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.jsonl"
    publish = EventLog(path).recording(lambda event: None)
    publish(Logged("info", "line 0", 0.0))
    monkeypatch.setattr(event_log, "MOST_BYTES", path.stat().st_size)
    publish(Logged("info", "line 1", 0.0))
    assert not previous(path).exists(), "it was just at its limit"
    publish(Logged("info", "line 2", 0.0))
    assert path.with_name("events.jsonl.1").read_bytes().count(b"\n") == 2
    assert path.read_bytes().count(b"\n") == 1


def test_a_board_that_says_more_than_its_usual_states_is_kept() -> None:
    assert is_kept(BoardChanged("desk", "running", "2 trials", 1.0))
    assert is_kept(BoardChanged("desk", "lost", "", 1.0))
    assert not is_kept(BoardChanged("desk", "ready", "", 1.0))
