"""Frames and messages: every message survives the round trip, and all other input gives a typed error."""

from __future__ import annotations

import contextlib
import io
import json
import random
import struct
import subprocess
import tracemalloc
import zlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt import paths
from hilt.trial import Outcome
from hilt_board.protocol import (
    MAX_BODY_BYTES,
    MAX_HEADER_BYTES,
    OUTCOMES,
    PREFIX_BYTES,
    PROTOCOL_VERSION,
    AgentFailure,
    AgentHello,
    Frame,
    FrameDecoder,
    FrameError,
    Measure,
    Measured,
    MessageError,
    ProtocolError,
    Record,
    Relocation,
    TruncatedError,
    UploadBlob,
    VersionError,
    encode_frame,
    from_frame,
    read_frame,
    request_id,
    to_frame,
)
from hilt_board.protocol.messages import FAILURES
from hilt_board.protocol.messages import MESSAGES as KINDS
from tests.unit.board.examples import CODE, DIGEST, MESSAGES, TRIAL, field_names, without

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)


def prefix(header: int, body: int, version: int = PROTOCOL_VERSION, flags: int = 0, crc: int = 0) -> bytes:
    """Return a frame's prefix by docs/protocol.md, not by the code under test."""
    start = b"HILT" + struct.pack("<HHIII", version, flags, header, body, crc)
    return start + struct.pack("<I", zlib.crc32(start))


def by_hand(header: bytes, body: bytes = b"") -> bytes:
    return prefix(len(header), len(body), crc=zlib.crc32(header + body)) + header + body


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_every_message_comes_back(message: Record) -> None:
    (frame,) = FrameDecoder().feed(encode_frame(to_frame(message, 77)))
    assert from_frame(frame) == (77, message)


def test_every_kind_of_message_is_tested() -> None:
    assert {type(message) for message in MESSAGES} == set(KINDS.values())


def test_the_boards_outcomes_are_the_hosts_words() -> None:
    assert set(OUTCOMES) == {str(each) for each in Outcome} - {"rejected", "board_lost"}


def test_the_document_names_every_failure_and_request() -> None:
    document = (paths.board_package_directory().parents[1] / "docs" / "protocol.md").read_text()
    internal = {"ready", "beat", "stop_network"}
    for word in (*FAILURES, *OUTCOMES, *(set(KINDS) - internal)):
        assert f"`{word}`" in document, word


def test_a_frame_is_as_the_document_says() -> None:
    assert encode_frame(to_frame(AgentHello("me"), 5)) == by_hand(b'{"client":"me","id":5,"type":"hello"}')


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=10), json_values, max_size=5), st.binary(max_size=200), st.data())
def test_frames_survive_any_cutting(header: dict[str, object], body: bytes, data: st.DataObject) -> None:
    frames = [Frame(header, body), Frame({"second": 1}), Frame(header, body[::-1])]
    stream = b"".join(map(encode_frame, frames))
    decoder = FrameDecoder()
    found = []
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        found += decoder.feed(stream[:cut])
        stream = stream[cut:]
    decoder.end()
    assert found == frames


@settings(deadline=None)
@given(st.data())
@pytest.mark.slow
def test_blocking_and_incremental_reading_agree(data: st.DataObject) -> None:
    frames = [to_frame(message, 1) for message in data.draw(st.lists(st.sampled_from(MESSAGES), max_size=4))]
    stream = b"".join(map(encode_frame, frames))
    position = 0

    def read(count: int) -> bytes:
        nonlocal position
        shard = stream[position : position + data.draw(st.integers(1, count))]
        position += len(shard)
        return shard

    found = []
    while (frame := read_frame(read)) is not None:
        found.append(frame)
    assert found == frames


def test_ten_thousand_mutated_streams_give_frames_or_typed_errors() -> None:
    generator = random.Random(20260101)
    whole = [encode_frame(to_frame(message, number)) for number, message in enumerate(MESSAGES)]
    outcomes = {"refused": 0, "understood": 0, "waiting": 0}
    for _ in range(10_000):
        stream = bytearray(b"".join(generator.choices(whole, k=2)))
        for _ in range(generator.randint(1, 4)):
            mutate(stream, generator)
        decoder = FrameDecoder()
        try:
            for start in range(0, len(stream), 97):
                for frame in decoder.feed(bytes(stream[start : start + 97])):
                    from_frame(frame)
            decoder.end()
            outcomes["understood"] += 1
        except TruncatedError:
            outcomes["waiting"] += 1
        except ProtocolError:
            outcomes["refused"] += 1
    assert outcomes["refused"] > 5_000, outcomes


