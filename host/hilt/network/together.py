"""Schedules of neighbouring layers, chosen together.

A layer's last tiles are stored while the layer behind it starts, so the fastest schedules of two layers alone need
not be the fastest pair. Each layer of a chain tries its alternatives with its neighbours, and keeps the one for which
the twin counts the fewest cycles.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hilt.network.aliases import Aliases
from hilt.network.linked import Linked
from hilt.network.lower_layer import layer_code
from hilt.network.partition import Part, Placement
from hilt.network.search import Schedule, Searcher
from hilt.network.tile_writer import UNITS
from hilt.schedule import Rejected
from hilt.schedule.chain import ChainLink, join
from hilt.schedule.code import Code
from hilt.schedule.residual import IDENTITY

_ROUNDS = 2
_MOST_INSTRUCTIONS = 3000
"""The most instructions of layers that are timed together. In longer layers their boundaries are a small part."""
_NEAR = 100
"""Cycles between its neighbours that another schedule of a layer may take more, to be tried in the whole chain."""
_UNKNOWN_BYTES = 1 << 20


def chosen_together(part: Part, searcher: Searcher, aliases: Aliases) -> Part:
    """Return a chain whose layers have the schedules that suit their neighbours."""
    chain = _Chain(part, searcher, aliases)
    for _ in range(_ROUNDS):
        if not sum(chain.improve(number) for number in range(len(chain.layers))):
            break
    chain.improve_whole()
    chosen = iter(chain.chosen)
    return replace(
        part,
        placements=tuple(
            placement if placement.layer is None else replace(placement, schedule=next(chosen))
            for placement in part.placements
        ),
    )


@dataclass
class _Chain:
    part: Part
    searcher: Searcher
    aliases: Aliases
    _codes: dict[tuple[int, int], Code | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.layers: list[Placement] = [placement for placement in self.part.placements if placement.layer is not None]
        self._options = [[layer.schedule, *layer.alternatives] for layer in self.layers if layer.schedule is not None]
        self._choice = [0] * len(self.layers)
        self._beside: list[dict[int, float]] = [{} for _ in self.layers]
        """The cycles of each layer's schedules between its neighbours, when they were counted last."""

    @property
    def chosen(self) -> list[Schedule]:
        return [options[choice] for options, choice in zip(self._options, self._choice, strict=True)]

    def improve(self, number: int) -> bool:
        """Give a layer the best of its schedules beside its neighbours; return whether that is another one."""
        if len(self._options[number]) == 1 or len(self.layers) == 1:
            return False
        before = self._choice[number]
        cycles = {choice: self._cycles(number, choice) for choice in range(len(self._options[number]))}
        best = min(cycles, key=lambda choice: (cycles[choice], choice != before, choice))
        self._choice[number], self._beside[number] = best, cycles
        return best != before

    def improve_whole(self) -> None:
        """Give each layer the schedule with which the whole chain is fastest, of those nearly as fast as its own."""
        near = [self._near(number) for number in range(len(self.layers))]
        if not any(near):
            return
        least = self._whole(0, self._choice[0])
        if least == float("inf"):
            return
        for number, choices in enumerate(near):
            own = self._choice[number]
            cycles = {choice: self._whole(number, choice) for choice in choices}
            best = min(cycles, key=cycles.__getitem__, default=own)
            if cycles.get(best, least) < least:
                self._choice[number], least = best, cycles[best]

    def _near(self, number: int) -> list[int]:
        """Return the other schedules of a layer that are nearly as fast between its neighbours."""
        own, beside = self._choice[number], self._beside[number]
        return [choice for choice, cycles in beside.items() if cycles <= beside[own] + _NEAR and choice != own]

    def _whole(self, number: int, choice: int) -> float:
        """Return the cycles of the chain with this schedule of a layer."""
        return self._joined(range(len(self.layers)), number, choice)

    def _cycles(self, number: int, choice: int) -> float:
        """Return the cycles of a layer with this schedule between its neighbours."""
        return self._joined(range(max(number - 1, 0), min(number + 2, len(self.layers))), number, choice)

    def _joined(self, places: range, number: int, choice: int) -> float:
        """Return the cycles of the layers at `places` with this schedule of one; infinity of too many instructions."""
        linked = Linked(self.searcher.accelerator)
        for place in places:
            code = self._code(place, choice if place == number else self._choice[place])
            if code is None:
                return float("inf")
            linked.add(self._link(place, code), self.layers[place])
        links = linked.links
        if sum(len(link.code.records) for link in links) > _MOST_INSTRUCTIONS:
            return float("inf")
        sizes = {name: _UNKNOWN_BYTES for link in links for name in link.buffers.values()}
        return self.searcher.cycles([join(links, sizes, self.searcher.accelerator).program])[0]

    def _code(self, place: int, choice: int) -> Code | None:
        key = (place, choice)
        if key not in self._codes:
            layer = self.layers[place].layer
            assert layer is not None
            try:
                self._codes[key] = layer_code(layer, self._options[place][choice].knobs, self.searcher.accelerator)
            except Rejected:
                self._codes[key] = None
        return self._codes[key]

    def _link(self, place: int, code: Code) -> ChainLink:
        """Return a layer's link; equal names of buffers are the same memory."""
        layer = self.layers[place].layer
        assert layer is not None
        names = {name: f"{name} of {place}" for name in code.names if name != "uop"}
        names |= {name: name for name in (IDENTITY, UNITS) if name in names}
        offsets: dict[str, int] = {}
        for buffer, tensor in {**layer.reads, **layer.writes}.items():
            root, offset = self.aliases.of(tensor)
            names[buffer] = f"tensor {root}"
            offsets[buffer] = offset // self.searcher.accelerator.parameters.out_element_bytes
        return ChainLink(code, names, offsets)
