"""Measured and predicted seconds of records, by each machine model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hilt.silicon.fit import rank_correlation, root_mean_square
from hilt.silicon.measured import MeasuredWorkload, cycles_of
from hilt.simulator.builds import CLOCK_HZ, NEWER, OLDER, Builds
from hilt.simulator.device import MemoryModel
from hilt.simulator.twin import Twin, TwinStatus
from hilt.vta.accelerator import Accelerator
from hilt.vta.parameters import VTAParameters

RTL_TWIN = "rtl_twin"
"""hilt's own RTL with its own memory, for comparison."""
MODELS = (NEWER, OLDER, RTL_TWIN)


@dataclass(frozen=True)
class RecordPrediction:
    """One record: seconds by machine model, and the model of the build that its date names."""

    measured: MeasuredWorkload
    seconds: dict[str, float | None]

    @property
    def chosen(self) -> float:
        """Seconds by the model of the record's build."""
        value = self.seconds[self.measured.build]
        assert value is not None  # only the twin may have none
        return value

    @property
    def log_error(self) -> float | None:
        """log(predicted / measured); None where nothing was measured."""
        mean = self.measured.record.mean_seconds
        return None if mean is None else float(np.log(self.chosen / mean))

    @property
    def counts(self) -> bool:
        """Return whether the record can judge a model: it has seconds and nobody doubts them."""
        record = self.measured.record
        return bool(record.seconds) and record.doubt is None and not record.below_mac_bound


@dataclass(frozen=True)
class FitAccuracy:
    """The accuracy of a model on the records that count."""

    records: int
    rms: float
    rank_correlation: float | None


def predict(measured: Sequence[MeasuredWorkload], builds: Builds) -> list[RecordPrediction]:
    """Return each record's seconds by each model, TVM's runtime included."""
    cycles = {}
    for name in (NEWER, OLDER):
        both = dict.fromkeys((NEWER, OLDER), builds.machines[name])
        cycles[name] = cycles_of(measured, both)
    predictions = []
    for row, item in enumerate(measured):
        around = builds.runtime.seconds(item.instructions)
        seconds: dict[str, float | None] = {name: float(cycles[name][row]) / CLOCK_HZ + around for name in cycles}
        twin = _twin_cycles(item)
        seconds[RTL_TWIN] = None if twin is None else twin / CLOCK_HZ + around
        predictions.append(RecordPrediction(item, seconds))
    return predictions


@lru_cache(maxsize=8)
def _twin(parameters: VTAParameters) -> Twin:
    return Twin(Accelerator.for_parameters(parameters))


def _twin_cycles(item: MeasuredWorkload) -> int | None:
    """Return the cycles of hilt's RTL; None where it does not end the program."""
    (prediction,) = _twin(item.record.parameters).predict([item.program], MemoryModel())
    return int(prediction["cycles"]) if prediction["status"] == TwinStatus.DONE else None


def accuracy(predictions: Sequence[RecordPrediction], model: str | None = None) -> FitAccuracy:
    """Return the accuracy of a model, or of each record's own build, over the records that count."""
    used: list[MeasuredWorkload] = []
    errors: list[float] = []
    for prediction in predictions:
        seconds = prediction.chosen if model is None else prediction.seconds[model]
        mean = prediction.measured.record.mean_seconds
        if prediction.counts and seconds is not None and mean is not None:
            used.append(prediction.measured)
            errors.append(float(np.log(seconds / mean)))
    values = np.array(errors)
    ranks = rank_correlation(used, values) if len(used) > 2 else None
    return FitAccuracy(len(used), root_mean_square(values), ranks)
