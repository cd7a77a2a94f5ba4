"""A board on the line and programmed: connecting, deploying the agent, loading the bitstream with its canary."""

from __future__ import annotations

import getpass
import hashlib
import os
import socket
import threading
import time

from hilt.link.abandon import unless_closed, within
from hilt.link.agent import AgentConnection
from hilt.link.client import AgentClient
from hilt.link.deadline import Deadline
from hilt.link.errors import AgentError
from hilt.measure.board_description import BoardTarget
from hilt.measure.canary import make_canary
from hilt.measure.interfaces import BoardEvent, BoardState, Listen
from hilt_board.protocol import BitstreamLoaded, Measured

CONNECT_SECONDS = 240.0
"""Seconds for connecting, deploying and programming.

On a small board that is still booting, the agent's worker may take two minutes to import pynq. The agent may wait
for the end of the boot, up to 150 s after power-on, before it loads anything; otherwise it is seconds.
"""


_CLOSE_SECONDS = 0.5
"""Seconds for the end of a connection whose other end may no longer read."""


class Connected:
    """A programmed board with an open connection, and the facts that hold as long as this connection lasts."""

    def __init__(self, agent: AgentConnection, bitstream: str, journal: list[Measured], agent_began: float) -> None:
        self.client = agent.client
        self.agent_began = agent_began
        """The start of its daemon, by this process' monotonic clock."""
        self.agent = agent
        self.bitstream = bitstream
        self.journal = {measured.key: measured for measured in journal}
        """Results of trials that we may not know of yet."""
        self.present: set[str] = set()
        self.acknowledge_through: dict[str, int] = {}
        """The last sequence number whose result is safe, by run."""

    def is_safe(self, measured: Measured) -> None:
        run = measured.key.partition("/")[0]
        self.acknowledge_through[run] = max(self.acknowledge_through.get(run, 0), measured.sequence)


class BoardConnection:
    """One board, connected or not, and the events about it. `close` from any thread, all else from one."""

    def __init__(self, target: BoardTarget, listen: Listen) -> None:
        self.target = target
        self.closing = threading.Event()
        self.connected: Connected | None = None
        self.boot_id: str | None = None
        """The boot id of the board's last start that was connected to."""
        self._listen = listen
        self._bitstream: bytes | None = None

    @property
    def name(self) -> str:
        """The board's."""
        return self.target.description.name

    def connect(self, seconds: float, rebooted_from: str | None = None) -> None:
        """Connect, with the bitstream loaded and the canary well. `rebooted_from`: the boot id that must be over.

        Raises LinkError; VirtualBoardError if a virtual board cannot be switched on.
        """
        if self._bitstream is None:
            # A place in a laboratory may have to wait for its turn.
            prepare, tell = self.target.prepare, lambda text: self.tell(BoardState.CONNECTING, text)
            unless_closed(self.closing, lambda: prepare(tell), lambda nothing: None)
            self.tell(BoardState.CONNECTING, "preparing its bitstream")
            # A model may be built, which takes its own time.
            self._bitstream = unless_closed(self.closing, self.target.bitstream, lambda bitstream: None)
        self.tell(BoardState.CONNECTING, "")
        bitstream = self._bitstream
        connected = unless_closed(
            self.closing,
            lambda: self._open(bitstream, Deadline(seconds), rebooted_from),
            lambda opened: opened.agent.close(),
        )
        self.boot_id = connected.agent.welcome.boot_id
        self.connected = connected
        if self.closing.is_set():
            self.disconnect()

    def _open(self, bitstream: bytes, deadline: Deadline, rebooted_from: str | None) -> Connected:
        agent = AgentConnection.open(self.target.endpoint(), who(), deadline)
        try:
            if agent.welcome.boot_id == rebooted_from:
                raise AgentError(f"{self.name} has not rebooted yet")
            return self._program(agent, bitstream, deadline)
        except BaseException:
            agent.close()
            raise

    def _program(self, agent: AgentConnection, bitstream: bytes, deadline: Deadline) -> Connected:
        how = "sent to the board" if agent.uploaded else "was there"
        if agent.replaced:
            how = f"{how}, {agent.replaced}"
        self.tell(BoardState.LOADED, f"agent {agent.welcome.agent[:12]} {how}, pynq {agent.welcome.pynq}")
        digest = hashlib.sha256(bitstream).hexdigest()
        programmed = program_board(agent.client, self.target, bitstream, deadline)
        journal = agent.client.results(0, deadline)
        status = agent.client.status(deadline)
        celsius = status.temperature
        heat = "" if celsius is None else f", chip at {celsius:.0f} °C"
        loaded = f"{self.target.manifest.parameters} at {programmed.clock_hz / 1e6:g} MHz"
        self.tell(BoardState.READY, f"{loaded} programmed in {programmed.seconds:.1f} s{heat}", celsius)
        return Connected(agent, digest, journal, time.monotonic() - status.uptime_seconds)

    def disconnect(self) -> None:
        connected, self.connected = self.connected, None
        if connected is not None:
            connected.agent.close()

    def close(self) -> None:
        """Close for good: calls that wait for the board give up, and a virtual board is switched off."""
        self.closing.set()
        within(_CLOSE_SECONDS, self.disconnect)
        within(_CLOSE_SECONDS, self.target.release)

    def tell(self, state: BoardState, detail: str, celsius: float | None = None) -> None:
        if self.closing.is_set() and state is not BoardState.RELEASED:
            return  # of a connection that was being made when it was closed
        self._listen(BoardEvent(self.name, state, detail, time.time(), celsius))


def program_board(client: AgentClient, target: BoardTarget, bitstream: bytes, deadline: Deadline) -> BitstreamLoaded:
    """Load the bitstream, with the canary that decides from now on whether the board is sane.

    The canary has run when this returns. Raises LinkError: BitstreamRefusedError, or RefusedError `board_broken` if
    the canary failed.
    """
    digest = hashlib.sha256(bitstream).hexdigest()
    canary = make_canary(target.description.accelerator, digest)
    contents = {digest: bitstream, **canary.blobs}
    for name in sorted(client.missing_blobs(sorted(contents), deadline)):
        client.upload_blob(name, contents[name], deadline)
    return client.program(digest, target.manifest, deadline, canary.trial, canary.code)


def who() -> str:
    """Return a text that names this process and no other: for other clients of a busy board."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number that has no name
        user = f"user {os.getuid()}"
    return f"hilt of {user}@{socket.gethostname()}, process {os.getpid()}"[:200]
