"""Random inputs of a network, where none are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.graph import Graph


def random_arrays(wanted: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """Return an array for each input (`name`, `shape`, `dtype`): always the same ones (seed 0)."""
    generator = np.random.default_rng(0)
    return {tensor["name"]: _random(generator, tensor["shape"], tensor["dtype"]) for tensor in wanted}


def random_inputs(graph: Graph) -> dict[str, NDArray[Any]]:
    """Return an array for each input of a graph."""
    tensors = (graph.tensors[name] for name in graph.inputs)
    return random_arrays([{"name": tensor.name, "shape": tensor.shape, "dtype": tensor.dtype} for tensor in tensors])


def _random(generator: np.random.Generator, shape: Sequence[int], dtype: str) -> NDArray[Any]:
    if np.issubdtype(np.dtype(dtype), np.floating):
        return np.asarray(generator.standard_normal(tuple(shape)), dtype=dtype)
    if np.dtype(dtype).itemsize == 1:
        return np.asarray(generator.integers(-128, 128, tuple(shape)), dtype=dtype)
    return np.asarray(generator.integers(0, 2, tuple(shape)), dtype=dtype)  # these are counts or places mostly
