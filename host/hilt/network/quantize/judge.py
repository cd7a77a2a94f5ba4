"""Judges changes of quantised models by their outputs on held-out samples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hilt.network.calibration import Feeds, Runner, spread
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.quantize.statistics import MeanDecibels

_GOOD = 20.0
"""Decibels of an output that a change may bring it down to."""
_ALLOWED_LOSS = 0.5
"""Decibels that a change may cost an output that has less."""
_JUDGED_SAMPLES = 8


def is_as_good(reached: NDArray[np.float64], level: NDArray[np.float64] | None = None) -> bool:
    """Tell whether outputs with `reached` decibels are good, or lose little beside others with `level`."""
    least = np.inf if level is None else level - _ALLOWED_LOSS
    return bool(np.all((reached >= _GOOD) | (reached >= least)))


class OutputJudge:
    """Measures the decibels of quantised models' outputs on samples that nothing was fitted to."""

    def __init__(self, graph: OnnxGraph, deciding: Sequence[Feeds]) -> None:
        self._graph = graph
        self._outputs = [name for name in graph.outputs if graph.dtypes.get(name) == "float32"]
        self._feeds = spread(deciding, _JUDGED_SAMPLES)

    @cached_property
    def _wanted(self) -> list[Feeds]:
        """The outputs of the float graph."""
        return list(Runner(self._graph, self._outputs).over(self._feeds))

    def decibels(self, model: OnnxGraph) -> NDArray[np.float64]:
        """Return the decibels of each output, the mean over samples."""
        runner = Runner(model, self._outputs)
        found = MeanDecibels(self._outputs)
        for wanted, given in zip(self._wanted, runner.over(self._feeds), strict=True):
            found.add(wanted, given)
        return np.array(list(found.means().values()))
