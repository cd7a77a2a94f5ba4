"""The virtual board's device against pynq's Device, in every version that boards have."""

from __future__ import annotations

import gc
import hashlib
import importlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hilt.virtual.bitstream import bitfile
from hilt_board.bitfile import BitfileError
from hilt_board.home import open_home
from hilt_runtime.registers import Register
from hilt_virtual_board.board_model import ModelSettings


class OldDevice:
    """The members of pynq 2.7's Device that a subclass could get in the way of; all of them come from the PL server."""

    bitfile_name = ip_dict = mem_dict = timestamp = property(lambda self: None)

    def __init__(self, tag: str) -> None:
        self.tag = tag


class Buffer:
    """pynq's buffer, with its arguments."""

    def __init__(self, shape: Any, dtype: Any, **given: Any) -> None:
        self.shape, self.dtype, self.given = shape, dtype, given


class Model:
    """A fake accelerator: memory, and registers that keep written values."""

    def __init__(self) -> None:
        self.registers: dict[int, int] = {}
        self.stepped: list[int] = []
        self.resets = 0
        self.memory = np.zeros(MEMORY, np.uint8)

    def reset(self) -> None:
        self.resets += 1

    def step(self, cycles: int) -> None:
        self.stepped.append(cycles)

    def read_register(self, offset: int) -> int:
        return self.registers.get(offset, 0xA0B0C0D0 + offset)

    def write_register(self, offset: int, value: int) -> None:
        self.registers[offset] = value

    def view(self, offset: int, size: int) -> Any:
        return self.memory[offset : offset + size]


BASE, PLACE, MEMORY = 0x1000_0000, 0x43C0_0000, 1 << 16
SETTINGS = ModelSettings(
    "virtual:pynq", "7z020clg400", 10**8, PLACE, {"base": BASE, "bytes": MEMORY}, 50_000, 500.0, run_seconds=2.0
)


@pytest.fixture
def verilated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    modules = {name: ModuleType(name) for name in ("pynq", "pynq.buffer", "pynq.pl_server", "pynq.pl_server.device")}
    vars(modules["pynq.buffer"])["PynqBuffer"] = Buffer
    vars(modules["pynq.pl_server.device"])["Device"] = OldDevice
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "hilt_virtual_board.verilated", raising=False)
    made = importlib.import_module("hilt_virtual_board.verilated")
    monkeypatch.delitem(sys.modules, "hilt_virtual_board.verilated")
    monkeypatch.setenv("HILT_AGENT_HOME", str(tmp_path / "agent"))
    monkeypatch.setattr(made, "Model", lambda library, memory: Model())
    monkeypatch.setattr(ModelSettings, "memory_model", lambda settings: settings.memory)
    return made


def load(device: Any, path: Path, payload: bytes, part: str = "7z020clg400") -> None:
    path.write_bytes(bitfile("vta", part, payload))
    device.download(SimpleNamespace(bitfile_name=str(path)))


@pytest.fixture
def device(verilated: ModuleType, tmp_path: Path) -> Any:
    made = verilated.VerilatedDevice(SETTINGS)
    load(made, tmp_path / "vta.bit", b"\x7fELF model")
    return made


def test_the_same_bitstream_again_is_a_reset_and_memory_stays(device: Any, tmp_path: Path) -> None:
    model = device._model
    load(device, tmp_path / "vta.bit", b"\x7fELF model")
    assert device._model is model and model.resets == 1
    load(device, tmp_path / "other.bit", b"\x7fELF other")
    assert device._model is not model and device.contiguous_bytes_free == MEMORY
    library = open_home().models / (hashlib.sha256(b"\x7fELF other").hexdigest() + ".so")
    assert library.read_bytes() == b"\x7fELF other" and library.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in library.parent.iterdir() if path.suffix != ".so"] == []
    assert (device.clock_hz, device.time_scale, device.wall_clock) == (10**8, 500.0, None)


