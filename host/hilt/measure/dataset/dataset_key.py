"""The identity of a dataset: workload, board model, checks and space."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np

from hilt.run_choices import CheckLevel, SpaceName
from hilt.schedule import Space, Workload, lower, space_for
from hilt.schedule.checks import Checks
from hilt.schedule.space import SpaceKind
from hilt.schedule.validity_summary import ValiditySummary, summarize_validity
from hilt.simulator.build import design_key
from hilt.simulator.device import MemoryModel
from hilt.virtual.board_model import BoardModel
from hilt.vta.accelerator import Accelerator

SCHEMA = 1
_FINGERPRINT_PROGRAMS = 8


@dataclass(frozen=True)
class DatasetKey:
    """A workload's space at a level of checks, on an accelerator with a memory."""

    workload: Workload
    board_model: str
    """The name of the board model, for people; the identity depends on the fields that follow."""
    accelerator: Accelerator
    memory: MemoryModel
    checks: Checks = CheckLevel.COMPILER
    kind: SpaceKind = SpaceName.AUTOTVM
    orders: Literal[1, 4] = 4

    @classmethod
    def on(
        cls,
        workload: Workload,
        board_model: BoardModel,
        *,
        checks: Checks = CheckLevel.COMPILER,
        kind: SpaceKind = SpaceName.AUTOTVM,
        orders: Literal[1, 4] = 4,
    ) -> DatasetKey:
        """Return the key for the accelerator and the memory of a board model."""
        return cls(workload, board_model.name, board_model.accelerator, board_model.memory_model, checks, kind, orders)

    @property
    def name(self) -> str:
        """Return the name, such as `resnet18.C5@pynq.tvm.autotvm4`."""
        kind = "ml2" if self.kind == "ml2" else f"autotvm{self.orders}"
        return f"{self.workload.name}@{self.board_model}.{self.checks}.{kind}"

    @cached_property
    def space(self) -> Space:
        return space_for(self.workload, self.accelerator, orders=self.orders, kind=self.kind)

    @cached_property
    def summarize_validity(self) -> ValiditySummary:
        """The level's verdict on every configuration."""
        return summarize_validity(self.workload, self.accelerator, self.space, self.checks)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """All that outcomes and cycles depend on, as plain values for JSON."""
        return {
            "schema": SCHEMA,
            "workload": _workload_fields(self.workload),
            "parameters": self.accelerator.parameters.name,
            "isa": str(self.accelerator.isa),
            "bus_bits": self.accelerator.bus_bits,
            "hazards": self.accelerator.hazards,
            "instruction_queue_depth": self.accelerator.instruction_queue_depth,
            "clock_hz": self.accelerator.clock_hz,
            **({"read_ports": self.accelerator.read_ports} if self.accelerator.read_ports != 1 else {}),
            "memory": {
                "read_latency": self.memory.read_latency,
                "write_latency": self.memory.write_latency,
                "bandwidth": list(self.memory.bandwidth),
                "jitter": self.memory.jitter,
                "seed": self.memory.seed if self.memory.jitter else 0,
            },
            "checks": self.checks,
            "space": {knob.name: list(knob.values) for knob in self.space.knobs},
            "timing_design": design_key(self.accelerator, "timing"),
            "compiler": _compiler_fingerprint(self.workload, self.accelerator, self.checks, self.kind, self.orders),
        }

    @cached_property
    def key(self) -> str:
        """SHA-256 of the identity, hex."""
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()


def _workload_fields(workload: Workload) -> dict[str, object]:
    """Return the workload's fields under the names that schema 1 gave them, so that keys stay valid."""
    of_schema_1 = {"input_dilation": "stretch", "padding_end": "padding_behind"}
    return {of_schema_1.get(name, name): value for name, value in workload.to_dict().items() if name != "name"}


@lru_cache(maxsize=256)
def _compiler_fingerprint(
    workload: Workload, accelerator: Accelerator, checks: Checks, kind: SpaceKind, orders: Literal[1, 4]
) -> str:
    """Return a hash that changes when the compiler does.

    It covers every verdict, and the code of a few programs drawn with a fixed seed.
    """
    space = space_for(workload, accelerator, orders=orders, kind=kind)
    verdicts = summarize_validity(workload, accelerator, space, checks).verdicts
    digest = hashlib.sha256(verdicts.astype("<u1").tobytes())
    accepted = np.flatnonzero(verdicts == 0)
    count = min(_FINGERPRINT_PROGRAMS, len(accepted))
    for index in np.random.default_rng(0).choice(accepted, count, replace=False) if count else ():
        program = lower(workload, space.knobs_at(int(index)), accelerator, checks)
        digest.update(program.instructions.astype("<u8").tobytes())
        digest.update(program.uops.astype("<u4").tobytes())
    return digest.hexdigest()
