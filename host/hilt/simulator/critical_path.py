"""Critical paths of dependence graphs on machines that differ in their costs (hls/timing/public/critical_path.h)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.simulator.build import build
from hilt.simulator.device import SimulatorError
from hilt.vta.accelerator import Accelerator

SOURCES = 3
"""Segments at most that a segment waits for: the one before in its stage, and the senders of its tokens."""


@dataclass(frozen=True, eq=False)
class WorkGraph:
    """Segments of work that wait for others.

    `sources` int32 (k, 3) are the segments that end before each begins, written as their position + 1; 0 stands for
    none. `work` float64 (k, kinds) are the amounts of each kind of work. Both are contiguous.
    """

    sources: NDArray[np.int32]
    work: NDArray[np.float64]


class _Graph(ctypes.Structure):
    _fields_ = (("segments", ctypes.c_uint64), ("sources", ctypes.c_void_p), ("work", ctypes.c_void_p))


class CriticalPaths:
    """The library's functions. Any number of threads may call them at once."""

    def __init__(self, accelerator: Accelerator) -> None:
        """Raises MissingToolError or BuildError where the library cannot be built."""
        self._library = ctypes.CDLL(str(build(accelerator, "machine")))

    def ends(self, graphs: Sequence[WorkGraph], cycles: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the cycles (graphs, machines, 2) to the end of each one's first half of segments, and of all.

        `cycles` (kinds, machines) are the costs of a unit of work.
        """
        kinds, machines = cycles.shape
        found = np.zeros((len(graphs), machines, 2))
        sizes = (ctypes.c_uint64(kinds), ctypes.c_uint64(machines))
        self._call("vta_graph_ends", graphs, sizes, cycles, found)
        return found

    def work(self, graphs: Sequence[WorkGraph], cycles: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the work (graphs, 2, kinds) on the critical path to these ends, with the costs `cycles` (kinds,)."""
        found = np.zeros((len(graphs), 2, len(cycles)))
        self._call("vta_graph_paths", graphs, (ctypes.c_uint64(len(cycles)),), cycles, found)
        return found

    def _call(
        self,
        name: str,
        graphs: Sequence[WorkGraph],
        sizes: tuple[ctypes.c_uint64, ...],
        cycles: NDArray[np.float64],
        found: NDArray[np.float64],
    ) -> None:
        given = [_Graph(len(graph.sources), graph.sources.ctypes.data, graph.work.ctypes.data) for graph in graphs]
        costs = np.ascontiguousarray(cycles)
        refused = getattr(self._library, name)(
            ctypes.c_uint64(len(given)),
            (_Graph * len(given))(*given),
            *sizes,
            ctypes.c_void_p(costs.ctypes.data),
            ctypes.c_void_p(found.ctypes.data),
        )
        if refused:
            raise SimulatorError(f"the critical paths of {len(given)} programs were refused (status {refused})")