def test_a_file_that_is_not_for_this_board_leaves_it_as_it_was(device: Any, tmp_path: Path) -> None:
    model = device._model
    with pytest.raises(BitfileError, match="for a real board: its payload is not a model"):
        load(device, tmp_path / "real.bit", b"\xff bits")
    with pytest.raises(BitfileError, match="7z010"):
        load(device, tmp_path / "small.bit", b"\x7fELF model", "7z010clg400")
    assert device._model is model and model.resets == 0


def test_registers_are_words_at_the_boards_place(device: Any, verilated: ModuleType) -> None:
    device.write_registers(PLACE + 0x10, bytes(range(1, 9)))
    assert device._model.registers == {0x10: 0x04030201, 0x14: 0x08070605}
    assert device.read_registers(PLACE + 0x10, 8) == bytes(range(1, 9))
    assert device.read_registers(PLACE + 0x3FFC, 4) == (0xA0B0C0D0 + 0x3FFC).to_bytes(4, "little")
    for address, length in ((PLACE - 4, 4), (PLACE + 0x3FFC, 8), (PLACE + 2, 4), (PLACE, 2), (0, 4)):
        with pytest.raises(verilated.ModelError, match=f"no register answers at 0x{address:x}"):
            device.read_registers(address, length)
    assert device._model.stepped == []


def test_a_program_is_not_done_before_its_time(device: Any, verilated: ModuleType, monkeypatch: Any) -> None:
    slept: list[float] = []
    now = [100.0]
    monkeypatch.setattr(verilated, "time", SimpleNamespace(sleep=slept.append, monotonic=lambda: now[0]))
    device.read_registers(PLACE + Register.DONE_READ, 4)
    device.write_registers(PLACE + Register.FETCH_CONTROL, b"\x01\0\0\0")
    now[0] += 0.5
    device.read_registers(PLACE + Register.DONE_READ, 4)
    now[0] += 5.0
    device.read_registers(PLACE + Register.DONE_READ, 4)
    assert slept == [0.0, 1.5, 0.0] and device._model.stepped == [50_000] * 3


def test_a_public_bitstreams_registers_are_those_of_its_time(device: Any) -> None:
    written: list[Any] = []
    device._public = SimpleNamespace(
        read=lambda offset: offset, write=lambda *given: written.append(given), now="its clock", reset=lambda: None
    )
    assert device.read_registers(PLACE + 0x20, 8) == b"\x20\0\0\0\x24\0\0\0"
    device.write_registers(PLACE + 0x20, b"\x07\0\0\0\x08\0\0\0")
    assert written == [(0x20, 7), (0x24, 8)] and device.wall_clock == "its clock"
    assert device._model.registers == {} and device._model.stepped == []


@pytest.mark.slow
def test_memory_is_the_models_own_and_free_again_when_nobody_holds_it(device: Any, verilated: ModuleType) -> None:
    first, second = device.allocate((3, 5), "<i4"), device.allocate((0,), "u1")
    assert first.given["device_address"] == BASE and second.given["device_address"] == BASE + 4096
    assert (first.given["bo"], len(first.given["buffer"]), len(second.given["buffer"])) == (0, 60, 1)
    first.given["buffer"][0] = 7
    assert device._model.memory[0] == 7 and device.contiguous_bytes_free == MEMORY - 8192
    device.allocate((MEMORY - 8192,), "u1")
    with pytest.raises(MemoryError):
        device.allocate((MEMORY - 4096,), "u1")
    del first, second
    gc.collect()
    assert device.contiguous_bytes_free == MEMORY


def test_nothing_answers_before_a_bitstream_is_loaded(verilated: ModuleType) -> None:
    bare = verilated.VerilatedDevice(SETTINGS)
    for act in (lambda: bare.read_registers(PLACE, 4), lambda: bare.write_registers(PLACE, b"1234")):
        with pytest.raises(verilated.NotProgrammedError, match="no register answers at 0x43c00000: load a bitstream"):
            act()
    with pytest.raises(verilated.NotProgrammedError, match="load a bitstream first"):
        bare.allocate((1,), "u1")
