"""Requests that the agent refuses: each refusal names its reason and harms nothing that follows."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hilt_board.protocol import (
    AgentFailure,
    AgentHello,
    HasBlobs,
    LoadBitstream,
    Log,
    LogText,
    Measure,
    MissingBlobs,
    Reset,
    ResetDone,
    UploadBlob,
    encode_frame,
    from_frame,
    read_frame,
    to_frame,
)
from tests.e2e.agent.client import Agent, Client
from tests.e2e.agent.conftest import Hardware, connected, load, running_agent
from tests.e2e.agent.programs import add_constant, sha256


@pytest.fixture(scope="module")
def shared(board_model: Path) -> Iterator[tuple[Agent, Client]]:
    with running_agent(board_model) as agent, connected(agent) as session:
        yield agent, session


@pytest.fixture
def client(shared: tuple[Agent, Client], golden: Hardware) -> Client:
    """The session that all tests here share, programmed with the golden model."""
    return load(shared[1], golden)


def test_blobs_have_the_bytes_of_their_hash(client: Client) -> None:
    data = b"tensor" * 1000
    name = sha256(data)
    assert client.refused(UploadBlob(name, len(data), 10, data[10:])) == "blob_order"
    assert client.refused(UploadBlob(name, len(data), 0, data[:-1] + b"?")) == "blob_corrupt"
    assert client.ask(HasBlobs((name,)), MissingBlobs).sha256 == (name,)
    client.put({name: data})
    assert client.ask(HasBlobs((name,)), MissingBlobs).sha256 == ()


def test_a_bitstream_that_cannot_be_loaded_is_refused(client: Client, golden: Hardware) -> None:
    truncated = golden.bitfile[:-100]
    other_part = golden.bitfile.replace(b"7z020clg400", b"7z010clg400")
    no_model = golden.bitfile[:200]
    manifest = golden.manifest
    cases = [
        (truncated, manifest, "truncated"),
        (other_part, manifest, "is for part 7z010clg400, this board has 7z020clg400"),
        (other_part, replace(manifest, part="xc7z010clg400"), "is for part 7z010clg400, this board has 7z020clg400"),
        (no_model, manifest, "truncated"),
        (b"\x7fELF" + bytes(1000), manifest, "is no .bit file"),
    ]
    for data, described, message in cases:
        client.put({sha256(data): data})
        refusal = client.ask(LoadBitstream(sha256(data), described), AgentFailure)
        assert refusal.code == "bitstream_refused"
        assert message in refusal.message
    assert golden.manifest.identity is not None
    wrong = replace(manifest, identity=replace(golden.manifest.identity, buffer_sizes=0x10101010))
    refusal = client.ask(LoadBitstream(golden.bitstream, wrong), AgentFailure)
    assert refusal.code == "identity_mismatch"
    assert "register 0x4c" in refusal.message and "0x10101010" in refusal.message
    client.program(golden.program())
    assert client.measure(add_constant(golden.accelerator, golden.bitstream, "run2/1/0")).outcome == "ok"


def test_a_bitstream_without_hilts_registers_is_timed_by_the_clock(client: Client, golden: Hardware) -> None:
    client.put({golden.bitstream: golden.bitfile})
    client.program(LoadBitstream(golden.bitstream, replace(golden.manifest, identity=None)))
    measured = client.measure(add_constant(golden.accelerator, golden.bitstream, "run3/1/0", repeat=3))
    assert (measured.outcome, measured.cycles) == ("ok", ())
    assert len(measured.microseconds) == 3 and min(measured.microseconds) > 0
    hung = add_constant(golden.accelerator, golden.bitstream, "run3/2/0", lose_token=True, limit_seconds=0.001)
    measured = client.measure(hung)
    assert (measured.outcome, measured.canary) == ("timeout", True)
    assert client.measure(add_constant(golden.accelerator, golden.bitstream, "run3/3/0")).outcome == "ok"


def test_a_canary_of_the_clients_own_decides(client: Client, golden: Hardware) -> None:
    canary = add_constant(golden.accelerator, golden.bitstream, "canary/0/0")
    client.put({golden.bitstream: golden.bitfile, **canary.blobs})
    client.program(golden.program(canary=canary.trial, code=canary.code))
    for step in ("soft", "reload", "worker"):
        assert client.ask(Reset(step), ResetDone).canary is True
    failing = add_constant(golden.accelerator, golden.bitstream, "canary/0/0", corrupt_item=0)
    client.put(failing.blobs)
    refusal = client.ask(golden.program(canary=failing.trial, code=failing.code), AgentFailure)
    assert refusal.code == "board_broken"
    assert "canary failed after loading: wrong_answer" in refusal.message


def test_missing_blobs_are_named(client: Client, golden: Hardware) -> None:
    prepared = add_constant(golden.accelerator, golden.bitstream, "run5/1/0", seed=99)
    refusal = client.ask(Measure(prepared.trial, prepared.code), AgentFailure)
    assert refusal.code == "blob_missing"
    assert prepared.trial.inputs[0].sha256 in refusal.message


def test_nonsense_ends_the_session_and_nothing_else(shared: tuple[Agent, Client]) -> None:
    agent, client = shared
    for nonsense in (b"GET / HTTP/1.1\r\n\r\n", encode_frame(to_frame(AgentHello("x"), 1))[:-3] + b"???"):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(30)
        connection.connect(str(agent.home / "agent.sock"))
        connection.sendall(nonsense)
        frame = read_frame(connection.recv)
        assert frame is not None and from_frame(frame)[1].code == "bad_message"
        assert connection.recv(1) == b""
        connection.close()
    assert client.ask(HasBlobs(()), MissingBlobs).sha256 == ()
    assert "link lost" not in client.ask(Log(10_000), LogText).text.decode()
