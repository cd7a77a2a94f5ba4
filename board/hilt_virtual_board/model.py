"""A model of the accelerator (a shared library that exports hls/sim/vta_sim.h), bound with ctypes."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any, Tuple

API_VERSION = 1
DONE, RUNNING, FAULT, IDLE = 0, 1, 2, 3


class ModelError(Exception):
    """The library is no model, or refuses a request; one line gives the cause."""


class ModelMemory(ctypes.Structure):
    """struct vta_memory_model: physical memory and its timing, in accelerator cycles."""

    _fields_ = (
        ("memory_base", ctypes.c_uint64),
        ("memory_bytes", ctypes.c_uint64),
        ("read_latency", ctypes.c_uint32),
        ("write_latency", ctypes.c_uint32),
        ("bandwidth_numerator", ctypes.c_uint32),
        ("bandwidth_denominator", ctypes.c_uint32),
        ("jitter", ctypes.c_uint32),
        ("seed", ctypes.c_uint32),
    )


_DEVICE = ctypes.c_void_p
_SIGNATURES = {
    "vta_api_version": (ctypes.c_uint32, ()),
    "vta_create": (_DEVICE, (ctypes.POINTER(ModelMemory), ctypes.c_char_p, ctypes.c_size_t)),
    "vta_destroy": (None, (_DEVICE,)),
    "vta_reset": (None, (_DEVICE,)),
    "vta_memory": (ctypes.c_void_p, (_DEVICE,)),
    "vta_read_register": (ctypes.c_int, (_DEVICE, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32))),
    "vta_write_register": (ctypes.c_int, (_DEVICE, ctypes.c_uint32, ctypes.c_uint32)),
    "vta_step": (ctypes.c_int, (_DEVICE, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64))),
}


class Model:
    """One accelerator and its memory. Lives until the last buffer in its memory is gone."""

    def __init__(self, library: Path, memory: ModelMemory) -> None:
        """Load a model.

        Raises ModelError if the library cannot be loaded, has another API, or refuses the memory model.
        """
        try:
            self._library = ctypes.CDLL(str(library), mode=os.RTLD_NOW | os.RTLD_LOCAL)
            for name, (result, arguments) in _SIGNATURES.items():
                function = getattr(self._library, name)
                function.restype, function.argtypes = result, arguments
        except (OSError, AttributeError) as error:
            raise ModelError("payload is no model of the accelerator: {}".format(error)) from None
        version = self._library.vta_api_version()
        if version != API_VERSION:
            raise ModelError("model has API version {}, the agent needs {}".format(version, API_VERSION))
        reason = ctypes.create_string_buffer(512)
        self._device = self._library.vta_create(ctypes.byref(memory), reason, len(reason))
        if not self._device:
            raise ModelError("model refuses its memory: {}".format(reason.value.decode("utf-8", "replace")))
        self._memory = int(self._library.vta_memory(self._device))

    def __del__(self) -> None:
        if getattr(self, "_device", None):
            self._library.vta_destroy(self._device)

    def reset(self) -> None:
        """Reset the accelerator to its power-on state; memory keeps its contents."""
        self._library.vta_reset(self._device)

    def view(self, offset: int, count: int) -> Any:
        """Return `count` bytes of the memory itself, from byte `offset` of it.

        A ctypes array that keeps the model alive.
        """
        region = (ctypes.c_uint8 * count).from_address(self._memory + offset)
        region._model = self  # type: ignore[attr-defined]
        return region

    def read_register(self, offset: int) -> int:
        value = ctypes.c_uint32()
        self._check(self._library.vta_read_register(self._device, offset, ctypes.byref(value)), offset)
        return value.value

    def write_register(self, offset: int, value: int) -> None:
        self._check(self._library.vta_write_register(self._device, offset, value), offset)

    def step(self, cycles: int) -> Tuple[int, int]:
        """Run at most `cycles` more; return (DONE, RUNNING, FAULT or IDLE, cycles run)."""
        ran = ctypes.c_uint64()
        status = self._library.vta_step(self._device, cycles, ctypes.byref(ran))
        if status < 0:
            raise ModelError("model returned {} from a step".format(status))
        return status, ran.value

    @staticmethod
    def _check(status: int, offset: int) -> None:
        if status < 0:
            raise ModelError("no register at offset 0x{:x}".format(offset))
