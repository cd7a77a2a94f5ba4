"""The client against a peer on a socket pair: replies out of order, damage, silence, and the end of the stream."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from hilt.link import client as client_module
from hilt.link.client import AgentClient
from hilt.link.deadline import Deadline
from hilt.link.errors import (
    AgentError,
    BitstreamRefusedError,
    BoardBusyError,
    LinkError,
    LinkLostError,
    LinkTimeoutError,
    OutOfMemoryError,
    ProtocolViolationError,
    RefusedError,
)
from hilt_board.protocol import (
    Acknowledged,
    AgentFailure,
    AgentHello,
    AgentStatus,
    BlobStored,
    Frame,
    FrameDecoder,
    Limits,
    Measured,
    MissingBlobs,
    Record,
    Results,
    ResultsReport,
    StatusReport,
    UploadBlob,
    Welcome,
    encode_frame,
    from_frame,
    to_frame,
)


class SocketStream:
    def __init__(self, connection: socket.socket, complaint: str = "") -> None:
        self._connection = connection
        self._complaint = complaint

    def receive(self) -> bytes:
        return self._connection.recv(1 << 16)

    def send(self, data: bytes) -> None:
        try:
            self._connection.sendall(data)
        except OSError as error:
            raise LinkLostError(str(error)) from None

    def errors(self) -> str:
        return self._complaint

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)


@dataclass
class Peer:
    """The agent's end of the line, by hand."""

    connection: socket.socket
    decoder: FrameDecoder = field(default_factory=FrameDecoder)
    frames: list[Frame] = field(default_factory=list)

    def receive(self) -> tuple[int, Record]:
        while not self.frames:
            self.frames += self.decoder.feed(self.connection.recv(1 << 16))
        return from_frame(self.frames.pop(0))

    def answer(self, number: int, reply: Record) -> None:
        self.connection.sendall(encode_frame(to_frame(reply, number)))


@pytest.fixture
def line() -> Iterator[tuple[AgentClient, Peer]]:
    ours, theirs = socket.socketpair()
    theirs.settimeout(20)
    client = AgentClient(SocketStream(ours), "board")
    yield client, Peer(theirs)
    client.close()
    ours.close()
    theirs.close()


STATUS = StatusReport(
    state="ready",
    holder=None,
    bitstream=None,
    worker=None,
    worker_restarts=0,
    trials=0,
    unacknowledged=0,
    agent="",
    free_bytes=0,
    uptime_seconds=0.0,
)


WELCOME = Welcome(
    agent="",
    boot_id="boot",
    device="virtual:pynq",
    python="3.8",
    pynq="2.7",
    numpy="1.21",
    bitstream=None,
    clock_hz=None,
    time_scale=1.0,
    journal_next=1,
    limits=Limits(blob_bytes=1 << 30, chunk_bytes=1 << 20, pending=256),
)


def test_replies_find_their_requests_in_any_order(line: tuple[AgentClient, Peer]) -> None:
    client, peer = line
    futures = [client.send(AgentStatus()) for _ in range(3)]
    numbers = [peer.receive()[0] for _ in range(3)]
    peer.answer(numbers[2], MissingBlobs(("a" * 64,)))
    peer.answer(numbers[0], STATUS)
    peer.answer(numbers[1], AgentFailure("internal", "oh"))
    assert client.reply(futures[0], StatusReport, Deadline(20)) == STATUS
    with pytest.raises(RefusedError, match=r"oh \(internal\)"):
        client.reply(futures[1], StatusReport, Deadline(20))
    with pytest.raises(AgentError, match="answered MissingBlobs, not StatusReport"):
        client.reply(futures[2], StatusReport, Deadline(20))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("board_busy", BoardBusyError),
        ("identity_mismatch", BitstreamRefusedError),
        ("bitstream_refused", BitstreamRefusedError),
        ("disk_full", RefusedError),
        ("out_of_memory", OutOfMemoryError),
    ],
)
def test_refusals_have_their_types(line: tuple[AgentClient, Peer], code: str, kind: type[LinkError]) -> None:
    client, peer = line
    future = client.send(AgentHello("me"))
    peer.answer(peer.receive()[0], AgentFailure(code, "because"))
    with pytest.raises(kind, match="because"):
        client.reply(future, StatusReport, Deadline(20))


