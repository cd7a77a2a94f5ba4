"""The agent's driver and memory on pynq's own device for Zynq boards: that of the board's Python."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hilt import paths
from hilt.virtual.bitstream import bitfile

_PAYLOAD = bytes(range(16))


@pytest.fixture(scope="module")
def saw(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("kernel")
    path = folder / "vta.bit"
    path.write_bytes(bitfile("vta", "7z020clg484", _PAYLOAD))
    environment = {**os.environ, "PYTHONPATH": str(paths.board_package_directory().parent), "PYTHONWARNINGS": "ignore"}
    for name in ("XILINX_XRT", "HILT_VERILATED"):
        environment.pop(name, None)
    script = Path(__file__).with_name("embedded_device.py")
    words = [str(paths.board_python()), str(script), str(path), str(folder)]
    done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_fabric_has_its_clock_before_its_design_and_the_card_is_written_once(saw: dict[str, Any]) -> None:
    swapped = b"".join(_PAYLOAD[at : at + 4][::-1] for at in range(0, len(_PAYLOAD), 4)).hex()
    steps = [each for each in saw["loading"] if each[0] != "map"]
    assert steps == [["firmware", "vta.bin", swapped, pytest.approx(100.0)], ["xclbin"], ["xclbin"]], "loaded twice"
    assert saw["loaded"] == "vta.bin", "the FPGA manager's order"


def test_registers_are_the_four_pages_of_vta(saw: dict[str, Any]) -> None:
    assert ["map", 0x43C0_0000, 0x4000] in saw["loading"]


def test_buffers_are_cached_written_back_before_they_are_invalidated_and_used_again(saw: dict[str, Any]) -> None:
    assert saw["buffers"] == [["allocate", 1, 8192, True], ["flush", 1], ["flush", 1], ["invalidate", 1]]
    assert saw["addresses"] == [0x1680_0000, 0x1680_0100]
    assert saw["whole"]
