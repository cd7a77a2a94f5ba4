"""A board whose disk is full: said by name, nothing half stored, and well again when there is room."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hilt import paths
from hilt_board.protocol import HasBlobs, Measure, MissingBlobs, UploadBlob
from tests.e2e.agent.client import Agent
from tests.e2e.agent.conftest import Hardware
from tests.e2e.agent.programs import add_constant, sha256

DISK_BYTES = 64 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=700", "tmpfs", str(tmp_path)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("needs the right to mount a small file system")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def test_a_full_disk_is_said_and_survived(small_disk: Path, board_model: Path, golden: Hardware) -> None:
    environment = {**os.environ, "HILT_VERILATED": str(board_model)}
    agent = Agent(paths.board_python(), paths.board_package_directory().parent, small_disk, environment)
    agent.start()
    try:
        client = agent.connect()
        client.hello()
        client.put({golden.bitstream: golden.bitfile})
        client.program(golden.program())

        large = bytes(DISK_BYTES)
        assert client.refused(UploadBlob(sha256(large), len(large), 0, large[: 1 << 20])) == "disk_full"
        assert client.ask(HasBlobs((golden.bitstream,)), MissingBlobs).sha256 == ()

        prepared = add_constant(golden.accelerator, golden.bitstream, "run/1/0")
        client.put(prepared.blobs)
        filler = small_disk / "filler"
        with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
            while True:
                file.write(bytes(4096))
        assert client.refused(Measure(prepared.trial, prepared.code)) == "disk_full"
        assert client.status().trials == 0

        filler.unlink()
        assert client.measure(prepared).outcome == "ok"
        client.close()
    finally:
        agent.stop()
