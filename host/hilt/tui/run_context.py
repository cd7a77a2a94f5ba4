"""A run's space, accelerator and memory, made from its record. Calls that take long are for threads."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.engine.run_spec import RunTask
from hilt.measure import board_names_of, describe_board
from hilt.report.explanation import Explanation, explain
from hilt.schedule import Reason
from hilt.schedule.clusters import Clusters, clusters
from hilt.schedule.validity_summary import summarize_validity
from hilt.simulator.device import MemoryModel
from hilt.store import Run
from hilt.tune import TuningProblem
from hilt.tune.metrics import pairwise_accuracy
from hilt.virtual.names import PREFIX, parse_virtual_name

LARGEST_SPACE = 2_000_000
"""Configurations of a space that is drawn: its verdicts take two seconds."""


class TooLargeError(ValueError):
    """A space that is not drawn."""


@dataclass(frozen=True, eq=False)
class SpaceFacts:
    """The compiler's verdicts on a whole space, and the clusters of the accepted configurations.

    Verdicts are Reason numbers (configurations,). `labels` (configurations,) is the cluster of each, from 0 for the
    largest,
    -1 if it is rejected.
    """

    verdicts: NDArray[np.int64]
    clusters: Clusters
    labels: NDArray[np.int64]


class RunContext:
    """The context of one run.

    Making it raises the errors of hilt.measure.describe_board, and WorkloadError for a record of another version of
    hilt.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.description = describe_board(run.board)
        self.problem: TuningProblem = RunTask(run, self.description).problem
        self.space = self.problem.space

    @functools.cached_property
    def memory(self) -> MemoryModel:
        """Return the memory of a virtual board; for a real board, that of a Zynq-7000, the default of MemoryModel."""
        first = board_names_of(self.run.board)[0]
        return parse_virtual_name(first)[0].memory_model if first.startswith(PREFIX) else MemoryModel()

    @functools.cached_property
    def facts(self) -> SpaceFacts:
        """Up to two seconds. Raises TooLargeError."""
        if len(self.space) > LARGEST_SPACE:
            raise TooLargeError(f"a space of {len(self.space):,} configurations is too large to be drawn")
        problem = self.problem
        found = summarize_validity(problem.workload, problem.accelerator, self.space, problem.checks).verdicts
        grouped = clusters(self.space, found == Reason.OK)
        labels = np.full(len(self.space), -1, dtype=np.int64)
        labels[grouped.members] = grouped.labels
        return SpaceFacts(found, grouped, labels)

    def explain(self, index: int) -> Explanation:
        """Return the explanation: a tenth of a second, and building the twin once.

        Raises ConfigurationError, BuildError.
        """
        problem = self.problem
        return explain(problem.workload, self.space, index, problem.accelerator, self.memory)

    def twin_agreement(self, configurations: Sequence[int], microseconds: Sequence[float]) -> float:
        """Share of pairs of measured configurations that the twin orders as the board did; NaN for fewer than two.

        Raises BuildError.
        """
        cycles = self.problem.predicted_cycles(np.asarray(configurations, dtype=np.int64), [self.memory])[:, 0]
        known = np.isfinite(cycles)
        return pairwise_accuracy(1 / cycles[known], 1 / np.asarray(microseconds)[known]).valid_valid