def mutate(stream: bytearray, generator: random.Random) -> None:
    kind = generator.randrange(5)
    place = generator.randrange(len(stream)) if stream else 0
    if kind == 0 and stream:
        stream[place] ^= 1 << generator.randrange(8)
    elif kind == 1:
        stream[place:place] = generator.randbytes(generator.randint(1, 30))
    elif kind == 2:
        del stream[place : place + generator.randint(1, 30)]
    elif kind == 3:
        stream[place : place + 4] = struct.pack("<I", generator.choice([0, 1, 2**31, 2**32 - 1, MAX_BODY_BYTES]))
    else:
        stream[place : place + 8] = stream[:8]


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.dictionaries(st.text(max_size=8), json_values, max_size=4), st.binary())
def test_any_json_is_a_message_or_a_message_error(kind: str, fields: dict[str, object], body: bytes) -> None:
    frame = Frame({**fields, "type": kind, "id": 1}, body)
    with contextlib.suppress(MessageError):
        from_frame(frame)


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(st.data())
def test_a_changed_field_is_valid_or_a_message_error(data: st.DataObject) -> None:
    message = data.draw(st.sampled_from([each for each in MESSAGES if field_names(each)]))
    frame = to_frame(message, 1)
    header = json.loads(json.dumps(frame.header))
    place = header
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        inner = place[key]
        if not isinstance(inner, (dict, list)) or not inner or data.draw(st.booleans()):
            break
        place = inner
    place[key] = data.draw(json_values)
    try:
        _, changed = from_frame(Frame(header, frame.body))
        assert from_frame(to_frame(changed, 1)) == (1, changed)
    except MessageError as error:
        assert len(str(error)) < 1000


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_missing_and_unknown_fields_are_named(message: Record) -> None:
    frame = to_frame(message, 1)
    with pytest.raises(MessageError, match="unknown field 'surplus'"):
        from_frame(replace(frame, header={**frame.header, "surplus": 1}))
    defaults = {"identity", "canary", "number", "repeat", "reason", "sequence", "cycles", "microseconds"}
    defaults |= {"run", "temperature", "images", "keep"}  # of Acknowledge, StatusReport and RunNetwork
    if isinstance(message, Measured):
        defaults |= {"verification", "worker_restarts", "seconds", "wall_microseconds"}
    for name in set(field_names(message)) - defaults:
        header = {"type": frame.header["type"], "id": 1, **without(message, name)}
        with pytest.raises(MessageError, match=name):
            from_frame(Frame(header, frame.body))


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (b"SSH-2.0-x\r\n", "not a hilt frame"),
        (b"X", "not a hilt frame"),
        (prefix(MAX_HEADER_BYTES + 1, 0), "frame header of 1048577 bytes"),
        (prefix(1, 0), "frame header of 1 bytes"),
        (prefix(2, MAX_BODY_BYTES + 1), "frame body of 67108865 bytes"),
        (prefix(2, 0, flags=1), "unknown flags 0x0001"),
        (prefix(2, 0)[:-1] + b"\0", "checksum of the frame's prefix"),
        (prefix(2, 0, crc=1) + b"{}", "checksum of the frame does not match"),
        (by_hand(b"[]"), "no JSON object but list"),
        (by_hand(b"\xff\xff"), "no JSON"),
        (by_hand(b'{"a":NaN}'), "NaN is not JSON"),
        (by_hand(b"[" * 100_000), "no JSON"),
    ],
)
def test_bytes_that_are_no_frame_are_refused_at_once(stream: bytes, message: str) -> None:
    decoder = FrameDecoder()
    with pytest.raises(FrameError, match=message):
        decoder.feed(stream)
    with pytest.raises(FrameError, match=message):  # for ever: its framing is lost
        decoder.feed(by_hand(b"{}"))


def test_another_version_is_named() -> None:
    with pytest.raises(VersionError, match="peer speaks protocol version 9, this side speaks 2") as raised:
        FrameDecoder().feed(prefix(2, 0, version=9))
    assert raised.value.theirs == 9


def test_frames_before_a_fault_are_not_lost() -> None:
    decoder = FrameDecoder()
    assert decoder.feed(by_hand(b'{"a":1}') + b"nonsense") == [Frame({"a": 1})]
    with pytest.raises(FrameError):
        decoder.feed(b"")


