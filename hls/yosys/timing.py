# SPDX-License-Identifier: Apache-2.0
"""Timing of the accelerator on each board's part: slack at the target clock, logic levels, the worst paths.

    python hls/yosys/timing.py [BITSTREAM ...]

An estimate: Yosys maps the logic part by part, delays.toml has published cell delays and a fan-out model of nets. There
is no placement, no clock skew and no vendor tool. Use it to compare designs and to find the path to shorten; only
Vivado says whether a bitstream meets its clock. Ends with status 1 where a path is late at the target clock of
limits.toml, a design has more logic levels than it allows, or cells alone take more of the period than it allows.
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

HERE = Path(__file__).resolve().parent
WORST = 10


@dataclass(frozen=True)
class Limits:
    """Limits of a bitstream: target clock in MHz, logic levels, share of the period that cells may take."""

    clock_mhz: float
    levels: int
    cells: float

    @property
    def period(self) -> float:
        """Return the period in ns."""
        return 1000 / self.clock_mhz


def analyse(entry: Bitstream) -> list[TimingPath]:
    """Return the slowest path into each register pin of a bitstream's accelerator, slowest first."""
    with (HERE / "delays.toml").open("rb") as file:
        delays = Delays.of(tomllib.load(file)[family(entry)])
    return worst_paths(netlist(entry), TOP, delays)


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
    """Return one line for each limit that the design breaks."""
    levels = max(path.levels for path in paths)
    cells = max(path.cells for path in paths) / limits.period
    late = sum(path.delay > limits.period for path in paths)
    lines = []
    if late:
        lines.append(f"pins late at {limits.clock_mhz:g} MHz: {late}")
    if levels > limits.levels:
        lines.append(f"{levels} logic levels, {limits.levels} allowed")
    if cells > limits.cells:
        lines.append(f"cells take {cells:.0%} of the period, {limits.cells:.0%} allowed")
    return lines


def read_limits() -> dict[str, Limits]:
    """Return the limits by name of bitstream."""
    with (HERE / "limits.toml").open("rb") as file:
        return {name: Limits(**table) for name, table in tomllib.load(file).items()}


def main(names: list[str]) -> int:
    """Print the tables; return the exit status."""
    try:
        entries = buildable(names)
    except UnknownBitstreamError as error:
        print(error)
        return 2
    limits, broken = read_limits(), False
    header = ("bitstream", "part", "MHz", "worst ns", "slack ns", "cells", "levels", "late")
    print("{:16}{:24}{:>6}{:>10}{:>10}{:>8}{:>8}{:>8}".format(*header))
    worst: list[tuple[str, list[TimingPath]]] = []
    for entry in entries:
        limit, paths = limits[entry.name], analyse(entry)
        delay, cells = paths[0].delay, max(path.cells for path in paths)
        late = sum(path.delay > limit.period for path in paths)
        print(f"{entry.name:16}{entry.part:24}{limit.clock_mhz:>6g}{delay:>10.2f}{limit.period - delay:>10.2f}"
              f"{cells / limit.period:>8.0%}{max(path.levels for path in paths):>8}{late:>8}", flush=True)  # fmt: skip
        for line in problems(paths, limit):
            broken = True
            print(f"  {entry.name}: {line}")
        worst.append((entry.name, worst_by_name(paths)))
    for name, paths in worst:
        print(f"\n{name}: ns, cells alone, levels, from, to")
        for path in paths:
            print(f"{path.delay:8.2f}{path.cells:8.2f}{path.levels:4}  {path.begin} -> {path.end}")
    print("\nMapped netlist, published cell delays, nets by fan-out (delays.toml): no placement, no vendor tool.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
