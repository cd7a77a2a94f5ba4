"""A float model in ONNX Runtime, on the images that a board computes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.calibration import CalibrationError, Runner, make_calibration
from hilt.network.onnx_graph import load_graph
from hilt.network.onnx_simplify import fix
from hilt.network.quantize.statistics import signal_to_noise
from hilt.network.tflite.convert import load_tflite
from hilt.network.tflite.reader import SUFFIX


class FloatModel:
    """A model of one input, ONNX or TFLite."""

    def __init__(self, path: Path, images: NDArray[Any]) -> None:
        """Read it for images (n, ...), each of its input's shape.

        Raises:
            OnnxError: The file is no such model.
            CalibrationError: The images do not fit it, or are bytes where it takes floats.
        """
        graph = load_tflite(path) if path.suffix == SUFFIX else load_graph(path)
        name = graph.inputs[0] if graph.inputs else ""
        fix(graph, {name: images.shape[1:]} if name else {}, {})
        if images.dtype == np.uint8 and graph.dtypes.get(name) == "float32":
            raise CalibrationError(f"{path} takes floats, the images are uint8: compare with a model that takes these")
        self._samples = make_calibration({name: images}, graph).samples
        self._runner = Runner(graph, graph.outputs)

    def outputs(self, advance: Callable[[int, int], None]) -> dict[str, NDArray[Any]]:
        """Return each output of all images, images first; `advance` is called with images done and all."""
        made: dict[str, list[NDArray[Any]]] = {name: [] for name in self._runner.outputs}
        for number, found in enumerate(self._runner.over(self._samples)):
            for name, value in found.items():
                made[name].append(value)
            advance(number + 1, len(self._samples))
        return {name: np.stack(values) for name, values in made.items()}

    def decibels(self, outputs: dict[str, NDArray[Any]], wanted: dict[str, NDArray[Any]]) -> float:
        """Return the signal-to-noise ratio of a board's outputs, in the model's order, the worst of them."""
        ratios = [
            signal_to_noise({"": values}, {"": given.reshape(values.shape)})
            for values, given in zip(wanted.values(), outputs.values(), strict=True)
            if values.dtype.kind == "f"
        ]
        return min(ratios, default=float("inf"))
