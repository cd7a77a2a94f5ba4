# SPDX-License-Identifier: Apache-2.0
"""Joins netlists of parts of a design to a flat one, as Yosys's JSON has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Bit = int | str  # a net's number, or "0", "1", "x", "z"
Module = dict[str, Any]


class PartError(ValueError):
    """A part does not fit the design that uses it."""


def join(modules: Mapping[str, Module], top: str, lanes: Mapping[str, int]) -> Module:
    """Return the flat netlist of `top`, with each cell whose type is among `modules` replaced by that module.

    Args:
        modules: Netlists by module name. A cell of any other type stays.
        top: Name of the outermost module.
        lanes: How many times the cell of a module is made, where its ports have so many times the width. Each copy has
            its part of such a port, the first the lowest, and the whole of a port of the same width.

    Raises:
        PartError: A port is neither as wide as the cell's nor a lane of it, or two lanes drive one net.
    """
    joined: Module = {"cells": {}, "netnames": {}}
    same: dict[int, Bit] = {}  # a net that is another one, or a constant
    _add(joined, modules, lanes, top, "", {}, same)
    for cell in joined["cells"].values():
        cell["connections"] = {
            port: [_resolved(bit, same) for bit in bits] for port, bits in cell["connections"].items()
        }
    for net in joined["netnames"].values():
        net["bits"] = [_resolved(bit, same) for bit in net["bits"]]
    return joined


def _resolved(bit: Bit, same: Mapping[int, Bit]) -> Bit:
    while isinstance(bit, int) and bit in same:
        bit = same[bit]
    return bit


def _add(
    joined: Module,
    modules: Mapping[str, Module],
    lanes: Mapping[str, int],
    name: str,
    prefix: str,
    connections: Mapping[str, list[Bit]],
    same: dict[int, Bit],
) -> None:
    """Add a copy of a module whose ports are connected so."""
    module = modules[name]
    nets: dict[int, Bit] = {}

    def outer(bit: Bit) -> Bit:
        if not isinstance(bit, int):
            return bit
        if bit not in nets:
            joined["nets"] = nets[bit] = joined.get("nets", 1) + 1
        return nets[bit]

    for port, bits in connections.items():
        inner = module["ports"][port]
        for there, here in zip(bits, inner["bits"], strict=True):
            if inner["direction"] == "input" and isinstance(here, int):
                nets[here] = there
    for port, bits in connections.items():
        inner = module["ports"][port]
        for there, here in zip(bits, inner["bits"], strict=True):
            if inner["direction"] == "output" and isinstance(there, int) and outer(here) != there:
                if there in same:
                    raise PartError(f"{prefix}{port}: two cells drive one net")
                same[there] = outer(here)
    for net_name, net in module["netnames"].items():
        joined["netnames"][prefix + net_name] = net | {"bits": [outer(bit) for bit in net["bits"]]}
    for cell_name, cell in module["cells"].items():
        inside = {port: [outer(bit) for bit in bits] for port, bits in cell["connections"].items()}
        if cell["type"] not in modules:
            joined["cells"][prefix + cell_name] = cell | {"connections": inside}
        elif (count := lanes.get(cell["type"], 1)) == 1:
            _add(joined, modules, lanes, cell["type"], f"{prefix}{cell_name}.", inside, same)
        else:
            for lane in range(count):
                split = _lane(modules[cell["type"]], f"{prefix}{cell_name}", inside, lane, count)
                _add(joined, modules, lanes, cell["type"], f"{prefix}{cell_name}.lane[{lane}].", split, same)


def _lane(
    module: Module, name: str, connections: Mapping[str, list[Bit]], lane: int, count: int
) -> dict[str, list[Bit]]:
    """Return the connections of one lane of a cell."""
    result = {}
    for port, bits in connections.items():
        inner = module["ports"][port]
        width = len(inner["bits"])
        if len(bits) == count * width:
            result[port] = bits[lane * width : (lane + 1) * width]
        elif len(bits) == width and inner["direction"] == "input":
            result[port] = bits
        else:
            raise PartError(f"{name}.{port} has {len(bits)} bits; a lane of {count} has {width}")
    return result
