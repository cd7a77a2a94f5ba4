"""A live daemon under mutated frames: it answers or closes, never hangs, and serves the next client."""

from __future__ import annotations

import contextlib
import random
import socket

from hilt_board.protocol import AgentHello, HasBlobs, MissingBlobs, encode_frame, to_frame
from tests.e2e.agent.client import Agent, Client
from tests.unit.board.examples import MESSAGES
from tests.unit.board.test_protocol import mutate

STREAMS = 1000


def test_a_thousand_mutated_streams(agent: Agent, client: Client) -> None:
    client.close()
    generator = random.Random(7)
    harmless = [each for each in MESSAGES if type(each).__name__ != "Shutdown"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.connect(str(agent.home / "agent.sock"))
    for _ in range(STREAMS):
        messages = [AgentHello("fuzz"), *generator.choices(harmless, k=3)]
        stream = bytearray(b"".join(encode_frame(to_frame(each, n)) for n, each in enumerate(messages)))
        for _ in range(generator.randint(0, 3)):
            mutate(stream, generator)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(20)
            connection.connect(str(agent.home / "agent.sock"))
            with contextlib.suppress(ConnectionError):
                connection.sendall(stream)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 16):
                    pass
    survivor = agent.connect()
    survivor.hello("fuzz")
    assert survivor.ask(HasBlobs(("0" * 64,)), MissingBlobs).sha256 == ("0" * 64,)
    assert survivor.status().worker_restarts == 0
    assert "Traceback" not in agent.log()
    survivor.close()
