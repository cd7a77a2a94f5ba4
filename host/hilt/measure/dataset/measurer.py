"""A dataset as a board: it answers from its records, and verifies nothing."""

from __future__ import annotations

from collections.abc import Sequence

from hilt.measure.dataset.dataset import Dataset, DatasetError
from hilt.measure.dataset.dataset_store import DatasetStore
from hilt.measure.interfaces import BoardDescription, Report, Request
from hilt.schedule.workload_syntax import format_workload
from hilt.trial import Outcome, Result

PREFIX = "dataset:"
"""The prefix of a board's name; the dataset's name or key, or the beginning of one, follows it."""


class DatasetMeasurer:
    """A Measurer. The same configuration always gets the same answer, at once."""

    def __init__(self, dataset: Dataset, description: BoardDescription) -> None:
        self._dataset = dataset
        self.description = description

    @classmethod
    def open(cls, name: str) -> DatasetMeasurer:
        """Open a dataset by name. Raises DatasetError if there is no such dataset, or it is outdated."""
        dataset = DatasetStore().find(name.removeprefix(PREFIX))
        return cls(dataset, _description(name, dataset))

    def measure(self, requests: Sequence[Request], report: Report) -> None:
        """See Measurer. Raises DatasetError for a program that is of no configuration."""
        for request in requests:
            if request.index is None:
                raise DatasetError(f"trial {request.ordinal} is of no configuration; a dataset knows nothing else")
            report(request.ordinal, self._result(request, request.index))

    def _result(self, request: Request, index: int) -> Result:
        result = self._dataset.result(index)
        if result.microseconds is not None and result.microseconds > request.limit_seconds * 1e6:
            reason = f"recorded as {result.microseconds:,.0f} µs; the limit is {request.limit_seconds * 1e6:,.0f} µs"
            return Result(Outcome.TIMEOUT, reason, board=result.board)
        return result

    def close(self) -> None:
        """Nothing is held."""


def describe(name: str) -> BoardDescription:
    """Return the description that a run needs of the dataset. Raises DatasetError as `DatasetMeasurer.open`."""
    return DatasetMeasurer.open(name).description


def _description(name: str, dataset: Dataset) -> BoardDescription:
    subject = dataset.subject()
    return BoardDescription(
        name=name,
        accelerator=subject.accelerator,
        bitstream=f"dataset {subject.key}",
        clock_hz=subject.accelerator.clock_hz,
        deterministic=True,
        recorded={
            "workload": format_workload(subject.workload),
            "checks": subject.checks,
            "space": subject.kind,
            "orders": subject.orders if subject.kind == "autotvm" else 1,
        },
    )
