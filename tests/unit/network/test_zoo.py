"""The seeded networks have the sizes that their sources publish, and ONNX Runtime runs them."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from hilt.network import zoo

Model = Any

FACTS = {
    "resnet8": ((1, 3, 32, 32), (1, 10), 12_501_632),
    "ds_cnn": ((1, 1, 49, 10), (1, 12), 2_656_768),
    "mobilenet_v1": ((1, 3, 96, 96), (1, 2), 7_489_664),
    "autoencoder": ((1, 640), (1, 640), 264_192),
    "resnet18": ((1, 3, 224, 224), (1, 1000), 1_814_073_344),
    "resnet50": ((1, 3, 224, 224), (1, 1000), 4_089_184_256),
}
"""Shapes of input and output, and the multiplications of all layers: MLPerf Tiny's and torchvision's figures."""
SMALL = [name for name in zoo.NETWORKS if name not in ("resnet18", "resnet50")]


@cache
def made(name: str) -> Model:
    """Return a network of seed 0, which no test changes."""
    return zoo.make(name)


def outputs(model: Model, data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.array([session.run(["output"], {"input": image[None]})[0] for image in data])


def multiplications(model: Model) -> int:
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    values = [*inferred.graph.value_info, *inferred.graph.output]
    sizes = {value.name: math.prod(size.dim_value for size in value.type.tensor_type.shape.dim) for value in values}
    weights = {each.name: each.dims for each in model.graph.initializer}
    layers = [node for node in model.graph.node if node.op_type in ("Conv", "Gemm")]
    return sum(sizes[node.output[0]] * math.prod(weights[node.input[1]][1:]) for node in layers)


@pytest.mark.slow
@pytest.mark.parametrize("name", zoo.NETWORKS)
def test_a_network_has_its_published_size(name: str) -> None:
    model = made(name)
    onnx.checker.check_model(model, full_check=True)
    assert multiplications(model) == FACTS[name][2]


@pytest.mark.parametrize(("name", "parameters"), [("resnet18", 11_689_512), ("resnet50", 25_557_032)])
def test_a_resnet_has_torchvisions_parameters(name: str, parameters: int) -> None:
    """Weights, biases, and scale and offset of each normalisation."""
    model = made(name)
    statistics = {name for node in model.graph.node if node.op_type == "BatchNormalization" for name in node.input[3:]}
    assert sum(math.prod(each.dims) for each in model.graph.initializer if each.name not in statistics) == parameters


@pytest.mark.parametrize("name", SMALL)
def test_onnx_runtime_runs_a_network_on_its_calibration_data(name: str) -> None:
    data = zoo.calibration_data(name, 2)
    found = outputs(zoo.make(name, seed=3), data)
    assert (data[:1].shape, found[0].shape) == FACTS[name][:2]
    assert not np.array_equal(found[0], found[1])
    if name != "autoencoder":
        assert found.sum(2) == pytest.approx(1.0) and found.min() >= 0.0
    else:
        assert found.min() < 0.0 < found.max(), "its last layer has no Relu"


@pytest.mark.parametrize("name", SMALL)
def test_convolutions_are_padded_as_tensorflow_does(name: str) -> None:
    model, data = zoo.make(name), zoo.calibration_data(name, 1)
    wanted = outputs(model, data)
    for node in model.graph.node:
        if node.op_type == "Conv":
            kept = [each for each in node.attribute if each.name != "pads"]
            del node.attribute[:]
            node.attribute.extend([*kept, onnx.helper.make_attribute("auto_pad", "SAME_UPPER")])
    np.testing.assert_allclose(outputs(model, data), wanted, rtol=1e-6)


@pytest.mark.parametrize("name", SMALL)
def test_a_seed_gives_the_same_network_each_time(name: str) -> None:
    first, again, other = (zoo.make(name, seed).SerializeToString(deterministic=True) for seed in (0, 0, 1))
    assert first == again != other


def test_weights_keep_the_size_of_their_data() -> None:
    """He's rule: the variance of weights before a Relu is 2 by the number of products of a sum."""
    for name in zoo.NETWORKS:
        model = made(name)
        arrays = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
        read = {source: node for node in model.graph.node for source in node.input}
        for node in model.graph.node:
            if node.op_type not in ("Conv", "Gemm"):
                continue
            weights = arrays[node.input[1]]
            below = read.get(node.output[0])
            gain = 2.0 if node.op_type == "Conv" or (below is not None and below.op_type == "Relu") else 1.0
            wanted = math.sqrt(gain / math.prod(weights.shape[1:]))
            assert weights.std() == pytest.approx(wanted, rel=5 / math.sqrt(2 * weights.size)), node.name
            assert abs(weights.mean()) < 5 * wanted / math.sqrt(weights.size), node.name


RELUS = {"resnet8": 7, "ds_cnn": 9, "mobilenet_v1": 27, "autoencoder": 9, "resnet18": 17, "resnet50": 49}
"""One behind each layer but the last, and in a residual block one behind its sum in place of the second layer's."""


@pytest.mark.parametrize("name", zoo.NETWORKS)
def test_activations_and_normalisations_are_where_the_papers_have_them(name: str) -> None:
    model = made(name)
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("Relu") == RELUS[name]
    makers = {output: node.op_type for node in model.graph.node for output in node.output}
    for node in model.graph.node:
        if node.op_type == "Add":
            assert "BatchNormalization" in {makers[source] for source in node.input}, "its sums are of no activation"
    arrays = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    norms = [node for node in model.graph.node if node.op_type == "BatchNormalization"]
    for place, (low, high) in {1: (0.8, 1.2), 4: (0.8, 1.2)}.items():
        values = np.concatenate([arrays[node.input[place]] for node in norms] or [np.array([0.81, 1.19])])
        assert low <= values.min() < low + 0.05 and high - 0.05 < values.max() <= high
    for place in (2, 3):
        values = np.concatenate([arrays[node.input[place]] for node in norms] or [np.array([0.1, -0.1])])
        assert abs(values.mean()) < 0.03 and values.std() == pytest.approx(0.1, rel=0.2)


@pytest.mark.parametrize("name", ["resnet8", "autoencoder"])
def test_calibration_data_are_seeded_and_smooth_in_space(name: str) -> None:
    data = zoo.calibration_data(name, 8, seed=7)
    assert data.dtype == np.float32 and len(data) == 8
    np.testing.assert_array_equal(data, zoo.calibration_data(name, 8, seed=7))
    assert not np.array_equal(data, zoo.calibration_data(name, 8))
    noise = np.arctanh(data.astype(np.float64))
    assert abs(noise.mean()) < 0.1 and noise.std() == pytest.approx(1.0, rel=0.1), "smoothing keeps its size"
    for axis in range(1, data.ndim):
        near, far = (np.corrcoef(noise.ravel(), np.roll(noise, lag, axis).ravel())[0, 1] for lag in (1, 8))
        assert (near > 0.5) == (axis >= 2), "channels are independent, and so are the parts of a vector"
        assert axis == 1 or abs(far) < 0.1


def test_images_for_resnet18_have_its_size() -> None:
    assert zoo.calibration_data("resnet18", 1).shape == FACTS["resnet18"][0]
