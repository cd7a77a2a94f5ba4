"""The trained weights: one .npz that ships with hilt, checked before use."""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilt.tune.glimpse.acquisition import acquisition_inputs
from hilt.tune.glimpse.blueprint import BlueprintEncoder
from hilt.tune.glimpse.encoding import LAYER_FEATURES, SLOTS, VALUE_FEATURES
from hilt.tune.glimpse.network import NumpyPerceptron
from hilt.tune.glimpse.target import FIGURES
from hilt.tune.glimpse.thresholds import COEFFICIENTS

Floats = npt.NDArray[np.float32]

SHIPPED = Path(__file__).with_name("weights.npz")
SCHEMA = 1
LARGEST_FILE = 1 << 20
LARGEST_CONTENTS = 4 << 20
"""Largest sizes in bytes, packed and unpacked."""

_METADATA = "metadata"


class WeightsError(ValueError):
    """A weights file that is missing, damaged, too large or of another kind of network."""


@dataclass(frozen=True)
class Weights:
    """All trained parts.

    `metadata` documents the training: seed, commit, designs, layers and accelerators (training.train).
    """

    blueprint: BlueprintEncoder
    prior: NumpyPerceptron
    thresholds: NumpyPerceptron
    acquisition: NumpyPerceptron
    metadata: Mapping[str, Any]

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Floats], metadata: Mapping[str, Any]) -> Weights:
        """Build the weights. Raises KeyError and ValueError if arrays are missing or do not fit."""
        blueprint = BlueprintEncoder(
            *(arrays[f"blueprint.{part}"].astype(np.float64) for part in ("mean", "scale", "components"))
        )
        size = blueprint.components.shape[0]
        if blueprint.components.shape != (size, len(FIGURES)) or len(blueprint.mean) != len(FIGURES):
            raise ValueError(f"the Blueprint is not of {len(FIGURES)} figures")
        description = LAYER_FEATURES + size
        networks = {}
        for name, inputs, outputs in (
            ("prior", description, len(SLOTS) * VALUE_FEATURES),
            ("thresholds", description, COEFFICIENTS),
            ("acquisition", acquisition_inputs(description), 1),
        ):
            network = NumpyPerceptron.from_arrays(arrays, name)
            if (network.inputs, network.outputs) != (inputs, outputs):
                raise ValueError(f"{name} has {network.inputs} inputs and {network.outputs} outputs")
            networks[name] = network
        return cls(blueprint, **networks, metadata=metadata)

    def description(self, layer: Floats, figures: npt.NDArray[np.float64]) -> Floats:
        """Return the input of all three networks: the layer's features, then the Blueprint."""
        return np.concatenate([layer, self.blueprint.encode(figures)]).astype(np.float32)


@cache
def load_weights(path: Path = SHIPPED) -> Weights:
    """Load and check a weights file. Raises WeightsError."""
    try:
        arrays, metadata = _read(path)
        return Weights.from_arrays(arrays, metadata)
    except FileNotFoundError:
        raise WeightsError(f"no weights of Glimpse at {path}; `hilt glimpse train` makes them") from None
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise WeightsError(
            f"the weights of Glimpse at {path} cannot be used ({error}); install hilt anew or make them with "
            f"`hilt glimpse train`"
        ) from error


def save_weights(path: Path, arrays: Mapping[str, Floats], metadata: Mapping[str, Any]) -> None:
    """Write the file, whole or not at all.

    Raises KeyError or ValueError if the weights could not be loaded again, and OSError.
    """
    Weights.from_arrays(arrays, metadata)
    text = json.dumps({"schema": SCHEMA, **metadata}, sort_keys=True)

    packed = io.BytesIO()
    contents: dict[str, Any] = {_METADATA: np.frombuffer(text.encode(), dtype=np.uint8), **arrays}
    np.savez_compressed(packed, **contents)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(packed.getvalue())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _read(path: Path) -> tuple[dict[str, Floats], Mapping[str, Any]]:
    if path.stat().st_size > LARGEST_FILE:
        raise ValueError(f"more than {LARGEST_FILE} bytes")
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > LARGEST_CONTENTS:
            raise ValueError(f"it unpacks to more than {LARGEST_CONTENTS} bytes")
    with np.load(path, allow_pickle=False) as file:
        found = {name: file[name] for name in file.files}
    metadata = json.loads(found.pop(_METADATA).tobytes())
    if not isinstance(metadata, dict) or metadata.get("schema") != SCHEMA:
        raise ValueError(f"not of schema {SCHEMA}")
    for name, array in found.items():
        if array.dtype != np.float32 or not np.isfinite(array).all():
            raise ValueError(f"{name} is not of finite float32")
    return found, metadata
