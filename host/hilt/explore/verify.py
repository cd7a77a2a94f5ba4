"""Runs the schedules of designs on the Verilated RTL, and compares cycles and outputs with the prediction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hilt.atomic_write import atomic_write
from hilt.explore.design import Design, compiling_apart
from hilt.explore.schedules import LayerSchedule, load_batched
from hilt.schedule import lower, make_tensors
from hilt.simulator.build import build, design_key
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program

_SEED = 1


@dataclass(frozen=True)
class LayerVerification:
    """One layer's best schedule on the RTL, beside the prediction."""

    workload: str
    status: str
    """`done`, or how the RTL ended."""
    predicted_cycles: int
    rtl_cycles: int
    output_is_right: bool

    @property
    def agrees(self) -> bool:
        """Return whether the RTL took exactly the predicted cycles and computed the reference's output."""
        return self.status == "done" and self.output_is_right and self.predicted_cycles == self.rtl_cycles

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self) | {"agrees": self.agrees}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> LayerVerification:
        """Return the verification that `to_dict` described."""
        return cls(**{name: value for name, value in values.items() if name != "agrees"})


Progress = Callable[[int, int, "tuple[Design, LayerVerification] | None"], None]
"""Called with (schedules run, all of them, the newest with its design)."""


def verify(
    schedules: Sequence[tuple[Design, LayerSchedule]], folder: Path, executor: Executor,
    progress: Progress = lambda done, total, newest: None,
) -> list[LayerVerification]:  # fmt: skip
    """Run schedules on the RTL and return what each showed, in order.

    Those that agreed before are read from `folder`; the others run, and are kept there if they agree.
    Raises MissingToolError, BuildError.
    """
    files = [folder / f"{_key(design, layer)[:32]}.json" for design, layer in schedules]
    shown = {place: known for place, file in enumerate(files) if (known := _read(file))}
    progress(len(shown), len(schedules), None)
    waiting = [place for place in compiling_apart([design for design, _ in schedules]) if place not in shown]
    pending = {executor.submit(verify_layer, *schedules[place]): place for place in waiting}
    for future in as_completed(pending):
        place = pending[future]
        shown[place] = future.result()
        if shown[place].agrees:
            with atomic_write(files[place]) as file:
                json.dump(shown[place].to_dict(), file)
        progress(len(shown), len(schedules), (schedules[place][0], shown[place]))
    return [shown[place] for place in range(len(schedules))]


def verify_layer(design: Design, layer: LayerSchedule) -> LayerVerification:
    """Run a layer's schedule on the RTL and return both cycle counts.

    The RTL is compiled on first use, which takes a minute or more. Raises MissingToolError, BuildError.
    """
    accelerator = design.accelerator
    workload = load_batched(layer.workload, design.parameters.batch)
    program = lower(workload, layer.knobs, accelerator)
    tensors = make_tensors(workload, accelerator, seed=_SEED)
    run = run_program(
        build(accelerator, "rtl"), program, tensors.inputs, memory=design.memory, max_cycles=4 * layer.cycles + 10_000
    )
    done = run.execution.status is DeviceStatus.DONE
    right = done and bool(np.array_equal(run.output, tensors.expected.ravel()))
    return LayerVerification(
        layer.workload, run.execution.status.name.lower(), layer.cycles, run.execution.cycles, right
    )


def _key(design: Design, layer: LayerSchedule) -> str:
    """Return a digest of everything that decides what the RTL shows, its sources among it."""
    facts = {
        "design": design.to_dict() | {"name": ""},
        "layer": asdict(layer),
        "rtl": design_key(design.accelerator, "rtl"),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _read(path: Path) -> LayerVerification | None:
    """Return the kept verification; None where there is none, or it cannot be read and is made again."""
    try:
        return LayerVerification.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return None
