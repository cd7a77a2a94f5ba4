"""Layers with the schedule that hilt would choose on a public board, checked on the golden model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hilt.schedule import Workload, load_convolution, make_tensors
from hilt.schedule.networks import load_network
from hilt.silicon.choose import Choice, choose, workload_of
from hilt.silicon.measured import MeasuredWorkload, cycles_of, public_accelerator, with_programs
from hilt.silicon.packed_task import CONV2D, TaskError
from hilt.silicon.records import read_records
from hilt.simulator.build import build
from hilt.simulator.builds import CLOCK_HZ, shipped_builds
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program
from hilt.vta.accelerator import Accelerator, load_parameters

RELATIVE_ERROR = 0.0176
"""Root mean square of the log error of a fit that never saw the workload (docs/silicon.md)."""


@dataclass(frozen=True)
class Advice:
    """One layer: the choice, and the published configuration where there is one.

    Attributes:
        name: The layer.
        count: How often the network has it.
        machine: The machine model that chose.
        choice: The program that it finds fastest.
        exact: Whether the golden model computes the layer bit-exactly with it.
        published: The published configuration with its measurement; None without one.
        published_cycles: Cycles of that by the model.
    """

    name: str
    count: int
    machine: str
    choice: Choice
    exact: bool
    published: MeasuredWorkload | None = None
    published_cycles: float | None = None

    @property
    def seconds(self) -> float:
        """Predicted seconds from start to done, without a runtime around them."""
        return self.choice.cycles / CLOCK_HZ

    @property
    def seconds_with_runtime(self) -> float:
        """Predicted seconds if TVM's runtime made the call."""
        return shipped_builds().seconds(self.choice.cycles, len(self.choice.program.instructions))

    @property
    def gain(self) -> float | None:
        """Published measurement over the prediction, both with TVM's runtime."""
        mean = None if self.published is None else self.published.record.mean_seconds
        return None if mean is None else mean / self.seconds_with_runtime

    @property
    def gain_error(self) -> float | None:
        """Two standard deviations of that ratio, from the cross-validated error of the prediction."""
        return None if self.gain is None else 2 * RELATIVE_ERROR * self.gain


def advice_for_network(name: str, machine: str) -> Iterator[Advice]:
    """Yield the advice for each layer of a network on a public PYNQ board.

    Raises:
        TaskError: The machine is not known, or a layer fits no schedule.
        WorkloadError: The network is not known.
    """
    _check_machine(machine)
    accelerator = public_accelerator(load_parameters("pynq"))
    for layer in load_network(name).layers:
        yield _advise(load_convolution(layer.workload), layer.workload, len(layer.nodes), machine, accelerator)


def advice_for_records(path: Path) -> Iterator[Advice]:
    """Yield the advice for each measured convolution, on the build that measured it; doubtful records are left out."""
    measured, _ = with_programs(read_records(path).records)
    for item in measured:
        record = item.record
        if record.task.kind != CONV2D or record.doubt or record.below_mac_bound or not record.seconds:
            continue
        workload = workload_of(record.task)
        advice = _advise(workload, record.task.name, 1, item.build, public_accelerator(record.parameters))
        cycles = float(cycles_of([item], shipped_builds().machines)[0])
        yield Advice(advice.name, 1, item.build, advice.choice, advice.exact, item, cycles)


def _check_machine(machine: str) -> None:
    known = shipped_builds().machines
    if machine not in known:
        raise TaskError(f"machine {machine!r} is not known; there are {', '.join(known)}")


def _advise(workload: Workload, name: str, count: int, machine: str, accelerator: Accelerator) -> Advice:
    choice = choose(workload, accelerator, shipped_builds().machines[machine])
    tensors = make_tensors(workload, accelerator, 1)
    run = run_program(build(accelerator, "golden"), choice.program, tensors.inputs)
    exact = run.execution.status is DeviceStatus.DONE and np.array_equal(run.output, tensors.expected.reshape(-1))
    return Advice(name, count, machine, choice, exact)


def advice_lines(advice: Advice) -> str:
    """Return one layer's advice as a line."""
    exact = "bit-exact" if advice.exact else "WRONG on the golden model"
    line = f"{advice.name:<36} x{advice.count} {advice.machine} {1e6 * advice.seconds:>9.1f} us, {exact}: "
    line += advice.choice.schedule
    if advice.gain is None or advice.gain_error is None or advice.published is None:
        return line
    mean = advice.published.record.mean_seconds or math.nan
    gain = f"{advice.gain:.3f} +- {advice.gain_error:.3f} times as fast as the published {1e6 * mean:.1f} us"
    return f"{line}; with TVM's runtime {1e6 * advice.seconds_with_runtime:.1f} us, {gain}"


def total_lines(layers: Sequence[Advice]) -> list[str]:
    """Return the sums over a network's layers."""
    alone = 1e3 * sum(layer.count * layer.seconds for layer in layers)
    called = 1e3 * sum(layer.count * layer.seconds_with_runtime for layer in layers)
    count = sum(layer.count for layer in layers)
    bar = 2 * RELATIVE_ERROR
    return [
        f"{count} layers: {alone:.2f} +- {bar * alone:.2f} ms from start to done, programs ready in memory",
        f"{count} layers: {called:.2f} +- {bar * called:.2f} ms if TVM's runtime made each call",
        f"bit-exact on the golden model: {sum(layer.count for layer in layers if layer.exact)} of {count}",
    ]


def advice_json(layers: Sequence[Advice]) -> dict[str, Any]:
    """Return everything that `hilt silicon choose --json` prints."""
    return {
        "layers": [
            {
                "name": layer.name,
                "count": layer.count,
                "machine": layer.machine,
                "schedule": layer.choice.schedule,
                "instructions": len(layer.choice.program.instructions),
                "program_sha256": layer.choice.program.sha256,
                "predicted_seconds": layer.seconds,
                "predicted_seconds_with_runtime": layer.seconds_with_runtime,
                "exact": layer.exact,
                "published_seconds": None if layer.published is None else layer.published.record.mean_seconds,
                "published_cycles": layer.published_cycles,
                "gain": layer.gain,
                "gain_error": layer.gain_error,
            }
            for layer in layers
        ],
        "seconds": sum(layer.count * layer.seconds for layer in layers),
        "seconds_with_runtime": sum(layer.count * layer.seconds_with_runtime for layer in layers),
        "relative_error": RELATIVE_ERROR,
        "all_exact": all(layer.exact for layer in layers),
    }
