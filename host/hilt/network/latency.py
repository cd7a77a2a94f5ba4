"""The whole inference in one record: the latency of a network in every command, screen, report and file of hilt.

Its parts add up to its total: VTA's own time, the starts of VTA, the crossings between the processor's arrays and VTA's
layout, and the processor's operators with the runtime's time between steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Latency:
    """Microseconds of one inference: of all that were run warm, the one with the median total.

    Attributes:
        vta: VTA's own time.
        start: From the calls that start VTA to their ends, without VTA's own time.
        crossings: Tensors packed, folded and unpacked.
        processor: Operators on the processor, and the runtime's time between steps.
        starts: How often VTA is started.
        assumed: How start, crossings and processor were made, in words; empty where they are measured.
        warm: Inferences of which it is the median; 0 if the first was the only one.
        least: The least total of these.
        largest: The largest total of these.
        first: The total of the first inference, which is cold; None if none was counted apart, or if times are assumed.
        images_per_second: The throughput of images that overlap, measured; None if none did.
    """

    vta: float
    start: float
    crossings: float
    processor: float
    starts: int
    assumed: str = ""
    warm: int = 0
    least: float | None = None
    largest: float | None = None
    first: float | None = None
    images_per_second: float | None = None

    @property
    def total(self) -> float:
        """The whole inference."""
        return self.vta + self.start + self.crossings + self.processor

    @property
    def rate(self) -> float:
        """Images a second: overlapped where that was measured or all but VTA is assumed, else one by one."""
        if self.images_per_second is not None:
            return self.images_per_second
        return 1e6 / self.period if self.period else 0.0

    @property
    def period(self) -> float:
        """Microseconds from one image to the next.

        Where times are assumed, one core starts VTA and waits for it while the other computes the next image's steps:
        the longer side counts. The runtime overlaps two images, and each program waits for its turn.
        """
        if not self.assumed:
            return self.total
        return max(self.vta + self.start, self.crossings + self.processor)

    @property
    def overlaps(self) -> bool:
        """Whether `rate` is of images that overlap."""
        return bool(self.assumed) or self.images_per_second is not None

    @property
    def parts(self) -> tuple[tuple[str, float], ...]:
        """The parts in order: (name, microseconds); they add up to `total`."""
        starts = "1 start" if self.starts == 1 else f"{self.starts} starts"
        return ("VTA", self.vta), (starts, self.start), ("crossings", self.crossings), ("processor", self.processor)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"total": self.total, **asdict(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Latency:
        """Return the record of `to_dict`. Raises KeyError, TypeError or ValueError for other values."""
        known = {each.name for each in fields(cls)}
        taken = {name: value for name, value in values.items() if name in known}
        record = cls(**taken)
        if not all(part >= 0 for _, part in record.parts):
            raise ValueError("a part of the latency is negative")
        return record


def scaled(microseconds: float) -> str:
    """Return a latency in the unit that fits, as in `812.3 µs` or `68.03 ms`."""
    return f"{microseconds:,.1f} µs" if microseconds < 10_000 else f"{microseconds / 1e3:,.2f} ms"


def latency_text(latency: Latency) -> str:
    """Return the record in one line, as in `1,091.8 µs an inference: VTA 683.9 µs, 2 starts 300.0 µs, ...`."""
    parts = ", ".join(f"{name} {scaled(part)}" for name, part in latency.parts)
    mark = f" (all but VTA {latency.assumed})" if latency.assumed else ""
    overlapped = " overlapped" if latency.overlaps else ""
    return f"{scaled(latency.total)} an inference, {latency.rate:,.1f} images a second{overlapped}: {parts}{mark}"


def runs_text(latency: Latency) -> str:
    """Return how many inferences the figure is from, their spread, and the first."""
    if latency.assumed:
        ran = "1 inference" if not latency.warm else f"{latency.warm + 1} inferences"
        return f"{ran} ran one by one; the model of the processor gives each the same time"
    if not latency.warm:
        return "one inference, the first: cold"
    spread = ""
    if latency.warm > 2 and latency.least is not None and latency.largest is not None:
        spread = f", {scaled(latency.least)} to {scaled(latency.largest)}"
    of = "1 warm inference" if latency.warm == 1 else f"the median of {latency.warm} warm inferences{spread}"
    first = "" if latency.first is None else f"; the first, cold, took {scaled(latency.first)}"
    return of + first