@pytest.mark.parametrize("length", [1, PREFIX_BYTES - 1, PREFIX_BYTES, PREFIX_BYTES + 3])
def test_an_end_within_a_frame_is_truncation(length: int) -> None:
    stream = by_hand(b'{"a":1}')[:length]
    decoder = FrameDecoder()
    assert decoder.feed(stream) == []
    with pytest.raises(TruncatedError):
        decoder.end()
    with pytest.raises(TruncatedError):
        read_frame(io.BytesIO(stream).read)


def test_an_announced_size_allocates_nothing() -> None:
    tracemalloc.start()
    try:
        for _ in range(100):
            assert FrameDecoder().feed(prefix(MAX_HEADER_BYTES, MAX_BODY_BYTES)) == []
        with pytest.raises(TruncatedError):
            read_frame(io.BytesIO(prefix(MAX_HEADER_BYTES, MAX_BODY_BYTES)).read)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_bounds_hold_for_the_sender_too() -> None:
    with pytest.raises(FrameError, match="frame header"):
        encode_frame(Frame({"text": "x" * MAX_HEADER_BYTES}))
    with pytest.raises(FrameError, match="NaN|not JSON|compliant"):
        encode_frame(Frame({"number": float("nan")}))
    with pytest.raises(MessageError, match=r"Failure\.code"):
        AgentFailure("no_such_code", "")
    with pytest.raises(MessageError, match=r"UploadBlob\.chunk: ends at 11 of 10 bytes"):
        UploadBlob(DIGEST, 10, 5, bytes(6))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"key": "../../etc/1/2"}, "TrialRequest.key"),
        ({"key": "run/1"}, "TrialRequest.key"),
        ({"bitstream": "5E" * 32}, "SHA-256 in lower-case hex"),
        ({"bitstream": DIGEST + "\n"}, "SHA-256"),
        ({"instruction_bytes": 24}, "one of 16, 32"),
        ({"instructions": True}, "an integer from"),
        ({"instructions": 2**22}, "an integer from"),
        ({"limit_seconds": float("inf")}, "a number from"),
        ({"limit_seconds": 0}, "a number from"),
        ({"relocations": (Relocation("nowhere", 1),)}, "no buffer 'nowhere'"),
        ({"inputs": (TRIAL.inputs[0], TRIAL.inputs[0])}, "must differ"),
        ({"instructions": 1 << 21, "instruction_bytes": 32}, "at most 33554432 bytes"),
    ],
)
def test_a_trial_that_cannot_be_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(MessageError, match=message):
        replace(TRIAL, **fields)


def test_code_must_be_as_long_as_the_trial_says() -> None:
    with pytest.raises(MessageError, match="code of 51 bytes, the trial says 52"):
        Measure(TRIAL, CODE[:-1])


def test_a_body_is_there_where_the_message_has_one_and_in_no_field() -> None:
    with pytest.raises(MessageError, match="status: a body that it does not have"):
        from_frame(Frame({"id": 1, "type": "status"}, b"x"))
    upload = {"id": 1, "type": "upload_blob", "sha256": DIGEST, "total": 1, "offset": 0}
    assert from_frame(Frame(upload, b"x"))[1].to_fields() == {"sha256": DIGEST, "total": 1, "offset": 0}
    with pytest.raises(MessageError, match="upload_blob: field 'chunk' travels in the body"):
        from_frame(Frame({**upload, "chunk": "x"}, b"x"))


def test_an_id_is_found_where_the_message_is_not_valid() -> None:
    assert request_id(Frame({"id": 9, "type": "nonsense"})) == 9
    with pytest.raises(MessageError, match="unknown message type 'nonsense'"):
        from_frame(Frame({"id": 9, "type": "nonsense"}))
    for wrong in (None, -1, 2**32, "1", True):
        with pytest.raises(MessageError):
            request_id(Frame({"id": wrong}))


def test_the_board_speaks_the_same() -> None:
    """The board's Python, in its own environment, encodes the same bytes as the host's."""
    if not paths.board_python().exists():
        pytest.skip(f"no board environment at {paths.board_python()}: make setup")
    program = (
        "import sys; from hilt_board.protocol import *\n"
        "frame = read_frame(sys.stdin.buffer.read); number, message = from_frame(frame)\n"
        "sys.stdout.buffer.write(encode_frame(to_frame(message, number)))"
    )
    for message in (Measure(TRIAL, CODE), MESSAGES[1]):
        data = encode_frame(to_frame(message, 3))
        environment = {"PYTHONPATH": str(paths.board_package_directory().parent)}
        answer = subprocess.run(
            [str(paths.board_python()), "-c", program], input=data, capture_output=True, env=environment, check=True
        )
        assert answer.stdout == data
