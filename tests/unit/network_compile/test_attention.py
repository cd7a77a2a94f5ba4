"""Attention, as detectors and transformers export it, from ONNX to tensors: no product of two activations in floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.unit.network.models import model_of

from .runs import runs_as_its_reference

RANDOM = np.random.default_rng(4)
node = helper.make_node


def normal(*shape: int) -> Any:
    return RANDOM.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape).astype(np.float32)


def of_an_image() -> Any:
    """Return YOLO11's: channels of 6 x 6 pixels, two heads, keys of 8 and values of 16 channels, keys first."""
    nodes = [
        node("Conv", ["x", "w"], ["qkv"]),
        node("Reshape", ["qkv", "heads"], ["h"]),
        node("Split", ["h", "sizes"], ["q", "k", "v"], axis=2),
        node("Transpose", ["q"], ["turned"], perm=[0, 1, 3, 2]),
        node("MatMul", ["turned", "k"], ["scores"]),
        node("Mul", ["scores", "scale"], ["scaled"]),
        node("Softmax", ["scaled"], ["shares"], axis=-1),
        node("Transpose", ["shares"], ["back"], perm=[0, 1, 3, 2]),
        node("MatMul", ["v", "back"], ["mixed"]),
        node("Reshape", ["mixed", "image"], ["flat"]),
        node("Conv", ["flat", "p"], ["y"]),
    ]
    constants = {
        "w": normal(64, 32, 1, 1), "p": normal(32, 32, 1, 1), "heads": np.array([1, 2, 32, 36]),
        "sizes": np.array([8, 8, 16]), "scale": np.float32(8**-0.5), "image": np.array([1, 32, 6, 6]),
    }  # fmt: skip
    return model_of(nodes, {"x": (1, 32, 6, 6)}, constants)


def of_a_sequence() -> Any:
    """Return a transformer's: twenty tokens of 32 numbers, two heads."""
    nodes = [
        node("MatMul", ["x", "w"], ["qkv"]),
        node("Reshape", ["qkv", "heads"], ["h"]),
        node("Transpose", ["h"], ["t"], perm=[2, 0, 3, 1, 4]),
        *(node("Gather", ["t", f"place {name}"], [name], axis=0) for name in "qkv"),
        node("Transpose", ["k"], ["turned"], perm=[0, 1, 3, 2]),
        node("Mul", ["q", "scale"], ["scaled"]),
        node("MatMul", ["scaled", "turned"], ["scores"]),
        node("Softmax", ["scores"], ["shares"], axis=-1),
        node("MatMul", ["shares", "v"], ["mixed"]),
        node("Transpose", ["mixed"], ["tokens"], perm=[0, 2, 1, 3]),
        node("Reshape", ["tokens", "flat"], ["joined"]),
        node("MatMul", ["joined", "p"], ["y"]),
    ]
    constants = {
        "w": normal(32, 96), "p": normal(32, 32), "heads": np.array([1, 20, 3, 2, 16]),
        "scale": np.float32(0.25), "flat": np.array([1, 20, 32]),
        **{f"place {name}": np.array(place) for place, name in enumerate("qkv")},
    }  # fmt: skip
    return model_of(nodes, {"x": (1, 20, 32)}, constants)


@pytest.mark.parametrize("model", [of_an_image(), of_a_sequence()], ids=["image", "sequence"])
def test_its_products_are_in_fixed_point(model: Any) -> None:
    operators = runs_as_its_reference(model)
    assert "fixed_matmul" in operators
    assert not operators & {"MatMul", "Transpose"}
