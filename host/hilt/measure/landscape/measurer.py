"""A landscape as a board: it answers from what was recorded, and verifies nothing."""

from __future__ import annotations

from collections.abc import Sequence

from hilt.measure.landscape.recording import Landscape, LandscapeError
from hilt.measure.landscape.shelf import Shelf
from hilt.measure.types import BoardDescription, Report, Request
from hilt.schedule.spelling import spelled
from hilt.trial import Outcome, Result

PREFIX = "landscape:"
"""Of a board's name; what follows is the landscape's name or key, or the beginning of one."""


class LandscapeMeasurer:
    """A Measurer. The same configuration always gets the same answer, at once."""

    def __init__(self, landscape: Landscape, description: BoardDescription) -> None:
        self._landscape = landscape
        self.description = description

    @classmethod
    def open(cls, name: str) -> LandscapeMeasurer:
        """Raises LandscapeError where there is no such landscape, or it is outdated."""
        landscape = Shelf().find(name.removeprefix(PREFIX))
        return cls(landscape, _description(name, landscape))

    def measure(self, requests: Sequence[Request], report: Report) -> None:
        """See Measurer. Raises LandscapeError for a program that is of no configuration."""
        for request in requests:
            if request.configuration is None:
                raise LandscapeError(f"trial {request.number} is of no configuration; a landscape knows nothing else")
            report(request.number, self._result(request, request.configuration))

    def _result(self, request: Request, configuration: int) -> Result:
        result = self._landscape.result(configuration)
        if result.microseconds is not None and result.microseconds > request.limit_seconds * 1e6:
            reason = f"recorded as {result.microseconds:,.0f} µs; the limit is {request.limit_seconds * 1e6:,.0f} µs"
            return Result(Outcome.TIMEOUT, reason, board=result.board)
        return result

    def close(self) -> None:
        """Nothing is held."""


def describe(name: str) -> BoardDescription:
    """What a run must know of the landscape. Raises LandscapeError as `LandscapeMeasurer.open`."""
    return LandscapeMeasurer.open(name).description


def _description(name: str, landscape: Landscape) -> BoardDescription:
    subject = landscape.subject()
    return BoardDescription(
        name=name,
        accelerator=subject.accelerator,
        bitstream=f"landscape {subject.key}",
        clock_hz=subject.accelerator.clock_hz,
        deterministic=True,
        recorded={
            "workload": spelled(subject.workload),
            "checks": subject.checks,
            "space": subject.kind,
            "orders": subject.orders if subject.kind == "autotvm" else 1,
        },
    )
