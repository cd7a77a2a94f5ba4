"""A small multi-layer perceptron in numpy, which needs no PyTorch after training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class NumpyPerceptron:
    """A perceptron whose inputs are standardised by `mean` and `scale` (inputs,) and cut at CUT of those.

    Matrices (inputs, outputs) and biases (outputs,) follow, with a rectifier between two of them.
    """

    mean: Floats
    scale: Floats
    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Floats], name: str) -> NumpyPerceptron:
        """Build the network from `name.mean`, `name.scale`, `name.0.weight`, `name.0.bias`, ...

        Raises KeyError, and ValueError if the shapes do not follow one another.
        """
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
        """Return the outputs (..., outputs) of inputs (..., inputs)."""
        values = np.clip((inputs - self.mean) / self.scale, -CUT, CUT)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            values = np.maximum(values @ weight + bias, 0)
        return np.asarray(values @ self.weights[-1] + self.biases[-1], dtype=np.float32)


CUT = 4.0
"""Standard deviations at which inputs are cut: inputs beyond the range of training count as the furthest."""
