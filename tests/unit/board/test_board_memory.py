"""The daemon's board with real workers: contiguous memory lasts over changes of bitstream, by both ways of pynq."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hilt.virtual.bitstream import bitfile
from hilt_board.board import Board
from hilt_board.home import Home, open_home
from hilt_board.protocol import (
    AgentFailure,
    BitstreamLoaded,
    Input,
    LoadBitstream,
    Measure,
    Measured,
    Output,
    Relocation,
    TrialRequest,
)

from .examples import MANIFEST

pytestmark = pytest.mark.slow  # starts workers

_MIB = 1 << 20
PUBLIC = replace(MANIFEST, identity=None)
_FINISH = np.array([3, 0], dtype="<u8").tobytes()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("HILT_AGENT_HOME", str(tmp_path / "agent"))
    monkeypatch.setenv("HILT_VERILATED", "")
    (tmp_path / "cma").mkdir()
    monkeypatch.setenv("FAKE_CMA", str(tmp_path / "cma"))
    monkeypatch.setenv("FAKE_CMA_BYTES", str(32 * _MIB))
    fake = str(Path(__file__).with_name("fake_pynq"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([fake, os.environ.get("PYTHONPATH", "")]))
    return open_home()


@pytest.fixture(params=["2.7.0", "3.0.1"])
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FAKE_PYNQ_VERSION", request.param)
    return str(request.param)


@pytest.fixture
async def board(home: Home, version: str) -> AsyncIterator[Board]:
    made = Board(silence_seconds=20.0)
    yield made
    await made.close()


def stored(home: Home, data: bytes) -> str:
    digest = hashlib.sha256(data).hexdigest()
    (home.blobs / digest).write_bytes(data)
    return digest


def bitstream(home: Home, number: int) -> LoadBitstream:
    return LoadBitstream(stored(home, bitfile("vta", PUBLIC.part, b"payload %d" % number)), PUBLIC)


def trial(home: Home, program: LoadBitstream, size: int, number: int = 0) -> Measure:
    """Return a program of one FINISH with an input tensor of so many bytes."""
    tensor, expected = stored(home, bytes(size)), stored(home, bytes(16))
    made = TrialRequest(
        key=f"run/{number}/0",
        bitstream=program.bitstream,
        instructions=1,
        instruction_bytes=16,
        uops=0,
        uop_bytes=4,
        inputs=(Input("inp", "inp", tensor, size, 16),),
        output=Output("out", 16, 16, expected, "int8"),
        relocations=(Relocation("inp", 0),),
        dram_base_bit=25,
        limit_seconds=0.5,
    )
    return Measure(made, _FINISH)


async def test_memory_lasts_over_changes_of_bitstream(board: Board, home: Home, version: str) -> None:
    """Memory lasts over changes of bitstream.

    Each bitstream uses 20 of 32 MiB, so the memory of the one before must be free again.
    """
    workers = set()
    for number in range(4):
        program = bitstream(home, number % 2)
        assert isinstance(await board.load(program), BitstreamLoaded)
        assert isinstance(await board.measure(trial(home, program, 20 * _MIB, number)), Measured)
        workers.add(board.worker_pid)
    assert len(workers) == (4 if version == "2.7.0" else 1)


async def test_the_same_bitstream_again_keeps_its_worker(board: Board, home: Home, version: str) -> None:
    program = bitstream(home, 0)
    assert isinstance(await board.load(program), BitstreamLoaded)
    worker = board.worker_pid
    for clock in (1, 2, 3):  # another message, so that the bitstream is loaded again
        again = replace(program, manifest=replace(PUBLIC, fclk_hz=100_000_000 + clock))
        assert isinstance(await board.load(again), BitstreamLoaded)
        assert isinstance(await board.measure(trial(home, program, 20 * _MIB, clock)), Measured)
    assert board.worker_pid == worker


@pytest.mark.parametrize("version", ["3.0.1"], indirect=True)
async def test_a_trial_that_finds_no_memory_gets_a_new_worker_once(
    board: Board, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leak of whatever kind ends with its worker; a buffer here that the worker's process still holds."""
    program = bitstream(home, 0)
    assert isinstance(await board.load(program), BitstreamLoaded)
    leak = Path(os.environ["FAKE_CMA"], f"{board.worker_pid}-leak")
    leak.write_text(str(25 * _MIB))
    measured = await board.measure(trial(home, program, 20 * _MIB))
    assert isinstance(measured, Measured)
    assert board.worker_restarts == 1


@pytest.mark.parametrize("version", ["3.0.1"], indirect=True)
async def test_memory_that_another_process_holds_is_refused_after_a_new_worker_and_the_board_stays_usable(
    board: Board, home: Home
) -> None:
    program = bitstream(home, 0)
    assert isinstance(await board.load(program), BitstreamLoaded)
    notebook = Path(os.environ["FAKE_CMA"], f"{os.getpid()}-notebook")
    notebook.write_text(str(25 * _MIB))
    refused = await board.measure(trial(home, program, 20 * _MIB))
    assert isinstance(refused, AgentFailure) and refused.code == "out_of_memory"
    assert board.worker_restarts == 1
    notebook.unlink()
    assert isinstance(await board.measure(trial(home, program, 20 * _MIB, 1)), Measured)


async def test_a_worker_that_answers_for_another_trial_is_replaced(
    board: Board, home: Home, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = bitstream(home, 0)
    assert isinstance(await board.load(program), BitstreamLoaded)
    worker = board._worker
    assert worker is not None
    request = worker.request

    async def forged(message: object, seconds: float, silence: float) -> object:
        reply = await request(message, seconds, silence)  # type: ignore[arg-type]
        return replace(reply, key="other/1/0") if isinstance(reply, Measured) else reply

    monkeypatch.setattr(worker, "request", forged)
    measured = await board.measure(trial(home, program, _MIB))
    assert isinstance(measured, Measured) and measured.key == "run/0/0"
    assert board.worker_restarts == 1