def test_an_answer_that_nobody_asked_for_ends_the_connection(line: tuple[AgentClient, Peer]) -> None:
    client, peer = line
    future = client.send(AgentStatus())
    number, _ = peer.receive()
    peer.answer(number + 7, STATUS)
    with pytest.raises(ProtocolViolationError, match=f"sent StatusReport for request {number + 7}, which"):
        client.reply(future, StatusReport, Deadline(20))


def test_an_answer_that_comes_twice_ends_the_connection(line: tuple[AgentClient, Peer]) -> None:
    client, peer = line
    future = client.send(AgentStatus())
    number, _ = peer.receive()
    peer.answer(number, STATUS)
    peer.answer(number, STATUS)
    assert client.reply(future, StatusReport, Deadline(20)) == STATUS
    client._reader.join(20)
    assert isinstance(client.lost, ProtocolViolationError)


def test_a_message_without_a_request_is_only_the_answer_to_a_heartbeat(line: tuple[AgentClient, Peer]) -> None:
    client, peer = line
    future = client.send(AgentStatus())
    number, _ = peer.receive()
    peer.answer(0, STATUS)
    peer.answer(number, STATUS)
    assert client.reply(future, StatusReport, Deadline(20)) == STATUS
    peer.answer(0, MissingBlobs(()))
    client._reader.join(20)
    assert isinstance(client.lost, ProtocolViolationError)


def test_escape_sequences_of_an_agent_are_no_part_of_an_error(line: tuple[AgentClient, Peer]) -> None:
    client, peer = line
    future = client.send(AgentStatus())
    peer.answer(peer.receive()[0], AgentFailure("internal", "\x1b]0;mine\x07oh\x9b31m"))
    with pytest.raises(RefusedError, match=r"^\]0;mineoh31m \(internal\)$"):
        client.reply(future, StatusReport, Deadline(20))


def test_the_end_of_the_stream_ends_every_request(line: tuple[AgentClient, Peer]) -> None:
    client, peer = line
    futures = [client.send(AgentStatus()) for _ in range(3)]
    peer.receive()
    peer.connection.shutdown(socket.SHUT_RDWR)
    for future in futures:
        with pytest.raises(LinkLostError, match="ended"):
            client.reply(future, StatusReport, Deadline(20))
    with pytest.raises(LinkLostError):
        client.send(AgentStatus())
    assert isinstance(client.lost, LinkLostError)


def test_a_stream_cut_within_a_frame_or_damaged_is_an_agent_error(line: tuple[AgentClient, Peer]) -> None:
    client, peer = line
    future = client.send(AgentStatus())
    number, _ = peer.receive()
    data = bytearray(encode_frame(to_frame(STATUS, number)))
    data[-3] ^= 1
    peer.connection.sendall(data)
    with pytest.raises(AgentError, match="does not speak the protocol: checksum"):
        client.reply(future, StatusReport, Deadline(20))


def test_errors_of_the_agent_are_reported() -> None:
    ours, theirs = socket.socketpair()
    client = AgentClient(SocketStream(ours, "hilt agent: no daemon runs"), "board")
    theirs.close()
    client._reader.join()
    assert isinstance(client.lost, AgentError)
    assert "no daemon runs" in str(client.lost)
    client.close()
    ours.close()


def test_a_reply_has_a_deadline(line: tuple[AgentClient, Peer]) -> None:
    client, _ = line
    with pytest.raises(LinkTimeoutError, match="agent on board took too long"):
        client.status(Deadline(0.01))
    with pytest.raises(LinkTimeoutError):
        Deadline(-1).remaining("it")
    assert client.lost is None


