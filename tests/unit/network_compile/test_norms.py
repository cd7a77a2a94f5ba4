"""Normalizations between layers, as exporters write them, from ONNX to tensors: no floats are between the layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.unit.network.models import model_of

from .runs import runs_as_its_reference

node = helper.make_node
CHANNELS = {"g": np.linspace(0.5, 1.5, 24, dtype=np.float32), "b": np.linspace(-0.5, 0.5, 24, dtype=np.float32)}


def weights(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).normal(0, np.prod(shape[1:]) ** -0.5, shape).astype(np.float32)


LAYERS = {"w": weights(24, 32, 3, 3), "p": weights(32, 24, 1, 1)}


def of_instances() -> Any:
    nodes = [
        node("Conv", ["x", "w"], ["c"]),
        node("InstanceNormalization", ["c", "g", "b"], ["n"]),
        node("Relu", ["n"], ["r"]),
        node("Conv", ["r", "p"], ["y"]),
    ]
    return model_of(nodes, {"x": (1, 32, 9, 9)}, {**LAYERS, **CHANNELS})


def of_style() -> Any:
    """Return a layer of style transfer: its image is padded by reflection in front of the next."""
    nodes = [
        node("Conv", ["x", "w"], ["c"]),
        node("InstanceNormalization", ["c", "g", "b"], ["n"]),
        node("Relu", ["n"], ["r"]),
        node("Pad", ["r", "pads"], ["padded"], mode="reflect"),
        node("Conv", ["padded", "m"], ["y"]),
    ]
    own = {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "m": weights(32, 24, 3, 3)}
    return model_of(nodes, {"x": (1, 32, 9, 9)}, {"w": LAYERS["w"], **own, **CHANNELS})


def of_groups() -> Any:
    """Return torch's GroupNorm of four groups: an InstanceNormalization of them, and factors of channels."""
    nodes = [
        node("Conv", ["x", "w"], ["c"]),
        node("Reshape", ["c", "groups"], ["grouped"]),
        node("InstanceNormalization", ["grouped", "ones", "zeros"], ["normal"]),
        node("Reshape", ["normal", "image"], ["shaped"]),
        node("Mul", ["shaped", "gs"], ["scaled"]),
        node("Add", ["scaled", "bs"], ["n"]),
        node("Relu", ["n"], ["r"]),
        node("Conv", ["r", "p"], ["y"]),
    ]
    shapes = {"groups": np.array([0, 4, -1]), "image": np.array([1, 24, 7, 7])}
    own = {"gs": CHANNELS["g"].reshape(24, 1, 1), "bs": CHANNELS["b"].reshape(24, 1, 1)}
    four = {"ones": np.ones(4, np.float32), "zeros": np.zeros(4, np.float32)}
    return model_of(nodes, {"x": (1, 32, 9, 9)}, {**LAYERS, **shapes, **own, **four})


def of_pixels() -> Any:
    """Return ConvNeXt's: channels are last for the LayerNormalization and the product behind it."""
    nodes = [
        node("Conv", ["x", "w"], ["c"]),
        node("Transpose", ["c"], ["t"], perm=[0, 2, 3, 1]),
        node("LayerNormalization", ["t", "g", "b"], ["n"], axis=-1),
        node("MatMul", ["n", "m"], ["y"]),
    ]
    return model_of(nodes, {"x": (1, 32, 9, 9)}, {"w": LAYERS["w"], "m": weights(24, 48), **CHANNELS})


MODELS = {"instances": of_instances, "style": of_style, "groups": of_groups, "pixels": of_pixels}


@pytest.mark.parametrize("model", [make() for make in MODELS.values()], ids=list(MODELS))
def test_it_is_computed_from_integers(model: Any) -> None:
    operators = runs_as_its_reference(model)
    assert "normalization" in operators
    assert not operators & {"InstanceNormalization", "LayerNormalization", "Mul", "Add", "Relu", "Pad", "table"}
