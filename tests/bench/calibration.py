"""The error of a fitted machine on layers that it did not see, for invented bitstreams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from hilt.run_choices import CheckLevel
from hilt.schedule import load_workload
from hilt.silicon.calibrate import Measurement, calibrate, log_errors
from hilt.silicon.measured import public_accelerator
from hilt.simulator.builds import CHISEL, NEWER, OLDER, shipped_builds
from hilt.simulator.machine import EventMachine, MachineParameters
from hilt.tune.problem import TuningProblem
from hilt.vta.parameters import VTAParameters
from tests.bench.figure import Figure, Sizes, Topic

_ACCELERATOR = public_accelerator(VTAParameters.from_name("1x16_i8w8a32_15_15_18_17"))
_SEEN, _UNSEEN = ("C5", "C9"), ("C3", "C4", "C6", "C7", "C8", "C11")
_TRIALS, _JUDGED = 10, 8
_SEED = 10
_CALL_SECONDS, _NOISE = 12e-6, 0.005
_WIDE = {"hit_bytes": 16.0, "store_bytes": 16.0}
_BUILDS: Mapping[str, tuple[str, Mapping[str, float], float]] = {
    "142.857 MHz": (NEWER, {}, 142.857e6),
    "bus of 128 bits": (NEWER, {**_WIDE, "miss_bytes": 7.0}, 100e6),
    "GEMM at two cycles": (NEWER, {"gemm_micro_op": 2.0}, 100e6),
    "ALU element of 4 cycles": (NEWER, {"alu_micro_op": 4.0}, 100e6),
    "DMA row of 120 cycles": (NEWER, {"load_row": 120.0}, 100e6),
    "all five": (NEWER, {**_WIDE, "gemm_micro_op": 2.0, "alu_micro_op": 4.0, "load_row": 120.0}, 142.857e6),
    "older, rows of 120 and 90": (OLDER, {"load_row": 120.0, "store_row": 90.0}, 100e6),
    "no cache, rows of 20 and 15": (NEWER, {"cache_bytes": 0.0, "load_row": 20.0, "store_row": 15.0}, 100e6),
    "transfers of 150 and 100": (NEWER, {"load_start": 150.0, "store_start": 100.0, "load_row": 10.0}, 100e6),
    "rows that overlap": (NEWER, {"rows_overlap": 1.0}, 100e6),
    "Chisel, 142.857 MHz": (CHISEL, {}, 142.857e6),
}


def _figures(_: Sizes) -> Iterator[Figure]:
    for name, (base, changes, clock_hz) in _BUILDS.items():
        machine = replace(shipped_builds().machines[base], **changes)
        seen = [item for layer in _SEEN for item in _measured(layer, _TRIALS, _SEED, machine, clock_hz)]
        fitted = calibrate(seen, _ACCELERATOR)
        unseen = [item for layer in _UNSEEN for item in _measured(layer, _JUDGED, _SEED + 40, machine, clock_hz)]
        errors = log_errors(unseen, fitted.machine, fitted.call_seconds, _ACCELERATOR)
        value = f"{100 * np.sqrt(np.mean(errors**2)):.1f} %, at most {100 * np.abs(errors).max():.1f} %"
        yield Figure(f"error of the fit, {name}", ", ".join(_UNSEEN), str(_SEED), str(len(unseen)), value, "4 %")


def _measured(layer: str, count: int, seed: int, machine: MachineParameters, clock_hz: float) -> list[Measurement]:
    """Return random programs of a layer with the seconds of an invented machine, noise included."""
    problem = TuningProblem.of(load_workload(f"resnet18.{layer}"), _ACCELERATOR, checks=CheckLevel.STRICT)
    chosen = np.random.default_rng(seed).choice(np.flatnonzero(problem.compiles), count, replace=False)
    programs = [program for program in problem.lowered_many(chosen) if program is not None]
    cycles = EventMachine(_ACCELERATOR).predict(programs, machine)["cycles"]
    noise = np.exp(np.random.default_rng(seed + 100).normal(0, _NOISE, len(programs)))
    seconds = (cycles / clock_hz + _CALL_SECONDS) * noise
    return [Measurement(layer, program, float(at)) for program, at in zip(programs, seconds, strict=True)]


TOPIC = Topic(
    "calibration", "machines fitted to twenty trials of two layers, on layers that they did not see", _figures
)
