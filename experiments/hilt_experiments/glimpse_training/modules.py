"""The networks in PyTorch during training, and their arrays afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from hilt.tune.glimpse.network import CUT

Floats = npt.NDArray[np.float32]


class Perceptron(nn.Module):  # type: ignore[misc]  # torch is optional, and not looked into
    """The function of hilt.tune.glimpse.network.NumpyPerceptron; `examples` (n, inputs) give its mean and scale."""

    def __init__(self, examples: Floats, sizes: Sequence[int]) -> None:
        super().__init__()
        scale = examples.std(axis=0)
        self.mean = torch.from_numpy(examples.mean(axis=0))
        self.scale = torch.from_numpy(np.where(scale > 1e-3, scale, 1.0).astype(np.float32))
        widths = [examples.shape[1], *sizes]
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        last = self.layers[-1]
        assert isinstance(last, nn.Linear)
        with torch.no_grad():  # begins near indifference
            last.weight.mul_(0.1)
            last.bias.zero_()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        values = ((inputs - self.mean) / self.scale).clamp(-CUT, CUT)
        for layer in list(self.layers)[:-1]:
            values = torch.relu(layer(values))
        outputs: torch.Tensor = self.layers[-1](values)
        return outputs

    def arrays(self, name: str) -> dict[str, Floats]:
        """Return the arrays in the form that NumpyPerceptron.from_arrays reads."""
        found = {f"{name}.mean": self.mean.numpy(), f"{name}.scale": self.scale.numpy()}
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, nn.Linear)
            found[f"{name}.{number}.weight"] = layer.weight.detach().numpy().T.copy()
            found[f"{name}.{number}.bias"] = layer.bias.detach().numpy().copy()
        return found


def begin(seed: int) -> None:
    """Set one thread and deterministic algorithms: the same seed gives the same weights on one machine."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
