"""Events and commands are lines: each is read as it was written, a long one is cut, and other lines are refused."""

from __future__ import annotations

import json

import pytest

from hilt.engine.events import (
    MAX_COMMAND_BYTES,
    MAX_EVENT_BYTES,
    BoardChanged,
    EngineCommand,
    EngineHello,
    EngineProtocolError,
    Event,
    FailureCause,
    Finished,
    Logged,
    StateChanged,
    TrialRecorded,
    TunerUpdated,
    command_line,
    event_line,
    parse_command,
    parse_event,
)
from hilt.store import RunState
from hilt.trial import Outcome, Trial

EVENTS: list[Event] = [
    EngineHello("a" * 32, 7),
    StateChanged(RunState.RUNNING, "since noon", 3.0),
    TrialRecorded(Trial(3, 5, {"tile_h": 7}, Outcome.CRASH, board="desk", reason="it crashed")),
    BoardChanged("desk", "recovering", "no answer", 1.0),
    TunerUpdated(8, None, 1.0),
    Logged("warning", "slow", 2.0),
    Finished(RunState.FAILED, "no board", FailureCause.BOARD),
]


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_is_read_as_it_was_written(event: Event) -> None:
    line = event_line(event)
    assert line.endswith(b"\n") and line.count(b"\n") == 1 and b'": ' not in line
    assert parse_event(line) == event


def test_a_finish_of_older_engines_has_no_time() -> None:
    read = parse_event(b'{"event": "state", "state": "running"}')
    assert isinstance(read, StateChanged) and read.at == 0.0


def test_long_texts_are_cut_to_four_thousand_characters() -> None:
    log = parse_event(event_line(Logged("error", "x" * 4001, 0.0)))
    assert isinstance(log, Logged) and log.text == "x" * 4000
    trial = Trial(0, 0, {}, Outcome.CRASH, reason="\u20ac" * 4001)
    line = event_line(TrialRecorded(trial))
    read = parse_event(line)
    assert isinstance(read, TrialRecorded) and len(read.trial.reason) == 4000
    assert len(line) < MAX_EVENT_BYTES == 65536


@pytest.mark.parametrize("command", EngineCommand)
def test_a_command_is_read_as_it_was_written(command: EngineCommand) -> None:
    line = command_line(command)
    assert line.endswith(b"\n") and len(line) < MAX_COMMAND_BYTES == 1024
    assert parse_command(line) is command


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"", "^not JSON: b''$"),
        (b"{" * 99, "^not JSON: b'{{80}'$".replace("{{", "[{]{")),
        (b"[" * 100_000, "^not JSON: b'"),
        (b"7", "^not a JSON object: b'7'$"),
        (b"[" + b"1," * 99 + b"1]", r"^not a JSON object: b'\[(1,){39}1'$"),
        (b'{"event": "odd"}', "^not an event of protocol 2: b'"),
        (b"{}", "^not an event of protocol 2: b'{}'$"),
        (b'{"event": "trial"}', "^a malformed trial event: 'trial'$"),
        (b'{"event": "log", "level": "error"}', "^a malformed log event: "),
        (b'{"event": "log", "level": "error", "text": "", "at": 0, "more": 1}', "^a malformed log event: .*more"),
        (b'{"event": "state", "state": "odd"}', "^a malformed state event: 'odd' is not a valid RunState$"),
        (b'{"event": "finished", "state": "failed", "failure": "odd"}', "^a malformed finished event: 'odd'"),
    ],
)
def test_a_line_that_is_no_event_is_refused(line: bytes, words: str) -> None:
    with pytest.raises(EngineProtocolError, match=words):
        parse_event(line)


def test_a_boards_state_is_a_word_of_its_measurer() -> None:
    read = parse_event(b'{"event": "board", "board": "a", "state": "odd", "detail": "", "at": 0}')
    assert isinstance(read, BoardChanged) and read.state == "odd"


@pytest.mark.parametrize("word", ["", "odd", None, 7, ["stop"], "x" * 41])
def test_a_word_that_is_no_command_is_refused(word: object) -> None:
    with pytest.raises(EngineProtocolError) as refused:
        parse_command(json.dumps({"command": word}).encode())
    assert str(refused.value) == f"no command {str(word)[:40]!r}; there are pause, resume, stop"
