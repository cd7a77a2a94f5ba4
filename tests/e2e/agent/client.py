"""A plain blocking client of the agent, over any socket."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import TypeVar

from hilt_board.protocol import (
    CHUNK_BYTES,
    AgentFailure,
    AgentHello,
    AgentStatus,
    BitstreamLoaded,
    BlobStored,
    LoadBitstream,
    Measure,
    Measured,
    Record,
    StatusReport,
    UploadBlob,
    Welcome,
    encode_frame,
    from_frame,
    read_frame,
    to_frame,
)
from tests.e2e.agent.programs import Prepared

R = TypeVar("R", bound=Record)


class Client:
    """One session. Replies that overtake the one waited for are kept."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._number = 0
        self._early: dict[int, Record] = {}

    def send(self, message: Record) -> int:
        self._number += 1
        self.connection.sendall(encode_frame(to_frame(message, self._number)))
        return self._number

    def reply(self, number: int) -> Record:
        while number not in self._early:
            frame = read_frame(self.connection.recv)
            if frame is None:
                raise EOFError("the agent closed the connection")
            answered, message = from_frame(frame)
            self._early[answered] = message
        return self._early.pop(number)

    def ask(self, message: Record, expected: type[R]) -> R:
        reply = self.reply(self.send(message))
        assert isinstance(reply, expected), reply
        return reply

    def hello(self, client: str = "test") -> Welcome:
        return self.ask(AgentHello(client), Welcome)

    def status(self) -> StatusReport:
        return self.ask(AgentStatus(), StatusReport)

    def refused(self, message: Record) -> str:
        return self.ask(message, AgentFailure).code

    def put(self, blobs: dict[str, bytes]) -> None:
        for name, data in blobs.items():
            for offset in range(0, len(data), CHUNK_BYTES):
                stored = self.ask(UploadBlob(name, len(data), offset, data[offset : offset + CHUNK_BYTES]), BlobStored)
            assert stored.complete

    def program(self, message: LoadBitstream) -> BitstreamLoaded:
        return self.ask(message, BitstreamLoaded)

    def measure(self, prepared: Prepared) -> Measured:
        self.put(prepared.blobs)
        return self.ask(Measure(prepared.trial, prepared.code), Measured)

    def close(self) -> None:
        self.connection.close()


class Agent:
    """The real agent, under the board's Python, in a home of its own."""

    def __init__(self, python: Path, package: Path, home: Path, environment: dict[str, str]) -> None:
        self.home = home
        self._command = [str(python), "-m", "hilt_board"]
        self._environment = {**environment, "HILT_AGENT_HOME": str(home), "PYTHONPATH": str(package)}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *arguments], env=self._environment, capture_output=True, text=True, timeout=90, check=False
        )

    def start(self, *arguments: str) -> None:
        started = self.run("start", *arguments)
        assert started.returncode == 0, started.stderr + self.log()

    def stop(self) -> None:
        stopped = self.run("stop")
        assert stopped.returncode == 0, stopped.stderr

    def bridge(self) -> subprocess.Popen[bytes]:
        """`connect`, as sshd runs it."""
        return subprocess.Popen(
            [*self._command, "connect"],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def connect(self) -> Client:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(60)
        connection.connect(str(self.home / "agent.sock"))
        return Client(connection)

    def log(self) -> str:
        path = self.home / "agent.log"
        return path.read_text() if path.exists() else ""
