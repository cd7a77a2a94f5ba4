"""Estimates, machines and predictions of one space, in three digits, beside those that were accepted.

Other tests hold that the tuner finds what is best. A change that makes it find that later shows here. If it is meant:
`build/host-env/bin/pytest tests/unit/tune/model_guided/test_as_it_was.py --snapshot-update`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import ArrayLike
from syrupy.assertion import SnapshotAssertion

from hilt.schedule import load_workload
from hilt.tune import TuningProblem
from hilt.tune.model_guided.candidates import Candidates, candidates_of
from hilt.tune.model_guided.initial_design import DesignChoices, InitialDesign, initial_design_of
from hilt.tune.model_guided.latencies import Latencies
from hilt.tune.model_guided.machines import spread
from hilt.tune.model_guided.memories import hypotheses, memory_at
from hilt.tune.model_guided.validity import Validity
from hilt.virtual.board_model import board_model

PYNQ = board_model("pynq").accelerator


@pytest.fixture(scope="module")
def design() -> InitialDesign:
    problem = TuningProblem.of(load_workload("resnet18.C10"), PYNQ, checks="tvm")
    return initial_design_of(problem, candidates_of(problem), DesignChoices())


def three(values: ArrayLike) -> str:
    return " ".join(f"{value:.3g}" for value in np.asarray(values, dtype=float).ravel())


def some(candidates: Candidates) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.linspace(0, len(candidates) - 1, 12).astype(np.int64)


def test_estimates_and_machines(design: InitialDesign, snapshot: SnapshotAssertion) -> None:
    candidates = design.candidates
    lines = [f"{len(candidates)} candidates, {int(candidates.short.sum())} short; {design.rows.size} rows"]
    lines += [f"smooth {three(candidates.smooth[some(candidates)].mean(axis=0))}", f"rows {design.rows[:24].tolist()}"]
    lines += [f"memory {three(point)} {memory_at(point, PYNQ)}" for point in hypotheses(PYNQ, 5)]
    for point in hypotheses(PYNQ, 3):
        lines.append(f"analytic {three(candidates.analytic_model.cycles(point)[some(candidates)])}")
    lines += [f"failures {prior.name}: {three(prior.values[some(candidates)])}" for prior in design.failure_priors]
    for entry in design.hypotheses:
        machine, rows = entry.machine, entry.rows[:: max(1, len(entry.rows) // 6)]
        lines.append(f"machine {machine.name}, weight {machine.weight:.3g}, of {len(entry.rows)} rows {rows.tolist()}")
        lines += [f"  {word} {three(values)}" for word, values in _facts(design, entry.machine, rows)]
        lines.append(f"  ensemble {entry.ensemble.shape} {three(entry.ensemble.mean(axis=0)[:6])}")
    assert "\n".join(lines) == snapshot


def _facts(design: InitialDesign, machine, rows) -> Iterator[tuple[str, ArrayLike]]:
    point = machine.prior + 0.3 * machine.deviation
    cycles, slopes = machine.derivatives(rows.tolist(), point)
    yield "prior", machine.prior
    yield "deviation", machine.deviation
    yield "openings", machine.openings
    yield "spread", spread(machine, 3)
    yield "clipped", machine.clipped(machine.prior - 100)
    yield "estimate", machine.estimate(point)[some(design.candidates)]
    yield "cycles", cycles
    yield "slopes", slopes.sum(axis=0)
    yield "rough slopes", machine.rough_derivatives(point)[some(design.candidates)].sum(axis=0)
    yield "affordable", [machine.affordable(1e5), machine.affordable(1e7)]


@pytest.mark.slow
def test_what_is_learnt(design: InitialDesign, snapshot: SnapshotAssertion) -> None:
    """Learn the latencies of a board with a slow memory, and one that is off, by two machines."""
    design = replace(design, hypotheses=design.hypotheses[:2])
    latencies = Latencies(design)
    twin = design.hypotheses[0].machine
    rows = design.rows[:: max(1, len(design.rows) // 26)][:12]
    logs = twin.log_cycles(rows.tolist(), (twin.prior + np.array([0.6, 0.2, 0.3]))[None])[:, 0] + 0.1
    logs[5] += 0.2
    assert "\n".join(_learnt(design, latencies, rows, logs)) == snapshot


def test_what_is_learnt_of_a_step(snapshot: SnapshotAssertion) -> None:
    """Learn 24 latencies of a small space, half of which has a step, with errors of each row's own."""
    problem = TuningProblem.of(load_workload("conv2d:n=1,ci=16,h=4,w=6,co=32,k=3x3,p=1x1"), PYNQ, orders=1)
    design = initial_design_of(problem, candidates_of(problem), DesignChoices(4, left_out=frozenset({"machines"})))
    twin = design.hypotheses[0].machine
    rows = np.random.default_rng(5).permutation(len(design.candidates))[:24]
    shortlist = design.hypotheses[0].shortlist.copy()
    logs = shortlist.exact(shortlist.include(rows), (twin.prior + np.array([0.6, 0.2, 0.3]))[None])[:, 0] - 0.2
    logs += np.where(problem.columns(design.candidates.indices)["tile_h"][rows] > 1, 0.25, 0.0)
    logs += 0.01 * np.sin(np.arange(24))
    assert "\n".join(_learnt(design, Latencies(design), rows, logs)) == snapshot


def _learnt(design: InitialDesign, latencies: Latencies, rows, logs) -> list[str]:
    """Return the predictions after each batch of eight."""
    lines = ["before: " + _told(latencies, design)]
    known = dict(zip(rows.tolist(), logs.tolist(), strict=True))
    measured: dict[int, float] = {}
    for first in range(0, len(rows), 8):
        batch = rows[first : first + 8].tolist()
        latencies.expect(batch)
        new = {row: known[row] for row in batch}
        measured |= new
        latencies.learn(new, measured, np.array(sorted(measured)))
        lines.append(f"after {len(measured)}: {_told(latencies, design)}")
        off = np.array(latencies.mismatch(measured), dtype=float)
        lines.append(f"  of {latencies.machine}, widened {latencies.widening:.3g}, off {three(off)}")
    drawn = latencies.sample(np.arange(6), 200, np.random.default_rng(1))
    return [*lines, f"drawn {three(drawn.mean(axis=0))} deviate {three(drawn.std(axis=0))}"]


def _told(latencies: Latencies, design: InitialDesign) -> str:
    predicted = latencies.predict()
    mean, deviation = predicted.mean, predicted.deviation
    places = np.linspace(0, len(mean) - 1, 8).astype(np.int64)
    rough = latencies.estimate()[some(design.candidates)]
    return f"{len(mean)} rows, {three(mean[places])} +- {three(deviation[places])}; rough {three(rough)}"


def test_failures_that_are_learnt(design: InitialDesign, snapshot: SnapshotAssertion) -> None:
    validity = Validity(design.failure_priors, design.candidates.knobs)
    rows = some(design.candidates)
    lines = [f"before {three(validity.probability(rows))}"]
    for count in (4, 24):
        told = np.arange(0, len(design.candidates), len(design.candidates) // count)[:count]
        validity.learn(told, design.candidates.knobs.scaled[told, 0] > 0.3)
        lines.append(f"after {count} {three(validity.probability(rows))}, surprised {validity.surprised}")
    drawn = validity.sample(rows, 100, np.random.default_rng(2))
    lines.append(f"drawn {three(drawn.mean(axis=0))}")
    assert "\n".join(lines) == snapshot
