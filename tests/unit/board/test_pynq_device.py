"""The device of a network that runs on a board alone: its reads of VTA, its programs, and its refusals."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hilt_runtime import DeviceError, MemoryNeededError, TargetError, device
from hilt_runtime.device import PynqDevice, VtaDevice
from hilt_runtime.isa import BANDS_OF_BUILD, READ_PORTS_OF_BUILD, TABLE_OF_BUILD, WINDOW_OF_BUILD
from hilt_runtime.register_protocol import ResetStuckError
from hilt_runtime.registers import IDENTITY_VALUE, Register

GEOMETRY, SIZES, BUILD = 0x0400_0000, 0xF0F1_F211, 0x0000_0021
TARGET: dict[str, Any] = {
    "clock_hz": 142_857_143, "register_base": 0x43C0_0000, "isa": "A", "parameters": "1x16",
    "identity": [GEOMETRY, SIZES, BUILD],
}  # fmt: skip


class Pynq:
    """pynq, with VTA's registers, on a board whose clock is set by it unless it says its own."""

    def __init__(self) -> None:
        self.did: list[Any] = []
        self.registers = {
            Register.IDENTITY: IDENTITY_VALUE, Register.GEOMETRY: GEOMETRY, Register.BUFFER_SIZES: SIZES,
            Register.BUILD: BUILD,
        }  # fmt: skip
        self.Clocks = SimpleNamespace(fclk0_mhz=None)
        self.Device = SimpleNamespace(active_device=SimpleNamespace())
        self.error: Exception | None = None

    def MMIO(self, base: int, size: int) -> Any:  # noqa: N802
        self.did.append((base, size))
        return SimpleNamespace(read=lambda offset: self.registers.get(offset, 0))

    def Bitstream(self, path: str) -> Any:  # noqa: N802
        return SimpleNamespace(download=lambda: self.did.append(path))

    def allocate(self, shape: tuple[int], dtype: Any, cacheable: bool) -> Any:
        assert cacheable and dtype is np.uint8
        if self.error is not None:
            raise self.error
        return SimpleNamespace(shape=shape, freebuffer=lambda: self.did.append("freed"))


@pytest.fixture
def pynq(monkeypatch: pytest.MonkeyPatch) -> Pynq:
    made = Pynq()
    monkeypatch.setitem(sys.modules, "pynq", made)  # type: ignore[arg-type]
    return made


def test_a_board_without_pynq_is_told_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynq", None)  # type: ignore[arg-type]
    with pytest.raises(DeviceError, match="pynq cannot be imported .*: run the network on a board with PYNQ"):
        PynqDevice(TARGET)


def test_a_board_that_is_programmed_is_read_only(pynq: Pynq) -> None:
    made = PynqDevice(TARGET)
    assert pynq.did == [(0x43C0_0000, 0x4000)] and pynq.Clocks.fclk0_mhz is None
    assert (made.parameters, made.isa, made.clock_hz, made.bitstream) == ("1x16", "A", 142_857_143, "")
    assert (made.table, made.window, made.bands) == (False, False, False)
    assert made._protocol.counts_cycles and made._protocol.clock_hz == 142_857_143
    made.check(TARGET, "model.hilt")


@pytest.mark.parametrize(
    ("bit", "name"),
    [(TABLE_OF_BUILD, "table"), (WINDOW_OF_BUILD, "window"), (BANDS_OF_BUILD, "bands"), (READ_PORTS_OF_BUILD, "")],
)
def test_features_are_read_and_are_no_difference_of_parameters(pynq: Pynq, bit: int, name: str) -> None:
    pynq.registers[Register.BUILD] = BUILD | bit
    made = PynqDevice(TARGET)
    assert made.parameters == "1x16"
    assert [feature for feature in ("table", "window", "bands") if getattr(made, feature)] == [name] * bool(name)


@pytest.mark.parametrize("register", [Register.GEOMETRY, Register.BUFFER_SIZES, Register.BUILD])
def test_other_registers_are_another_accelerator(pynq: Pynq, register: int) -> None:
    pynq.registers[register] ^= 1 << 3
    made = PynqDevice(TARGET)
    there = [pynq.registers[each] for each in (Register.GEOMETRY, Register.BUFFER_SIZES, Register.BUILD)]
    assert made.parameters == "registers {:08x} {:08x} {:08x}".format(*there)
    with pytest.raises(TargetError, match="bundle model.hilt is for parameters 1x16, this board has registers "):
        made.check(TARGET, "model.hilt")


