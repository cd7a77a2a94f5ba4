"""The cycles of a program from its transfers and instructions, without lowering: the basis of a first choice."""

from __future__ import annotations

import numpy as np

from hilt.schedule.features import Features
from hilt.tune.model_guided.memories import Floats
from hilt.vta.accelerator import Accelerator

_PIPELINE = 12.0
"""Cycles that any instruction takes besides its work."""
_EPILOGUE = 1.0
"""Cycles of an output tensor from its last sum to its STORE.

They are the reset, and SHR, MAX and MIN in one pass. Each takes two tensors a cycle if these lie in different banks
of the accumulator.
"""
_REQUESTS_IN_FLIGHT = 2.0
"""LOADs whose latencies overlap."""


def bytes_moved(accelerator: Accelerator, features: Features) -> Floats:
    """Return the bytes (n,) that configurations of hidden `features` (n, ...) move, those of instructions included."""
    code = features.column("instructions.all").astype(np.float64) * accelerator.instruction_bytes
    data = [features.column(f"bytes.{buffer}").astype(np.float64) for buffer in ("inp", "wgt", "out")]
    return np.asarray(np.sum([code, *data], axis=0))


class AnalyticModel:
    """Estimates for configurations given by their hidden features."""

    def __init__(self, accelerator: Accelerator, features: Features) -> None:
        """Take the hidden features (n, ...) of the configurations."""
        self._bus_bytes = accelerator.bytes_per_cycle
        self._instruction_bytes = accelerator.instruction_bytes

        def column(name: str) -> Floats:
            return features.column(name).astype(np.float64)

        self._macs = column("cycles.compute")
        self._loads = column("instructions.load_inp") + column("instructions.load_wgt")
        self._load_bytes = column("bytes.inp") + column("bytes.wgt")
        self._store_bytes, self._stores = column("bytes.out"), column("instructions.store")
        self._gemms, self._alus = column("instructions.gemm"), column("instructions.alu")
        self._instructions = column("instructions.all")
        self._tokens = column("tokens.load_to_compute")
        self._tiles = column("tiles")
        self._acc_elements = column("tile.acc_elements")
        self._threads = column("nVT")

    def cycles(self, coordinates: Floats) -> Floats:
        """Return estimated cycles (n,) with the memory at `coordinates` (3,).

        They are those of the slowest of load, compute, store, fetch and the shared bus. With one virtual thread, load
        and compute take turns instead.
        """
        read, write, slowdown = np.exp(coordinates)
        per_byte = slowdown / self._bus_bytes
        load = self._load_bytes * per_byte + self._loads * (_PIPELINE + read / _REQUESTS_IN_FLIGHT)
        epilogue = self._tiles * self._acc_elements * _EPILOGUE
        compute = self._macs + epilogue + (self._gemms + self._alus) * _PIPELINE
        store = self._store_bytes * per_byte + self._stores * (_PIPELINE + write)
        fetch = self._instructions * self._instruction_bytes * per_byte
        bus = (self._load_bytes + self._store_bytes) * per_byte + fetch
        together = np.maximum.reduce([load, compute, store, bus])
        in_turns = np.maximum(load + compute, bus)
        overlapped = together + 0.1 * (load + compute + store)
        return np.asarray(np.where(self._threads > 1, overlapped, in_turns + 0.3 * store) + read)
