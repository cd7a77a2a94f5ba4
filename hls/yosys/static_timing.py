# SPDX-License-Identifier: Apache-2.0
"""Static timing analysis of a flat netlist that Yosys mapped to a Xilinx family.

Each path runs from a register (flip-flop, block RAM, DSP slice) to a register, through look-up tables, carry chains and
unregistered DSP slices. Ports of the top are registered by their users: a path from or to a port is not analysed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import block_ram

Bit = int
Pin = tuple[str, int]


@dataclass(frozen=True)
class Delays:
    """Delays of a family in ns: cells by name, nets by the largest fan-out to which a delay belongs."""

    cells: dict[str, float]
    nets: tuple[tuple[int, float], ...]

    @staticmethod
    def of(table: dict[str, Any], nets: str = "nets") -> Delays:
        """Return the delays of a table of delays.toml, with the nets of its key `nets` or `nets_routed`."""
        steps = tuple((int(fan_out), float(delay)) for fan_out, delay in table[nets])
        return Delays({key: float(value) for key, value in table.items() if not key.startswith("nets")}, steps)

    def net(self, fan_out: int) -> float:
        """Return the delay of a net that drives `fan_out` pins."""
        return next(delay for most, delay in self.nets if fan_out <= most)


@dataclass(frozen=True)
class Path:
    """The slowest path into one register pin: ns in all, ns in cells alone, look-up tables and carry chains on it."""

    delay: float
    cells: float
    levels: int
    begin: str
    end: str


@dataclass
class _Cell:
    name: str
    kind: str
    inputs: dict[str, list[Bit | str]]
    outputs: dict[str, list[Bit | str]]
    parameters: dict[str, str]


@dataclass
class _Arrival:
    delay: float = 0.0
    cells: float = 0.0
    levels: int = 0
    begin: str = ""


@dataclass
class _Graph:
    arcs: dict[Bit, list[tuple[Bit, float, int]]] = field(default_factory=lambda: defaultdict(list))
    starts: dict[Bit, tuple[float, str]] = field(default_factory=dict)
    ends: list[tuple[Bit, float, str]] = field(default_factory=list)
    internal: list[Path] = field(default_factory=list)


_LUT = re.compile(r"LUT[1-6]$")
_CLOCKS = {"C", "CLK", "WCLK", "CLKARDCLK", "CLKBWRCLK", "CLKA", "CLKB"}


class NetlistError(ValueError):
    """A netlist that the analysis does not understand."""


def worst_paths(netlist: dict[str, Any], top: str, delays: Delays) -> list[Path]:
    """Return the slowest path into each register pin, slowest first.

    Args:
        netlist: Yosys's JSON, flat.
        top: Name of the module.
        delays: Delays of the family.

    Raises:
        NetlistError: A cell has no delay here, or the logic has a loop.
    """
    module = netlist["modules"][top]
    names = _net_names(module)
    graph = _Graph()
    fan_out: dict[Bit, int] = defaultdict(int)
    for name, cell in module["cells"].items():
        parsed = _parse(name, cell)
        for port, bits in parsed.inputs.items():
            pins = _pins(cell, port)
            for bit in bits:
                if isinstance(bit, int):
                    fan_out[bit] += pins
        _add(graph, parsed, delays.cells, names)
    arrivals = _propagate(graph, fan_out, delays)
    paths = list(graph.internal)
    for bit, setup, end in graph.ends:
        arrival = arrivals.get(bit)
        if arrival is not None:
            net = delays.net(fan_out[bit])
            total = arrival.delay + net + setup
            paths.append(Path(total, arrival.cells + setup, arrival.levels, arrival.begin, end))
    return sorted(paths, key=lambda path: -path.delay)


def _pins(cell: dict[str, Any], port: str) -> int:
    """Return the pins behind a bit of a port: address and enables of a RAM go to each of its blocks."""
    if cell["type"] in block_ram.RAMS and "data" not in port:
        return block_ram.primitives(cell)
    return 1


def _net_names(module: dict[str, Any]) -> dict[Bit, str]:
    """Return a name for each bit; a name of the RTL where there is one, the shortest of several."""
    names: dict[Bit, tuple[bool, int, str]] = {}
    for name, net in module["netnames"].items():
        hidden = bool(net["hide_name"]) or name.startswith("$")
        for number, bit in enumerate(net["bits"]):
            if isinstance(bit, int):
                text = f"{name}[{number}]" if len(net["bits"]) > 1 else name
                rank = (hidden, len(text), text)
                if bit not in names or rank < names[bit]:
                    names[bit] = rank
    return {bit: rank[2] for bit, rank in names.items()}


def _parse(name: str, cell: dict[str, Any]) -> _Cell:
    directions, connections = cell["port_directions"], cell["connections"]
    inputs = {port: bits for port, bits in connections.items() if directions[port] == "input"}
    outputs = {port: bits for port, bits in connections.items() if directions[port] == "output"}
    return _Cell(name, cell["type"], inputs, outputs, cell["parameters"])


def _add(graph: _Graph, cell: _Cell, delay: dict[str, float], names: dict[Bit, str]) -> None:
    kind = cell.kind
    if _LUT.match(kind):
        _through(graph, cell, delay["lut"], 1)
    elif kind == "INV":
        _through(graph, cell, delay["inverter"], 0)
    elif kind in ("MUXF7", "MUXF8", "MUXF9"):
        _through(graph, cell, delay["muxf8" if kind != "MUXF7" else "muxf7"], 0)
    elif kind in ("CARRY4", "CARRY8"):
        _carry(graph, cell, delay)
    elif kind in ("FDRE", "FDSE", "FDCE", "FDPE"):
        _flip_flop(graph, cell, delay, names)
    elif kind.startswith(("RAMB", "URAM")):
        _block_ram(graph, cell, delay)
    elif kind.startswith(("RAM", "SRL")):
        _lut_ram(graph, cell, delay)
    elif kind in ("vta_ram", "vta_dual_port_ram"):
        _whole_ram(graph, cell, delay)
    elif kind.startswith("DSP48"):
        _dsp(graph, cell, delay)
    elif kind not in ("BUFG", "IBUF", "OBUF", "GND", "VCC"):
        raise NetlistError(f"cell {cell.name} is a {kind}, which has no delay in delays.toml")


def _bits(ports: dict[str, list[Bit | str]], *names: str) -> list[Bit]:
    return [bit for name in names for bit in ports.get(name, []) if isinstance(bit, int)]


def _through(graph: _Graph, cell: _Cell, delay: float, levels: int) -> None:
    for end in _bits(cell.outputs, *cell.outputs):
        for begin in _bits(cell.inputs, *cell.inputs):
            graph.arcs[begin].append((end, delay, levels))


def _carry(graph: _Graph, cell: _Cell, delay: dict[str, float]) -> None:
    """Add a carry chain's cell: from bit n of DI and S to the carries and sums from n on."""
    width = len(cell.outputs.get("CO", cell.outputs.get("O", [])))
    for port, to_carry, to_sum in (("CO", "carry_in_to_out", "carry_start"), ("O", "carry_end", "carry_sum")):
        for place, end in enumerate(cell.outputs.get(port, [])):
            if not isinstance(end, int):
                continue
            for begin in _bits(cell.inputs, "CI", "CYINIT", "CI_TOP"):
                graph.arcs[begin].append((end, delay[to_carry], 0))
            for source in ("DI", "S"):
                for begin in cell.inputs.get(source, [])[: min(place + 1, width)]:
                    if isinstance(begin, int):
                        graph.arcs[begin].append((end, delay[to_sum], 1))