def test_a_public_bitstream_has_no_registers_to_compare(pynq: Pynq) -> None:
    pynq.registers[Register.IDENTITY] = 0
    pynq.registers[Register.BUILD] = TABLE_OF_BUILD
    made = PynqDevice(TARGET)
    assert made.parameters == "" and not made.table and not made._protocol.counts_cycles
    made.check(TARGET, "model.hilt")


def test_a_target_without_identity_is_not_compared(pynq: Pynq) -> None:
    assert PynqDevice({**TARGET, "identity": None}).parameters == ""


def test_a_bitstream_is_loaded_and_its_clock_set_where_nothing_else_sets_it(pynq: Pynq, tmp_path: Path) -> None:
    file = tmp_path / "vta.bit"
    file.write_bytes(b"bits")
    digest = hashlib.sha256(b"bits").hexdigest()
    made = PynqDevice({**TARGET, "bitstream_file": digest}, str(file))
    assert pynq.did[0] == str(file) and made.bitstream == ""
    assert pynq.Clocks.fclk0_mhz == pytest.approx(142.857143)
    pynq.Clocks.fclk0_mhz = None
    pynq.Device.active_device.clock_hz = 10**8
    PynqDevice(TARGET, str(file))
    assert pynq.Clocks.fclk0_mhz is None
    with pytest.raises(TargetError, match=f"has SHA-256 {digest[:12]}, the bundle is for eeeeeeeeeeee: take that one"):
        PynqDevice({**TARGET, "bitstream_file": "e" * 64}, str(file))
    with pytest.raises(DeviceError, match="nowhere.bit cannot be read: No such file or directory"):
        PynqDevice(TARGET, str(tmp_path / "nowhere.bit"))


def test_memory_is_pynqs_and_goes_back(pynq: Pynq) -> None:
    made = PynqDevice(TARGET)
    memory = made.allocate(4096)
    assert memory.shape == (4096,)
    made.free(memory)
    assert pynq.did[-1] == "freed"


@pytest.mark.parametrize("error", [MemoryError("none"), RuntimeError("none"), OSError("none")])
@pytest.mark.parametrize(
    ("kernel", "free", "known"),
    [("CmaFree: 12 kB\n", 5, ", 12288 bytes are free"), ("CmaFree:\n", None, ""), (None, 5, ", 5 bytes are free")],
)
def test_memory_that_is_not_there_is_told_with_what_is(
    pynq: Pynq,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    kernel: str | None,
    free: int | None,
    known: str,
) -> None:
    if kernel is not None:
        (tmp_path / "meminfo").write_text(kernel)
    monkeypatch.setattr(device, "Path", lambda path: tmp_path / "meminfo")
    pynq.Device.active_device.contiguous_bytes_free = free
    pynq.error = error
    with pytest.raises(MemoryNeededError) as told:
        device.allocate(pynq, 999)
    text = str(told.value)
    assert text.startswith(f"the network needs 999 bytes of contiguous memory{known}: raise") and "(none)" in text


def test_a_reset_that_does_not_end_names_the_next_step(pynq: Pynq) -> None:
    made = PynqDevice(TARGET)
    asked: list[Any] = []

    def run(*given: Any) -> str:
        asked.append(given)
        if len(asked) > 1:
            raise ResetStuckError("the ports wait")
        return "ran"

    made._protocol = SimpleNamespace(run=run)  # type: ignore[assignment]
    words = SimpleNamespace(physical_address=0x1000)
    assert made.run(words, 3, 0.5, 0.1) == "ran" and asked == [(0x1000, 3, 0.5, 0.1)]
    with pytest.raises(DeviceError, match="the ports wait: load the bitstream again, or reboot the board"):
        made.run(words, 3, 0.5)


@pytest.mark.parametrize("feature", ["table", "window", "bands"])
def test_a_feature_that_is_not_there_is_refused(feature: str) -> None:
    class Own(VtaDevice):
        parameters, isa = "1x16", "A"

    made, target = Own(), {"parameters": "1x16", "isa": "A", feature: True}
    with pytest.raises(TargetError, match="is for an accelerator with .*, this board has none"):
        made.check(target, "model.hilt")
    setattr(made, feature, True)
    made.check(target, "model.hilt")


@pytest.mark.parametrize(
    ("there", "wanted", "refused"), [("", "a" * 64, False), ("b" * 64, "", False), ("b" * 64, "a" * 64, True)]
)
def test_bitstreams_are_compared_where_both_are_known(there: str, wanted: str, refused: bool) -> None:
    made = VtaDevice()
    made.bitstream = there
    target = {"parameters": "1x16", "isa": "A", "bitstream": wanted}
    if not refused:
        made.check(target, "model.hilt")
        return
    with pytest.raises(TargetError, match=f"is for bitstream {'a' * 12}, this board has {'b' * 12}"):
        made.check(target, "model.hilt")
