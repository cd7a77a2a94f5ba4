"""The board model of a virtual board: a JSON file, whose path is in HILT_VERILATED.

    {"name": "virtual:pynq", "part": "7z020clg400", "clock_hz": 100000000, "register_base": 1136656384,
     "memory": {"base": 268435456, "bytes": 134217728, "read_latency": 32, "write_latency": 16,
                "bandwidth_numerator": 0, "bandwidth_denominator": 1, "jitter": 0, "seed": 1},
     "quantum_cycles": 50000, "time_scale": 500.0, "run_seconds": 0.0}

A board with a public bitstream has "machine" too: the costs of hls/timing/public/vta_machine.h, by name. A board that
QEMU emulates has "computer": its architecture.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Optional, Sequence, Tuple, Type

from .machine import COSTS
from .model import ModelMemory

_PAGE = 4096
_MODEL_NAMES = {"base": "memory_base", "bytes": "memory_bytes"}
_MEMORY = sorted({*_MODEL_NAMES, *(name for name, _ in ModelMemory._fields_)} - set(_MODEL_NAMES.values()))
_TEXTS = ("name", "part", "computer")
_REALS = ("time_scale", "run_seconds")
_LEAST = {"clock_hz": 1, "bytes": 1, "quantum_cycles": 1, "time_scale": 1}


class BoardModelError(Exception):
    """The board model file is missing or holds an impossible value; the message names the field."""


@dataclass(frozen=True)
class ModelSettings:
    """The description of a virtual board, independent of the program that runs on it."""

    name: str
    part: str
    """The part, in the form of the header of a .bit file."""
    clock_hz: int
    register_base: int
    """Physical address of the fetch page."""
    memory: Dict[str, int]
    """struct vta_memory_model of hls/sim/vta_sim.h, with `base` and `bytes` for its first two."""
    quantum_cycles: int
    """Cycles that may pass while `done` is read once, as waiting does on a board."""
    time_scale: float
    """Wall seconds that a second of the device may take: simulation is slower, and deadlines must know it."""
    run_seconds: float = 0.0
    """The least that a run of a program takes on the wall, as on a board that is slower than its simulation."""
    machine: Optional[Dict[str, float]] = None
    """Costs of a public bitstream's machine, which say how long a program runs; None for hilt's own RTL."""
    computer: str = ""
    """The architecture that QEMU emulates; empty for a board that is processes of the host."""

    def memory_model(self) -> ModelMemory:
        return ModelMemory(**{_MODEL_NAMES.get(name, name): value for name, value in self.memory.items()})


def load_board_model(path: Path) -> ModelSettings:
    """Read and check a board model file. Raises BoardModelError."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        board_model = ModelSettings(**values)
    except (OSError, ValueError, TypeError) as error:
        raise BoardModelError("{} is no board model: {}".format(path, error)) from None
    _check(board_model, path)
    return board_model


def _check(board_model: ModelSettings, path: Path) -> None:
    _require_members(path, "memory", board_model.memory, _MEMORY)
    for name in _TEXTS:
        if not isinstance(getattr(board_model, name), str):
            raise BoardModelError("{}: {} must be text".format(path, name))
    if board_model.machine is not None:
        _require_members(path, "machine", board_model.machine, COSTS)
        for name, value in board_model.machine.items():
            _require_number(path, name + " of the machine", value, 0, (int, float))
    fields: Dict[str, Any] = {**vars(board_model), **board_model.memory}
    for name, value in fields.items():
        if name not in (*_TEXTS, "memory", "machine"):
            _require_number(path, name, value, _LEAST.get(name, 0), (int, float) if name in _REALS else (int,))
    for name in ("base", "bytes"):
        if board_model.memory[name] % _PAGE:
            raise BoardModelError("{}: {} of the memory must be a multiple of {}".format(path, name, _PAGE))


def _require_members(path: Path, name: str, table: Any, members: Sequence[str]) -> None:
    if not isinstance(table, dict) or set(table) != set(members):
        raise BoardModelError("{}: {} must have {}".format(path, name, ", ".join(members)))


def _require_number(path: Path, name: str, value: Any, least: int, kinds: Tuple[Type[float], ...]) -> None:
    if isinstance(value, bool) or not isinstance(value, kinds) or not value >= least:
        raise BoardModelError("{}: {} cannot be {!r}, it must be at least {}".format(path, name, value, least))
