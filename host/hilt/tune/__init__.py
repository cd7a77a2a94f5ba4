"""Ask/tell tuners, cost models and search moves. They know configurations, features and results,
and never learn where a trial was measured."""

from __future__ import annotations

from hilt.tune.assessment import Assessment, Stop
from hilt.tune.feedback import Feedback, Tuner
from hilt.tune.options import TunerOptionError
from hilt.tune.problem import TuningProblem
from hilt.tune.registry import UnknownTunerError, make_tuner, resolve_options, tuner_names, tuner_summaries

__all__ = [
    "Assessment",
    "Feedback",
    "Stop",
    "Tuner",
    "TunerOptionError",
    "TuningProblem",
    "UnknownTunerError",
    "make_tuner",
    "resolve_options",
    "tuner_names",
    "tuner_summaries",
]
