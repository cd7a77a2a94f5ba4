"""The initial design: failure priors, machine models, and the predictions for the choice of the first trials.

It depends on the problem and two options, not on the seed. It takes most of a run's processor time, so runs of one
problem share it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hilt.simulator.compilation import BuildError
from hilt.simulator.machine import MachineParameters
from hilt.simulator.toolchain import MissingToolError
from hilt.tune.model_guided.analytic_model import bytes_moved
from hilt.tune.model_guided.candidates import Candidates
from hilt.tune.model_guided.lowered import LoweredPrograms
from hilt.tune.model_guided.machines import (
    Machine,
    StructuralMachine,
    TwinMachine,
    measured_machine,
    public_machines,
    spread,
    structural_families,
    usual_costs,
)
from hilt.tune.model_guided.memories import hypotheses
from hilt.tune.model_guided.parts import Parts
from hilt.tune.model_guided.prediction import predictor_for
from hilt.tune.model_guided.shortlist import NEAR, Shortlist
from hilt.tune.model_guided.structural import EstimatedTiming, StructuralEstimate, StructuralTiming, Timing
from hilt.tune.model_guided.validity import FailurePrior, failure_priors
from hilt.tune.problem import TuningProblem

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

_RELEVANT = 0.1
"""Distance from the best (as a logarithm) up to which the twin predicts a row with every memory.

A row that lies further behind with every tried memory is predicted with the assumed one alone.
"""
_STRUCTURAL_ROUNDS = 2
PARTS = frozenset({"twin", "machines", "openings", "validity", "exact"})
"""Parts of the tuner that an ablation may leave out."""


@dataclass(frozen=True, eq=False)
class Hypotheses:
    """Predictions of one machine model before any measurement."""

    machine: Machine
    shortlist: Shortlist
    ensemble: Floats
    """Logarithms of cycles (rows, m) with m machines of the family."""
    rows: Rows
    starts: Floats
    """Coordinates (s, d) at which the search for the board's coordinates begins."""


@dataclass(frozen=True, eq=False)
class InitialDesign:
    """The initial design of a run. It does not change in a run, except that predictors cache their results."""

    candidates: Candidates
    failure_priors: list[FailurePrior]
    hypotheses: list[Hypotheses]
    """The hypotheses; the twin's first, unless it is left out."""
    rows: Rows
    """Rows that all hypotheses predict."""
    parts: Parts
    lightest: Rows
    """The rows that move the fewest bytes, within NEAR; the first of all first.

    Of several that move the fewest, it is the fastest where the stages take turns.
    """


@dataclass(frozen=True)
class DesignChoices:
    """The options of HiltOptions that the design depends on."""

    memories: int = 8
    published_faults: bool = True
    machine: MachineParameters | None = None
    left_out: frozenset[str] = frozenset()
    """Names of PARTS."""


def initial_design_of(problem: TuningProblem, candidates: Candidates, choices: DesignChoices) -> InitialDesign:
    """Return the initial design for the problem's candidates, at least one."""
    key = ("hilt's initial design", choices)
    return problem.once(key, lambda: _initial_design(problem, candidates, choices))


def _initial_design(problem: TuningProblem, candidates: Candidates, choices: DesignChoices) -> InitialDesign:
    known = failure_priors(problem, candidates.indices, candidates.hidden, choices.published_faults)
    if "validity" in choices.left_out:
        known = known[:1]
    lowered = LoweredPrograms(problem, candidates.indices)
    twin = TwinMachine(
        problem.accelerator, predictor_for(problem, lowered, candidates.analytic_model), candidates.analytic_model
    )
    families = _families(problem, candidates, lowered, choices)
    machines: list[Machine] = [*([] if "twin" in choices.left_out else [twin]), *families]
    shortlists = [_opened(candidates, lowered, machine) for machine in machines]
    rows = np.unique(np.concatenate([shortlist.rows for shortlist in shortlists]))
    found = []
    for machine, shortlist in zip(machines, shortlists, strict=True):
        if machine is twin:
            found.append(_twin_hypotheses(twin, shortlist, rows, hypotheses(problem.accelerator, choices.memories)))
            continue
        some = shortlist.include(rows)
        points = spread(machine, choices.memories)
        found.append(Hypotheses(machine, shortlist, shortlist.exact(some, points), some, points))
    return InitialDesign(candidates, known, found, rows, Parts(candidates), _lightest(problem, candidates))


def _lightest(problem: TuningProblem, candidates: Candidates) -> Rows:
    moved = np.log(bytes_moved(problem.accelerator, candidates.hidden))
    usual = usual_costs(problem.accelerator)
    in_turn = StructuralEstimate(candidates.hidden).log_cycles(usual, overlap=False)
    order = np.lexsort((in_turn, moved))
    return np.asarray(order[moved[order] <= moved.min() + NEAR])


def _families(
    problem: TuningProblem, candidates: Candidates, lowered: LoweredPrograms, choices: DesignChoices
) -> list[StructuralMachine]:
    """Return the machines that are built otherwise than the twin, the bitstream's own last."""
    if "machines" in choices.left_out:
        return []
    rough = StructuralEstimate(candidates.hidden)
    timing = _timing(lowered, rough)
    families = [
        *structural_families(timing, rough, problem.accelerator),
        *public_machines(timing, rough, problem.accelerator),
    ]
    if choices.machine is not None:
        families.append(measured_machine(timing, rough, choices.machine))
    if "openings" in choices.left_out:
        families = [replace(machine, openings=machine.prior[None]) for machine in families]
    return families


def _opened(candidates: Candidates, lowered: LoweredPrograms, machine: Machine) -> Shortlist:
    """Return a machine's shortlist after its first predictions."""
    shortlist = Shortlist(candidates, lowered, machine)
    if isinstance(machine, TwinMachine):
        shortlist.open(machine.openings)
    else:
        shortlist.open(machine.openings, _STRUCTURAL_ROUNDS)
    return shortlist


def _timing(lowered: LoweredPrograms, rough: StructuralEstimate) -> Timing:
    """Return the structural machines' timing; without a compiler the estimate, as `predictor_for` reports."""
    try:
        return StructuralTiming(lowered)
    except (MissingToolError, BuildError):
        return EstimatedTiming(rough)


def _twin_hypotheses(machine: TwinMachine, shortlist: Shortlist, rows: Rows, points: Floats) -> Hypotheses:
    """Predict rows close to the best of some memory with every memory; the rest with the assumed memory alone."""
    openings = machine.openings
    cycles = shortlist.exact(shortlist.rows, openings)
    pad_end = (cycles - cycles.min(axis=0)).min(axis=1)
    order = np.argsort(pad_end, kind="stable")[: machine.affordable(float(np.exp(cycles.min())))]
    near = np.sort(order[pad_end[order] < _RELEVANT])
    ensemble = np.repeat(cycles[:, :1], len(points), axis=1)
    ensemble[near] = shortlist.exact(shortlist.rows[near], points)
    # A row behind all others keeps its distance with every memory.
    ensemble += np.where(
        np.isin(np.arange(len(cycles)), near)[:, None], 0, ensemble[near].min(axis=0) - cycles[near, 0].min()
    )
    return Hypotheses(machine, shortlist, ensemble, shortlist.rows, machine.prior[None])