def _flip_flop(graph: _Graph, cell: _Cell, delay: dict[str, float], names: dict[Bit, str]) -> None:
    (output,) = _bits(cell.outputs, "Q") or (None,)
    name = names.get(output, cell.name) if output is not None else cell.name
    if output is not None:
        graph.starts[output] = (delay["ff_out"], name)
    for port, setup in (("D", "ff_data"), ("CE", "ff_enable"), ("R", "ff_reset"), ("S", "ff_reset")):
        for bit in _bits(cell.inputs, port):
            graph.ends.append((bit, delay[setup], f"{name}.{port}"))


def _block_ram(graph: _Graph, cell: _Cell, delay: dict[str, float]) -> None:
    registered = any(_number(cell.parameters.get(key)) for key in ("DOA_REG", "DOB_REG"))
    out = delay["ram_out_registered" if registered else "ram_out"]
    for bit in _bits(cell.outputs, *cell.outputs):
        graph.starts[bit] = (out, f"{cell.name}.DO")
    for port in cell.inputs:
        if port in _CLOCKS:
            continue
        group = "address" if port.startswith("ADDR") else "enable" if port.startswith("EN") else "write"
        setup = delay["ram_data" if port.startswith("DI") else f"ram_{group}"]
        graph.ends += [(bit, setup, f"{cell.name}.{port}") for bit in _bits(cell.inputs, port)]


