"""One simulated accelerator: the C API of hls/sim/vta_sim.h bound to Python."""

from __future__ import annotations

import ctypes
import json
import os
import time
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hilt_virtual_board.model import API_VERSION, ModelMemory

MEMORY_ALIGNMENT = 4096
_PIECE = 10_000
"""Cycles until Ctrl-C is heard for the first time."""
_HEARD_SECONDS = 0.1
"""A piece that took less is followed by one of twice the cycles: the golden model waits for any number at once."""


class SimulatorError(RuntimeError):
    """The library refused: not one of ours, an impossible memory, or an address or register that is not there."""


class DeviceStatus(IntEnum):
    """The result of a step (vta_sim.h)."""

    DONE = 0
    RUNNING = 1
    FAULT = 2
    IDLE = 3


@dataclass(frozen=True)
class MemoryModel:
    """The memory behind the AXI ports: [base, base + bytes). Latencies in accelerator cycles.

    `bandwidth` is bytes per cycle as (numerator, denominator), shared by all ports; (0, 1) is the bus width a cycle.
    `jitter` is the largest extra read latency, drawn from a generator seeded with `seed`.
    """

    base: int = 0
    bytes: int = 1 << 28
    read_latency: int = 32
    write_latency: int = 16
    bandwidth: tuple[int, int] = (0, 1)
    jitter: int = 0
    seed: int = 0


@dataclass(frozen=True)
class StageCounters:
    """Cycles, bytes and instructions of one stage since fetch was last started (vta_sim.h)."""

    busy: int
    starved: int
    stalled: int
    bytes: int
    instructions: int


@dataclass(frozen=True)
class Counters:
    """The counters since the last start of fetch.

    The golden model has no time: its `cycles` are instructions and micro-ops, its busy, starved and stalled are 0.
    """

    cycles: int
    macs: int
    fetch: StageCounters
    load: StageCounters
    compute: StageCounters
    store: StageCounters


def memory_structure(memory: MemoryModel) -> ctypes.Structure:
    """`memory` as the libraries take it: a vta_memory_model.

    Raises SimulatorError where a number does not fit it, of which C would take the low bits.
    """
    values = (
        memory.base,
        memory.bytes,
        memory.read_latency,
        memory.write_latency,
        *memory.bandwidth,
        memory.jitter,
        memory.seed,
    )
    for (name, kind), value in zip(ModelMemory._fields_, values, strict=True):
        if not 0 <= value < 1 << 8 * ctypes.sizeof(kind):
            raise SimulatorError(f"a memory with {name} {value} cannot be: it has {8 * ctypes.sizeof(kind)} bits")
    return ModelMemory(*values)


_STAGE_COUNTERS = ("busy", "starved", "stalled", "bytes", "instructions")


class _StageCounters(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in _STAGE_COUNTERS)


class _Counters(ctypes.Structure):
    _fields_ = (
        ("cycles", ctypes.c_uint64),
        ("macs", ctypes.c_uint64),
        ("fetch", _StageCounters),
        ("load", _StageCounters),
        ("compute", _StageCounters),
        ("store", _StageCounters),
    )


