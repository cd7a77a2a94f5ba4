"""What a run begins with: clues, and the predictions that the first trials are chosen by. It depends on the problem and
two options, not on the seed, and takes most of a run's processor time: runs of one problem share it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilt.tune.model_guided.candidates import Candidates
from hilt.tune.model_guided.memories import PRIOR_DEVIATION, hypotheses, prior_mean
from hilt.tune.model_guided.prediction import Predictor, predictor_for
from hilt.tune.model_guided.shortlist import Shortlist
from hilt.tune.model_guided.validity import FailurePrior, failure_priors
from hilt.tune.problem import TuningProblem

Floats = npt.NDArray[np.float64]

_EXTREME = np.array([1.3, 1.3, 1.3])
"""Prior deviations from the assumed memory of the slow and the fast one that the shortlist is made for."""


@dataclass(frozen=True, eq=False)
class InitialDesign:
    """Nothing of it changes in a run, but that the predictor remembers what it was asked."""

    candidates: Candidates
    failure_priors: list[FailurePrior]
    predictor: Predictor
    prior: Floats
    """Coordinates (3,) of the memory that is assumed."""
    shortlist: Shortlist
    extremes: Floats
    """Logarithms of cycles (rows of the shortlist, 3): with the assumed memory, a slow one and a fast one."""
    hypotheses: Floats
    """Coordinates (memories, 3) that the first trials are chosen for."""


def initial_design_of(
    problem: TuningProblem, candidates: Candidates, memories: int, published_faults: bool
) -> InitialDesign:
    """Of the problem's candidates, at least one; the options are those of HiltOptions."""
    what = ("hilt's opening", memories, published_faults)
    return problem.once(what, lambda: _opening(problem, candidates, memories, published_faults))


def _opening(problem: TuningProblem, candidates: Candidates, memories: int, published_faults: bool) -> InitialDesign:
    known = failure_priors(problem, candidates.indices, candidates.hidden, published_faults)
    predictor = predictor_for(problem, candidates.indices, candidates.analytic_model)
    prior = prior_mean(problem.accelerator)
    extremes = np.stack((prior, prior + _EXTREME * PRIOR_DEVIATION, prior - _EXTREME * PRIOR_DEVIATION))
    extremes[2, 2] = 0.0
    shortlist = Shortlist(candidates, predictor)
    shortlist.open(extremes)
    few = predictor.log_cycles(shortlist.rows.tolist(), extremes)
    return InitialDesign(candidates, known, predictor, prior, shortlist, few, hypotheses(problem.accelerator, memories))
