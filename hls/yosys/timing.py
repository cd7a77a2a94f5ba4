# SPDX-License-Identifier: Apache-2.0
"""Timing of the accelerator on each board's part, at the clock of its manifest entry: slack, levels, worst paths.

    python hls/yosys/timing.py [BITSTREAM ...]

An estimate: Yosys maps the logic part by part, delays.toml has published cell delays and two models of nets by fan-out.
*Good* nets are those of a very good placement: compare designs with them. *Routed* nets are those of a part that is
60 % full: a bitstream's clock needs slack there. There is no placement, no clock skew and no vendor tool: only Vivado
says whether a bitstream meets its clock. The last column is the highest clock of the part's PLL without a late path.

Ends with status 1 where a path is late with routed nets, a design has more logic levels than limits.toml allows, or
cells alone take more of the period than it allows.
"""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from static_timing import Delays, worst_paths
from static_timing import Path as TimingPath
from synthesis import TOP, UnknownBitstreamError, buildable, family, netlist

from hilt.bitstreams import Bitstream
from hilt.vta import pl_clock

HERE = Path(__file__).resolve().parent
WORST = 10


@dataclass(frozen=True)
class Limits:
    """Limits of a bitstream: clock in MHz, logic levels, share of the period that cells may take."""

    clock_mhz: float
    levels: int
    cells: float

    @property
    def period(self) -> float:
        """Return the period in ns."""
        return 1000 / self.clock_mhz


@dataclass(frozen=True)
class Analysis:
    """The slowest path into each register pin, slowest first, with good and with routed nets."""

    good: list[TimingPath]
    routed: list[TimingPath]


def analyse(entry: Bitstream) -> Analysis:
    """Return the paths of a bitstream's accelerator."""
    with (HERE / "delays.toml").open("rb") as file:
        table = tomllib.load(file)[family(entry)]
    design = netlist(entry)
    good, routed = (worst_paths(design, TOP, Delays.of(table, nets)) for nets in ("nets", "nets_routed"))
    return Analysis(good, routed)


def worst_by_name(paths: list[TimingPath], count: int = WORST) -> list[TimingPath]:
    """Return the slowest paths that differ by more than the numbers in their names, slowest first."""
    kinds: dict[tuple[str, str], TimingPath] = {}
    for path in paths:
        kind = (re.sub(r"\d+", "", path.begin), re.sub(r"\d+", "", path.end))
        kinds.setdefault(kind, path)
        if len(kinds) == count:
            break
    return list(kinds.values())


def problems(paths: list[TimingPath], limits: Limits) -> list[str]:
    """Return one line for each limit that the design breaks; `paths` are those with routed nets."""
    levels = max(path.levels for path in paths)
    cells = max(path.cells for path in paths) / limits.period
    late = late_at(paths, limits)
    lines = []
    if late:
        lines.append(f"pins late at {limits.clock_mhz:g} MHz with routed nets: {late}")
    if levels > limits.levels:
        lines.append(f"{levels} logic levels, {limits.levels} allowed")
    if cells > limits.cells:
        lines.append(f"cells take {cells:.0%} of the period, {limits.cells:.0%} allowed")
    return lines


def late_at(paths: list[TimingPath], limits: Limits) -> int:
    """Return how many register pins are late."""
    return sum(path.delay > limits.period for path in paths)


def read_limits(entries: list[Bitstream]) -> dict[str, Limits]:
    """Return the limits by name of bitstream: clocks of the manifest, the others of limits.toml."""
    with (HERE / "limits.toml").open("rb") as file:
        table = tomllib.load(file)
    return {entry.name: Limits(clock_mhz=entry.clock_hz / 1e6, **table[entry.name]) for entry in entries}


def _row(entry: Bitstream, limit: Limits, found: Analysis) -> str:
    good, routed = found.good[0].delay, found.routed[0].delay
    cells = max(path.cells for path in found.good) / limit.period
    levels = max(path.levels for path in found.good)
    reached = pl_clock.highest(entry.part, 1e9 / routed) / 1e6
    return (
        f"{entry.name:20}{entry.part:22}{limit.clock_mhz:>8.2f}"
        f"{good:>7.2f}{limit.period - good:>7.2f}{late_at(found.good, limit):>7}"
        f"{routed:>9.2f}{limit.period - routed:>7.2f}{late_at(found.routed, limit):>7}"
        f"{cells:>7.0%}{levels:>8}{reached:>9.2f}"
    )


def main(names: list[str]) -> int:
    """Print the tables; return the exit status."""
    try:
        entries = buildable(names)
    except UnknownBitstreamError as error:
        print(error)
        return 2
    limits, broken = read_limits(entries), False
    print(f"{'':50}{'good nets, ns':^21}  {'routed nets, ns':^21}")
    print(
        f"{'bitstream':20}{'part':22}{'MHz':>8}{'worst':>7}{'slack':>7}{'late':>7}{'worst':>9}{'slack':>7}{'late':>7}"
        f"{'cells':>7}{'levels':>8}{'PLL MHz':>9}"
    )
    worst: list[tuple[str, list[TimingPath]]] = []
    for entry in entries:
        limit, found = limits[entry.name], analyse(entry)
        print(_row(entry, limit, found), flush=True)
        for line in problems(found.routed, limit):
            broken = True
            print(f"  {entry.name}: {line}")
        worst.append((entry.name, worst_by_name(found.routed)))
    for name, paths in worst:
        print(f"\n{name}, routed nets: ns, cells alone, levels, from, to")
        for path in paths:
            print(f"{path.delay:8.2f}{path.cells:8.2f}{path.levels:4}  {path.begin} -> {path.end}")
    print("\nMapped netlist, published cell delays, nets by fan-out (delays.toml): no placement, no vendor tool.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
