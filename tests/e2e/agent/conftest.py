"""A virtual board's agent without its SSH server: the daemon, its worker, pynq, and a model as bitstream."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hilt import paths
from hilt.measure.board_description import identity_of
from hilt.simulator.build import Form, build
from hilt.virtual.bitstream import bitfile
from hilt.vta.accelerator import Accelerator, load_parameters
from hilt_board.protocol import LoadBitstream, Manifest
from tests.e2e.agent.client import Agent, Client
from tests.e2e.agent.programs import sha256

PART = "7z020clg400"
CLOCK_HZ = 100_000_000
REGISTER_BASE = 0x43C0_0000


@dataclass(frozen=True)
class Hardware:
    """An accelerator, its .bit file and its manifest."""

    accelerator: Accelerator
    bitfile: bytes
    manifest: Manifest

    @property
    def bitstream(self) -> str:
        return sha256(self.bitfile)

    def program(self, **fields: Any) -> LoadBitstream:
        return LoadBitstream(self.bitstream, self.manifest, **fields)


def make_hardware(form: Form, parameters: str = "pynq") -> Hardware:
    accelerator = Accelerator.for_parameters(load_parameters(parameters), clock_hz=CLOCK_HZ)
    library = build(accelerator, form)
    return Hardware(
        accelerator,
        bitfile(f"vta_{accelerator.parameters.name}", PART, library.read_bytes()),
        Manifest(
            board="pynq",
            part=PART,
            parameters=accelerator.parameters.name,
            isa=str(accelerator.isa),
            clock_hz=CLOCK_HZ,
            register_base=REGISTER_BASE,
            identity=identity_of(accelerator),
        ),
    )


@pytest.fixture(scope="session")
def golden() -> Hardware:
    return make_hardware("golden")


@pytest.fixture(scope="session")
def board_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("board_model") / "board_model.json"
    memory = {"base": 0x1000_0000, "bytes": 16 << 20, "read_latency": 32, "write_latency": 16}
    memory |= {"bandwidth_numerator": 0, "bandwidth_denominator": 1, "jitter": 0, "seed": 1}
    settings = {"name": "virtual:pynq", "part": PART, "clock_hz": CLOCK_HZ, "register_base": REGISTER_BASE}
    path.write_text(json.dumps({**settings, "memory": memory, "quantum_cycles": 50_000, "time_scale": 1000.0}))
    return path


@contextmanager
def running_agent(board_model: Path) -> Iterator[Agent]:
    """An agent in a home of its own; not started yet, but ended at the end."""
    if not paths.board_python().exists():
        pytest.skip(f"no board environment at {paths.board_python()}: make setup")
    environment = {**os.environ, "HILT_VERILATED": str(board_model)}
    # Not pytest's own directory: a socket's path holds 107 bytes.
    with tempfile.TemporaryDirectory(prefix="hilt-") as directory:
        board = Agent(paths.board_python(), paths.board_package_directory().parent, Path(directory), environment)
        try:
            yield board
        finally:
            board.stop()


@contextmanager
def connected(agent: Agent, *options: str) -> Iterator[Client]:
    """A session on a daemon that is started with these options."""
    agent.start(*options)
    session = agent.connect()
    session.hello()
    try:
        yield session
    finally:
        session.close()


def load(session: Client, hardware: Hardware) -> Client:
    session.put({hardware.bitstream: hardware.bitfile})
    session.program(hardware.program())
    return session


@pytest.fixture
def agent(board_model: Path) -> Iterator[Agent]:
    with running_agent(board_model) as board:
        yield board


@pytest.fixture
def silence() -> str:
    """Seconds after which the daemon kills a worker that gives no sign of life: more than a busy machine may take."""
    return "60"


@pytest.fixture
def client(agent: Agent, silence: str) -> Iterator[Client]:
    """A session on a daemon."""
    with connected(agent, "--silence", silence) as session:
        yield session


@pytest.fixture
def board(client: Client, golden: Hardware) -> Client:
    """A session on a board that is programmed with the golden model."""
    return load(client, golden)
