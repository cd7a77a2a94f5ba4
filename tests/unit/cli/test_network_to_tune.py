"""The layers that `hilt tune model.onnx` and `hilt campaign` tune: the compiled network's forms where these run."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from hilt.cli.campaign import network_to_tune
from hilt.cli.for_tvm import User
from hilt.network import zoo
from hilt.network.onnx_graph import to_model
from hilt.run_choices import CheckLevel
from hilt.schedule.workload import WorkloadError
from tests.unit.network.models import model_of, quantised, saved

node = helper.make_node


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A convolution with a skip connection behind another one: as floats, and quantised."""
    random = np.random.default_rng(0)
    weights = {name: random.normal(0, 0.2, (16, 16, 3, 3)).astype(np.float32) for name in ("w", "v")}
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        node("Relu", ["a"], ["b"]),
        node("Conv", ["b", "v"], ["c"], pads=[1] * 4),
        node("Add", ["c", "b"], ["y"]),
    ]
    model = model_of(nodes, {"x": (1, 16, 8, 8)}, weights)
    folder = tmp_path_factory.mktemp("models")
    made = {"float": model, "int8": to_model(quantised(model).model)}
    return {name: str(saved(each, folder / f"{name}.onnx")) for name, each in made.items()}


def epilogues(text: str, user: User = User.HILT, checks: CheckLevel = CheckLevel.COMPILER) -> list[str]:
    network = network_to_tune(text, "virtual:pynq", user, checks, None, None)
    return [layer.workload.partition("epilogue=")[2] for layer in network.supported]


def test_a_quantised_model_is_tuned_in_its_forms(models: dict[str, str]) -> None:
    found = epilogues(models["int8"])
    assert found[0] == "product_bias"
    assert found[1] in ("product_skip", "product_shifted_skip")
    assert epilogues(models["int8"], checks=CheckLevel.STRICT) == found


def test_a_float_model_and_a_network_of_the_catalogue_are_tuned_in_the_plain_form(models: dict[str, str]) -> None:
    assert set(epilogues(models["float"])) == {""}
    assert set(epilogues("resnet18")) == {""}


@pytest.mark.parametrize(
    ("user", "checks"), [(User.TVM, CheckLevel.TVM), (User.HILT, CheckLevel.TVM), (User.HILT, CheckLevel.OFF)]
)
def test_tvm_and_unchecked_programs_have_the_plain_form(models: dict[str, str], user: User, checks: CheckLevel) -> None:
    assert set(epilogues(models["int8"], user, checks)) == {""}


def test_a_network_that_is_no_networks_name_is_refused_and_one_of_the_zoo_says_how_it_is_made() -> None:
    name = min(zoo.NETWORKS.keys() - {"resnet18"})
    with pytest.raises(WorkloadError, match=f"{name} is in hilt.network.zoo alone: onnx.save"):
        epilogues(name)
    with pytest.raises(WorkloadError) as refused:
        epilogues("resnet81")
    assert "resnet18" in str(refused.value) and "zoo" not in str(refused.value)
