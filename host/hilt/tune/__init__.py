"""Ask/tell tuners, cost models and search moves.

They know configurations, features and results, but not the board of a trial.
"""

from __future__ import annotations

from hilt.tune.assessment import Assessment, Stop
from hilt.tune.feedback import Feedback, Tuner
from hilt.tune.options import TunerOptionError
from hilt.tune.plugins import PluginError
from hilt.tune.problem import TuningProblem
from hilt.tune.registry import (
    UnknownTunerError,
    canonical_tuner,
    load_libraries,
    make_tuner,
    resolve_options,
    tuner_exists,
    tuner_names,
    tuner_options,
    tuner_summaries,
)

__all__ = [
    "Assessment",
    "Feedback",
    "PluginError",
    "Stop",
    "Tuner",
    "TunerOptionError",
    "TuningProblem",
    "UnknownTunerError",
    "canonical_tuner",
    "load_libraries",
    "make_tuner",
    "resolve_options",
    "tuner_exists",
    "tuner_names",
    "tuner_options",
    "tuner_summaries",
]
