"""The machines that measurements or sources describe, with the parameters that ship in builds.json."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from hilt.simulator.machine import MachineParameters

NEWER, OLDER, CHISEL = "pynq_public", "pynq_public_older", "chisel"

CLOCK_HZ = 100e6
"""The clock of the public PYNQ bitstreams (docs/silicon.md)."""

_OLDER_FIRST, _OLDER_LAST = "2019-08-05", "2019-08-12"


@dataclass(frozen=True)
class Runtime:
    """The time that TVM's runtime adds to a call on the board's ARM core: seconds a call, and for each instruction."""

    call_seconds: float
    instruction_seconds: float

    def seconds(self, instructions: int) -> float:
        """Return the seconds around a program of so many instructions."""
        return self.call_seconds + self.instruction_seconds * instructions


@dataclass(frozen=True)
class Builds:
    """Parameters of each machine by name, and of the runtime."""

    machines: dict[str, MachineParameters]
    runtime: Runtime

    def seconds(self, cycles: float, instructions: int) -> float:
        """Return the seconds that TVM would measure for a program of these cycles."""
        return cycles / CLOCK_HZ + self.runtime.seconds(instructions)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as builds.json holds them."""
        return {
            "machines": {name: asdict(machine) for name, machine in self.machines.items()},
            "runtime": asdict(self.runtime),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Builds:
        """Return the builds that to_dict wrote."""
        machines = {name: MachineParameters(**costs) for name, costs in values["machines"].items()}
        return cls(machines, Runtime(**values["runtime"]))


@cache
def shipped_builds() -> Builds:
    """Return the builds of builds.json."""
    return Builds.from_dict(json.loads(files("hilt.simulator").joinpath("builds.json").read_text(encoding="utf-8")))


def build_of(block_images: int, date: str | None) -> str:
    """Return which public build a published measurement ran on.

    Two builds are in TVM's logs, and only the date tells them apart: those of one image a block from early August 2019
    fit the older. A measurement without a date counts as the newer, which the later bitstreams are.
    """
    older = block_images == 1 and date is not None and _OLDER_FIRST <= date <= _OLDER_LAST
    return OLDER if older else NEWER