def test_a_silent_peer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A silent peer is given up by the client's clock.

    The test moves the clock by hand, so it waits for no second of silence.
    """
    monkeypatch.setattr(client_module, "HEARTBEAT_SECONDS", 0.001)
    ours, theirs = socket.socketpair()
    theirs.settimeout(20)
    now = [0.0]
    client = AgentClient(SocketStream(ours), "board", clock=lambda: now[0])
    peer = Peer(theirs)

    def welcome() -> None:
        number, message = peer.receive()
        assert isinstance(message, AgentHello)
        now[0] = 1000.0  # a worker that takes its time to start is not silence
        peer.answer(number, WELCOME)

    server = threading.Thread(target=welcome)
    server.start()
    assert client.hello("me", Deadline(20)) == WELCOME
    server.join()
    number, beat = peer.receive()
    assert isinstance(beat, AgentStatus)
    now[0] += 10
    peer.answer(number, STATUS)
    future = client.send(Results(0))
    while not isinstance(beat, Results):
        number, beat = peer.receive()
    peer.answer(number, ResultsReport((), False))
    client.reply(future, ResultsReport, Deadline(20))
    future = client.send(Results(0))
    now[0] += client_module.SILENT_SECONDS + 0.1
    with pytest.raises(LinkLostError, match="board has been silent for 15 s"):
        client.reply(future, ResultsReport, Deadline(20))
    client.close()
    theirs.close()
    ours.close()


def test_blobs_go_in_chunks_of_which_five_are_in_flight(line: tuple[AgentClient, Peer]) -> None:
    """While five are not answered, another request comes next."""
    client, peer = line
    data = bytes(range(256)) * 30_000  # 7.7 MB: 8 chunks
    sending = threading.Thread(target=client.put, args=(data, Deadline(20)))
    sending.start()
    waiting: list[tuple[int, int]] = []
    received = bytearray()
    while len(received) < len(data):
        while len(waiting) < 5 and len(received) < len(data):
            number, message = peer.receive()
            assert isinstance(message, UploadBlob)
            assert (message.offset, message.total) == (len(received), len(data))
            received.extend(message.chunk)
            waiting.append((number, len(received)))
        client.send(AgentStatus())
        assert isinstance(peer.receive()[1], AgentStatus)
        number, end = waiting.pop(0)
        peer.answer(number, BlobStored("a" * 64, end, False))
    for number, end in waiting:
        peer.answer(number, BlobStored("a" * 64, end, end == len(data)))
    sending.join(20)
    assert not sending.is_alive() and bytes(received) == data


def test_results_are_read_to_the_end(line: tuple[AgentClient, Peer]) -> None:
    client, peer = line

    def measured(sequence: int) -> Measured:
        return Measured(f"run/{sequence}/0", "timeout", sequence=sequence)

    def serve() -> None:
        for since, found, more in ((0, (1, 2), True), (2, (3,), False)):
            number, message = peer.receive()
            assert isinstance(message, Results) and message.since == since
            peer.answer(number, ResultsReport(tuple(map(measured, found)), more))
        number, _ = peer.receive()
        peer.answer(number, Acknowledged(3))

    server = threading.Thread(target=serve)
    server.start()
    assert [each.sequence for each in client.results(0, Deadline(20))] == [1, 2, 3]
    client.acknowledge(3, Deadline(20))
    server.join()


def test_a_blob_that_the_board_did_not_take_whole_is_told(line: tuple[AgentClient, Peer]) -> None:
    client, peer = line

    def answer() -> None:
        number, _ = peer.receive()
        peer.answer(number, BlobStored("a" * 64, 3, False))

    peering = threading.Thread(target=answer)
    peering.start()
    with pytest.raises(AgentError, match="agent on board took 3 of 5 bytes and is content"):
        client.upload_blob("a" * 64, b"12345", Deadline(20))
    peering.join(20)
