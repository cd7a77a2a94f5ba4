"""LOADs ahead of their layer, in the waits of a chain's load stage.

A layer's LOADs stand behind those of the layer before it, so its first data comes when that layer's last tile is
computed. Where it is in memory earlier, and its place on chip is free, the twin's timeline shows for how long the load
stage waits, and for which LOADs. Other LOADs fill these waits: whole ones of inputs, parts of those of weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.network.movable import Movable, movable_loads
from hilt.schedule.chain import Chain, ChainLink, join
from hilt.schedule.chain_ahead import Ahead, stage_loads
from hilt.simulator.device import MemoryModel
from hilt.simulator.machine import MachineTwin
from hilt.simulator.twin import Twin, TwinStatus
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import MemoryType, decode
from hilt.vta.program import MAX_IMAGE_BYTES

_LOAD_CYCLES = 8
"""A LOAD takes so many cycles more than the memory's latency and its beats."""
_LEAST_CYCLES = 32
"""A part of a LOAD of weights takes so long at least, or its latency is most of it."""
_STORED_CYCLES = 1024
"""After so long a STORE has ended, and a compute instruction has passed its token on."""


def joined_ahead(
    links: Sequence[ChainLink],
    sizes: Mapping[str, int],
    accelerator: Accelerator,
    twin: Twin | MachineTwin,
    memory: MemoryModel,
) -> Chain:
    """Return the program of all layers, with the LOADs ahead that make it fastest, if any do. See `join`."""
    chain = join(links, sizes, accelerator)
    if len(links) == 1:
        return chain
    spans = twin.timeline(chain.program, memory)
    movable = movable_loads(chain, accelerator)
    chains = [chain]
    for kinds in ((MemoryType.WGT,), (MemoryType.WGT, MemoryType.INP)):
        waits = _Waits.of(chain, accelerator, spans, memory)
        ahead = waits.filled([each for each in movable if each.kind in kinds])
        if len(chain.program.instructions) + 2 * len(ahead) <= MAX_IMAGE_BYTES // accelerator.instruction_bytes:
            chains.append(join(links, sizes, accelerator, ahead))
    predicted = twin.predict([each.program for each in chains], memory)
    done = [number for number, each in enumerate(predicted) if each["status"] == TwinStatus.DONE]
    return chains[min(done, key=lambda number: int(predicted[number]["cycles"]), default=0)]


@dataclass
class _Waits:
    """The waits of a chain's load stage.

    Attributes:
        loads: The places (n,) of its LOADs among the instructions.
        begins: The cycle (n,) in which each begins.
        idle: The cycle (n,) from which on the stage waits for it and has nothing to load.
        ends: The cycle in which each instruction ends.
        latency: The cycles of a LOAD beside those of its data.
        block_cycles: The cycles of a weight block's data.
    """

    loads: NDArray[np.int64]
    begins: NDArray[np.int64]
    idle: NDArray[np.int64]
    ends: NDArray[np.int64]
    latency: int
    block_cycles: float

    @classmethod
    def of(cls, chain: Chain, accelerator: Accelerator, spans: NDArray[np.void], memory: MemoryModel) -> _Waits:
        """Return the waits of a chain with this timeline (SPAN) and memory."""
        loads = stage_loads(decode(chain.program.instructions, accelerator))
        begins, ends = spans["start"].astype(np.int64), spans["end"].astype(np.int64)
        income, cycles = memory.bandwidth
        rate = min(accelerator.bytes_per_cycle, income / cycles if income else accelerator.bytes_per_cycle)
        return cls(
            loads,
            begins[loads],
            np.append(0, ends[loads][:-1]),
            ends,
            memory.read_latency + _LOAD_CYCLES,
            accelerator.parameters.wgt_element_bytes / rate,
        )

    def filled(self, movable: Sequence[Movable]) -> list[Ahead]:
        """Return the LOADs that fill waits. Those that may come late only choose first."""
        ahead: list[Ahead] = []
        for each in sorted(movable, key=lambda each: -each.latest):
            ahead += self._weights(each) if each.kind is MemoryType.WGT else self._inputs(each)
        return ahead

    def _room(self, movable: Movable, high: int) -> tuple[int, NDArray[np.int64]]:
        """Return the first LOAD that others may precede, and the cycles in which the waits up to LOAD `high` begin."""
        low = min(int(np.searchsorted(self.loads, movable.latest)), high)
        ready = self.ends[movable.touched] if movable.touched >= 0 else 0
        if movable.stored >= 0:
            ready = max(ready, self.ends[movable.stored] + _STORED_CYCLES)
        return low, np.maximum(self.idle[low:high], ready)

    def _weights(self, part: Movable) -> list[Ahead]:
        """Let weights fill the last wait that has room for them, or else the longest ones."""
        (load,), (first, end) = part.loads, part.units
        low, idle = self._room(part, int(np.searchsorted(self.loads, part.begin)))
        room = self.begins[low : low + len(idle)] - idle - self.latency
        cycles = part.blocks * self.block_cycles
        whole = (end - first) * cycles
        enough = np.flatnonzero(room >= whole)
        ahead = []
        for place in (enough[-1:] if len(enough) else np.argsort(-room, kind="stable")).tolist():
            count = min(int(room[place] / cycles), end - first)
            if count <= 0 or room[place] < min(whole, _LEAST_CYCLES):
                break
            end -= count
            ahead.append(Ahead(load, end, count, low + place))
            self.idle[low + place] = idle[place] + self.latency + round(count * cycles)
            if end == first:
                break
        return ahead

    def _inputs(self, group: Movable) -> list[Ahead]:
        """Let LOADs of inputs fill the last waits in which they come in their order; none if not all can."""
        high, before = int(np.searchsorted(self.loads, group.begin)), self.idle.copy()
        ahead: list[Ahead] = []
        for load in reversed(group.loads):
            cycles = int(self.ends[self.loads[load]] - self.begins[load])
            low, idle = self._room(group, high)
            enough = np.flatnonzero(self.begins[low:high] - idle >= cycles)
            if not len(enough):
                self.idle = before
                return []
            place = low + int(enough[-1])
            self.idle[place] = idle[place - low] + cycles
            ahead.append(Ahead(load, 0, 1, place))
            high = place + 1
        return ahead