class SimulatedDevice:
    """The accelerator in the library at `path` (hilt.simulator.build), with `memory` behind it.

    Close it, or use `with`. Not for more than one thread. Raises SimulatorError where the library or the memory model
    cannot be used.
    """

    def __init__(self, path: Path, memory: MemoryModel) -> None:
        self._library = _load(path)
        self.model = memory
        error = ctypes.create_string_buffer(256)
        self._device = self._library.vta_create(ctypes.byref(memory_structure(memory)), error, len(error))
        if not self._device:
            raise SimulatorError(f"{path.name} cannot simulate this memory: {error.value.decode()}")
        pointer = self._library.vta_memory(self._device)
        self._memory: NDArray[np.uint8] = np.ctypeslib.as_array(pointer, shape=(memory.bytes,))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Frees the device. Views of its memory must not be used any more."""
        if self._device:
            self._library.vta_destroy(self._device)
            self._device = None

    @property
    def description(self) -> dict[str, Any]:
        """Return the library's description of itself: form, parameters, isa, bus_bits, hazards."""
        described: dict[str, Any] = json.loads(self._library.vta_describe().decode())
        return described

    @property
    def memory(self) -> NDArray[np.uint8]:
        """The whole memory, uint8 (bytes,), not a copy: index 0 is the byte at `model.base`."""
        return self._memory

    def view(self, address: int, count: int) -> NDArray[np.uint8]:
        """The bytes [address, address + count), not a copy. Raises SimulatorError where they are not all memory."""
        start = address - self.model.base
        if start < 0 or count < 0 or start + count > self.model.bytes:
            raise SimulatorError(f"{count} bytes at {address:#x} are not all in {self._extent()}")
        return self._memory[start : start + count]

    def read_memory(self, address: int, count: int) -> bytes:
        """A copy of `count` bytes. Raises SimulatorError outside the memory."""
        return self.view(address, count).tobytes()

    def write_memory(self, address: int, contents: bytes | NDArray[Any]) -> None:
        """Raises SimulatorError outside the memory."""
        if isinstance(contents, np.ndarray):
            contents = np.ascontiguousarray(contents).tobytes()
        self.view(address, len(contents))[:] = np.frombuffer(contents, dtype=np.uint8)

    def read_register(self, offset: int) -> int:
        """The 32-bit register at this offset (HARDWARE.md section 4). Raises SimulatorError where there is none."""
        value = ctypes.c_uint32()
        if self._library.vta_read_register(self._device, offset, ctypes.byref(value)):
            raise SimulatorError(f"no register at {offset:#x}")
        return value.value

    def write_register(self, offset: int, value: int) -> None:
        """Raises SimulatorError where there is no such register or the value has more than 32 bits."""
        if not 0 <= value < 1 << 32:
            raise SimulatorError(f"{value:#x} does not fit the register at {offset:#x}: registers have 32 bits")
        if self._library.vta_write_register(self._device, offset, value):
            raise SimulatorError(f"no register at {offset:#x}")

    def step(self, max_cycles: int) -> tuple[DeviceStatus, int]:
        """Run until FINISH, a fault, or `max_cycles` more; return the status and the cycles run.

        Raises:
            SimulatorError: The limit has more than 64 bits.
        """
        if not 0 <= max_cycles < 1 << 64:
            raise SimulatorError(f"a limit of {max_cycles} cycles: it is from 0 to {(1 << 64) - 1}")
        total, ran, most = 0, ctypes.c_uint64(), _PIECE
        while True:
            began, piece = time.monotonic(), min(max_cycles - total, most)
            status = self._library.vta_step(self._device, piece, ctypes.byref(ran))
            most = 2 * most if time.monotonic() - began < _HEARD_SECONDS else most
            if status < 0:
                raise SimulatorError(f"vta_step refused ({status})")
            total += ran.value
            if status != DeviceStatus.RUNNING or total == max_cycles:
                return DeviceStatus(status), total

    def reset(self) -> None:
        """Power-on state of the accelerator; memory keeps its contents."""
        self._library.vta_reset(self._device)

    def trace(self, path: Path | None) -> None:
        """Write every signal to `path` as FST from now on; stop with None. Only the RTL's profile `trace` can.

        Raises:
            SimulatorError: The library has no traces, or the file cannot be written.
        """
        trace = getattr(self._library, "vta_trace", None)
        if trace is None or trace(ctypes.c_void_p(self._device), None):
            raise SimulatorError(f"no waves to {path}: this model was built without traces")
        if path is None:
            return
        try:
            path.open("wb").close()  # Verilator's writer does not tell
        except OSError as error:
            raise SimulatorError(f"cannot write waves to {path}: {error.strerror}") from error
        if trace(ctypes.c_void_p(self._device), os.fsencode(path)):
            raise SimulatorError(f"cannot write waves to {path}")

    def counters(self) -> Counters:
        counters = _Counters()
        self._library.vta_read_counters(self._device, ctypes.byref(counters))
        stages = {
            stage: StageCounters(*(getattr(getattr(counters, stage), name) for name in _STAGE_COUNTERS))
            for stage in ("fetch", "load", "compute", "store")
        }
        return Counters(cycles=counters.cycles, macs=counters.macs, **stages)

    def _extent(self) -> str:
        return f"the memory {self.model.base:#x}..{self.model.base + self.model.bytes:#x}"


def _load(path: Path) -> ctypes.CDLL:
    device, status = ctypes.c_void_p, ctypes.c_int
    u32, u64, size = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "vta_api_version": (u32, []),
        "vta_describe": (ctypes.c_char_p, []),
        "vta_create": (device, [ctypes.POINTER(ModelMemory), ctypes.c_char_p, size]),
        "vta_destroy": (None, [device]),
        "vta_reset": (None, [device]),
        "vta_memory": (ctypes.POINTER(ctypes.c_uint8), [device]),
        "vta_read_register": (status, [device, u32, ctypes.POINTER(u32)]),
        "vta_write_register": (status, [device, u32, u32]),
        "vta_step": (status, [device, u64, ctypes.POINTER(u64)]),
        "vta_read_counters": (None, [device, ctypes.POINTER(_Counters)]),
    }
    try:
        library = ctypes.CDLL(str(path))
        for name, (result, arguments) in signatures.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise SimulatorError(f"{path} is not a VTA model: {error}") from error
    version = library.vta_api_version()
    if version != API_VERSION:
        raise SimulatorError(f"{path} speaks version {version} of vta_sim.h, hilt speaks {API_VERSION}; build it again")
    return library
