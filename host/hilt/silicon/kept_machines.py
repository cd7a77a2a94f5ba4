"""The machines of the user's bitstreams, as measurements gave them, in HILT_HOME by the bitstream's hash."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hilt import paths
from hilt.atomic_write import atomic_write
from hilt.silicon.fitted_machine import FittedMachine
from hilt.simulator.device import SimulatorError
from hilt.simulator.machine import MachineParameters

_VERSION = 1
_MOST_BYTES = 1 << 16


class KeptMachineError(ValueError):
    """A kept machine's file that cannot be read; the message names it."""


def keep_machine(bitstream: str, fitted: FittedMachine) -> Path:
    """Keep the machine of a bitstream in place of an earlier one; return its file.

    Raises UnwritableFileError, OSError.
    """
    path = _path(bitstream)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        json.dump({"version": _VERSION, "bitstream": bitstream, **asdict(fitted)}, file, indent=1)
        file.write("\n")
    return path


def kept_fit(bitstream: str) -> FittedMachine | None:
    """Return a bitstream's machine with its errors; None if none is kept.

    Raises:
        KeptMachineError: Its file is damaged.
    """
    path = _path(bitstream)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError("it is too large")
        values = json.loads(path.read_text(encoding="utf-8"))
        return _fitted(values, bitstream)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, LookupError, RecursionError, SimulatorError) as error:
        raise KeptMachineError(
            f"{path} is damaged ({error}); fit it anew with `hilt silicon fit`, or remove it"
        ) from None


def kept_machine(bitstream: str) -> MachineParameters | None:
    """Return a bitstream's machine; None if none is kept. Raises KeptMachineError."""
    fitted = kept_fit(bitstream)
    return None if fitted is None else fitted.machine


def _fitted(values: dict[str, Any], bitstream: str) -> FittedMachine:
    if values["version"] != _VERSION or values["bitstream"] != bitstream:
        raise ValueError(f"it is version {values['version']} for bitstream {str(values['bitstream'])[:64]}")
    numbers = [values["call_seconds"], values["fitted_error"], values["unseen_error"] or 0.0]
    if not all(isinstance(number, float) and math.isfinite(number) and number >= 0 for number in numbers):
        raise ValueError("its times and errors are numbers of at least 0")
    return FittedMachine(
        machine=MachineParameters(**{str(name): float(cost) for name, cost in values["machine"].items()}),
        call_seconds=values["call_seconds"],
        start=str(values["start"])[:100],
        measurements=int(values["measurements"]),
        workloads=int(values["workloads"]),
        fitted_error=values["fitted_error"],
        unseen_error=values["unseen_error"],
    )


def _path(bitstream: str) -> Path:
    return paths.home() / "machines" / (re.sub(r"[^A-Za-z0-9_.-]", "_", bitstream)[:128] + ".json")