def _whole_ram(graph: _Graph, cell: _Cell, delay: dict[str, float]) -> None:
    """Add a RAM that was not mapped, as block RAM without output registers."""
    for port in cell.outputs:
        for bit in _bits(cell.outputs, port):
            graph.starts[bit] = (delay["ram_out"], f"{cell.name}.{port}")
    kinds = {"index": "ram_address", "data": "ram_data", "write": "ram_write", "read": "ram_enable"}
    for port in cell.inputs:
        if port != "clk_i":
            setup = next(delay[key] for word, key in kinds.items() if word in port)
            graph.ends += [(bit, setup, f"{cell.name}.{port}") for bit in _bits(cell.inputs, port)]


def _lut_ram(graph: _Graph, cell: _Cell, delay: dict[str, float]) -> None:
    outputs = _bits(cell.outputs, *cell.outputs)
    for bit in outputs:
        graph.starts[bit] = (delay["lutram_out"], f"{cell.name}.memory")
    for port in cell.inputs:
        if port in _CLOCKS:
            continue
        for bit in _bits(cell.inputs, port):
            if port.startswith(("ADDR", "A", "DPRA")):
                for end in _bits(cell.outputs, f"DO{port[-1]}") or outputs:
                    graph.arcs[bit].append((end, delay["lutram_read"], 1))
            else:
                graph.ends.append((bit, delay["lutram_write"], f"{cell.name}.{port}"))


def _number(text: Any) -> int:
    if text is None:
        return 0
    return int(str(text), 2) if set(str(text)) <= {"0", "1"} else int(text)


_DSP_ENABLES = {"CEA2": "AREG", "CEB2": "BREG", "CEC": "CREG", "CED": "DREG", "CEM": "MREG", "CEP": "PREG"}


