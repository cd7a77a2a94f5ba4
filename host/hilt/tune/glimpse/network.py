"""A small multi-layer perceptron in numpy: what remains of PyTorch once training is over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class NumpyPerceptron:
    """Inputs are standardised by `mean` and `scale` (inputs,) and cut at CUT of those; then matrices (inputs, outputs)
    and biases (outputs,), rectified between two of them."""

    mean: Floats
    scale: Floats
    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Floats], name: str) -> NumpyPerceptron:
        """From `name.mean`, `name.scale`, `name.0.weight`, `name.0.bias`, ... Raises KeyError, and ValueError where the
        shapes do not follow one another."""
        count = sum(1 for key in arrays if key.startswith(f"{name}.") and key.endswith(".weight"))
        weights = tuple(arrays[f"{name}.{number}.weight"] for number in range(count))
        biases = tuple(arrays[f"{name}.{number}.bias"] for number in range(count))
        network = cls(arrays[f"{name}.mean"], arrays[f"{name}.scale"], weights, biases)
        size = len(network.mean)
        if network.scale.shape != (size,) or not count:
            raise ValueError(f"{name} has no layers, or a mean and a scale of different sizes")
        for number, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            if weight.ndim != 2 or weight.shape[0] != size or bias.shape != (weight.shape[1],):
                raise ValueError(f"layer {number} of {name} does not fit the one before it")
            size = weight.shape[1]
        return network

    @property
    def inputs(self) -> int:
        return len(self.mean)

    @property
    def outputs(self) -> int:
        return len(self.biases[-1])

    def __call__(self, inputs: Floats) -> Floats:
        """Outputs (..., outputs) of inputs (..., inputs)."""
        values = np.clip((inputs - self.mean) / self.scale, -CUT, CUT)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            values = np.maximum(values @ weight + bias, 0)
        return np.asarray(values @ self.weights[-1] + self.biases[-1], dtype=np.float32)


CUT = 4.0
"""Standard deviations: what is further out than anything trained on is taken for the furthest."""
