"""A small convolutional network trained on scikit-learn's digits, in numpy, with a seed."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from onnx import helper
from sklearn.datasets import load_digits

from .models import Array, model_of

_CHANNELS = (16, 32)
_EPOCHS = 24
_BATCH = 32
_RATE = 0.002


@cache
def trained() -> tuple[Any, Array, Array, Array, Array]:
    """Return the model, the training images and labels, and the 450 images and labels that it has not seen."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    images = (images[order].reshape(-1, 1, 8, 8) / 8 - 1).astype(np.float32)
    labels = labels[order].astype(np.int64)
    first, last = len(images) - 450, len(images)
    weights = _train(images[:first], labels[:first])
    return _model(weights), images[:first], labels[:first], images[first:last], labels[first:last]


def untrained() -> Any:
    """Return the model with the weights that its training begins with."""
    return _model(_drawn(np.random.default_rng(1)))


def _model(weights: dict[str, Array]) -> Any:
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1] * 4, name="conv1"),
        helper.make_node("Relu", ["c1"], ["r1"], name="relu1"),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], pads=[1] * 4, strides=[2, 2], name="conv2"),
        helper.make_node("Relu", ["c2"], ["r2"], name="relu2"),
        helper.make_node("Flatten", ["r2"], ["f"], name="flatten"),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], transB=1, name="dense"),
    ]
    return model_of(nodes, {"x": ("n", 1, 8, 8)}, weights)


def _drawn(random: np.random.Generator) -> dict[str, Array]:
    shapes = {"w1": (_CHANNELS[0], 1, 3, 3), "w2": (_CHANNELS[1], _CHANNELS[0], 3, 3), "w3": (10, _CHANNELS[1] * 16)}
    weights: dict[str, Array] = {}
    for name, shape in shapes.items():
        weights[name] = random.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape).astype(np.float32)
        weights[f"b{name[1]}"] = np.zeros(shape[0], np.float32)
    return weights


def _train(images: Array, labels: Array) -> dict[str, Array]:
    """Return weights after Adam's descent of the cross entropy."""
    random = np.random.default_rng(1)
    weights = _drawn(random)
    moments = {name: (np.zeros_like(value), np.zeros_like(value)) for name, value in weights.items()}
    step = 0
    for _ in range(_EPOCHS):
        order = random.permutation(len(images))
        for start in range(0, len(images), _BATCH):
            part = order[start : start + _BATCH]
            step += 1
            for name, gradient in _gradients(weights, images[part], labels[part]).items():
                mean, square = moments[name]
                mean += 0.1 * (gradient - mean)
                square += 0.001 * (gradient**2 - square)
                scaled = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
                weights[name] -= (_RATE * scaled).astype(np.float32)
    return weights


def _gradients(weights: dict[str, Array], images: Array, labels: Array) -> dict[str, Array]:
    columns1, sums1 = _forward(images, weights["w1"], weights["b1"], 1)
    hidden1 = np.maximum(sums1, 0)
    columns2, sums2 = _forward(hidden1, weights["w2"], weights["b2"], 2)
    hidden2 = np.maximum(sums2, 0)
    flat = hidden2.reshape(len(images), -1)
    scores = flat @ weights["w3"].T + weights["b3"]
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    error = powers / powers.sum(axis=1, keepdims=True)
    error[np.arange(len(labels)), labels] -= 1
    error /= len(labels)
    gradients = {"w3": error.T @ flat, "b3": error.sum(axis=0)}
    error2 = (error @ weights["w3"]).reshape(sums2.shape) * (sums2 > 0)
    gradients["w2"], gradients["b2"] = _layer_gradients(error2, columns2, weights["w2"].shape)
    error1 = _backward(error2, weights["w2"], hidden1.shape, 2) * (sums1 > 0)
    gradients["w1"], gradients["b1"] = _layer_gradients(error1, columns1, weights["w1"].shape)
    return gradients


def _forward(data: Array, weights: Array, bias: Array, stride: int) -> tuple[Array, Array]:
    """Return the windows (N, C * 9, P) and the sums (N, CO, H, W) of a padded 3x3 convolution."""
    padded = np.pad(data, ((0, 0), (0, 0), (1, 1), (1, 1)))
    view = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::stride, ::stride]
    height, width = view.shape[2:4]
    columns = view.transpose(0, 1, 4, 5, 2, 3).reshape(len(data), -1, height * width)
    sums = np.matmul(weights.reshape(len(weights), -1), columns) + bias[:, None]
    return columns, sums.reshape(len(data), len(weights), height, width)


def _layer_gradients(error: Array, columns: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    flat = error.reshape(*error.shape[:2], -1)
    return np.matmul(flat, columns.transpose(0, 2, 1)).sum(axis=0).reshape(shape), flat.sum(axis=(0, 2))


def _backward(error: Array, weights: Array, shape: tuple[int, ...], stride: int) -> Array:
    """Return the error of a convolution's input."""
    result = np.zeros((*shape[:2], shape[2] + 2, shape[3] + 2), np.float32)
    height, width = error.shape[2:]
    for row in range(3):
        for column in range(3):
            part = np.einsum("nohw,oc->nchw", error, weights[:, :, row, column], optimize=True)
            rows = slice(row, row + (height - 1) * stride + 1, stride)
            result[:, :, rows, slice(column, column + (width - 1) * stride + 1, stride)] += part
    return result[:, :, 1:-1, 1:-1]