def _dsp(graph: _Graph, cell: _Cell, delay: dict[str, float]) -> None:
    """Add a DSP slice: A, B, D -> (pre-adder) -> multiplier -> adder -> P, with the registers that it uses."""
    has = {
        key: _number(cell.parameters.get(key)) > 0 for key in ("AREG", "BREG", "CREG", "DREG", "ADREG", "MREG", "PREG")
    }
    preadds = str(cell.parameters.get("USE_DPORT", cell.parameters.get("AMULTSEL", ""))) in ("TRUE", "AD")
    name, outputs = cell.name, _bits(cell.outputs, "P", "PCOUT")

    def setup(port: str, from_ad: bool = False) -> float | None:
        """Return the delay into the next register after a port's own, None if there is none."""
        adds = preadds and port in ("A", "D") and not from_ad
        if adds and has["ADREG"]:
            return delay["dsp_preadd"]
        if has["MREG"]:
            return delay["dsp_preadd_multiply" if adds else "dsp_multiply"]
        if has["PREG"]:
            return delay["dsp_preadd_a" if adds else "dsp_a"]
        return None

    for port, register in (("A", "AREG"), ("B", "BREG"), ("D", "DREG")):
        after = setup(port)
        for bit in _bits(cell.inputs, port):
            if has[register]:
                graph.ends.append((bit, delay["dsp_input"], f"{name}.{port}"))
            elif after is not None:
                graph.ends.append((bit, after, f"{name}.{port}"))
            else:
                for end in outputs:
                    graph.arcs[bit].append((end, delay["dsp_through"], 1))
        if has[register] and after is not None and _bits(cell.inputs, port):
            inside = delay["dsp_register"] + after
            graph.internal.append(Path(inside, inside, 0, f"{name}.{register}", f"{name} (inside)"))
    if has["ADREG"] and (after := setup("A", from_ad=True)) is not None:
        inside = delay["dsp_register"] + after
        graph.internal.append(Path(inside, inside, 0, f"{name}.ADREG", f"{name} (inside)"))
    if has["PREG"] and (has["MREG"] or has["CREG"]):
        inside = delay["dsp_register"] + delay["dsp_c"]
        graph.internal.append(
            Path(inside, inside, 0, f"{name}.{'MREG' if has['MREG'] else 'CREG'}", f"{name} (inside)")
        )
    for port, through in (("C", "dsp_c"), ("PCIN", "dsp_cascade")):
        for bit in _bits(cell.inputs, port):
            if (port == "C" and has["CREG"]) or has["PREG"]:
                graph.ends.append(
                    (bit, delay["dsp_input" if port == "C" and has["CREG"] else through], f"{name}.{port}")
                )
            else:
                for end in outputs:
                    graph.arcs[bit].append((end, delay[through], 1))
    for port, register in _DSP_ENABLES.items():
        if has[register]:
            graph.ends += [(bit, delay["ff_enable"], f"{name}.{port}") for bit in _bits(cell.inputs, port)]
    if any(has.values()):
        kind = "dsp_out" if has["PREG"] else "dsp_out_from_m" if has["MREG"] else "dsp_out_from_a"
        for bit in outputs:
            graph.starts[bit] = (delay[kind], f"{name}.P")


def _propagate(graph: _Graph, fan_out: dict[Bit, int], delays: Delays) -> dict[Bit, _Arrival]:
    """Return the latest arrival at each bit that a register reaches, in topological order."""
    arrivals = {bit: _Arrival(delay, delay, 0, name) for bit, (delay, name) in graph.starts.items()}
    waiting: dict[Bit, int] = defaultdict(int)
    reached, stack = set(arrivals), list(arrivals)
    while stack:
        for end, _, _ in graph.arcs.get(stack.pop(), ()):
            waiting[end] += 1
            if end not in reached:
                reached.add(end)
                stack.append(end)
    ready = [bit for bit in reached if waiting[bit] == 0]
    done = 0
    while ready:
        bit = ready.pop()
        done += 1
        arrival = arrivals[bit]
        for end, cell, levels in graph.arcs.get(bit, ()):
            net = 0.0 if levels == 0 and fan_out[bit] <= 2 and cell in _dedicated(delays) else delays.net(fan_out[bit])
            delay = arrival.delay + net + cell
            if end not in arrivals or delay > arrivals[end].delay:
                arrivals[end] = _Arrival(delay, arrival.cells + cell, arrival.levels + levels, arrival.begin)
            waiting[end] -= 1
            if waiting[end] == 0:
                ready.append(end)
    if done != len(reached):
        raise NetlistError(f"the logic has a loop: {len(reached) - done} nets wait for themselves")
    return arrivals


def _dedicated(delays: Delays) -> tuple[float, ...]:
    """Return the delays of arcs whose net is dedicated: carry to carry, and look-up table to its multiplexer."""
    return tuple(delays.cells[key] for key in ("carry_in_to_out", "carry_end", "muxf7", "muxf8"))
