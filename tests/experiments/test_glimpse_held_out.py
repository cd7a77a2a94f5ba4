"""Nothing that Glimpse is evaluated on was trained on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hilt.schedule import load_workload, workload_names
from hilt.tune.glimpse.weights import load_weights
from hilt.virtual.board_model import BOARD_MODELS
from hilt_experiments.glimpse_training.held_out import (
    HeldOutError,
    held_out_parameters,
    held_out_shapes,
    require_not_held_out,
    shape_of,
)
from hilt_experiments.glimpse_training.population import draw_generations, draw_layers


def test_no_layer_of_the_shipped_training_has_the_shape_of_one_of_the_evaluation() -> None:
    evaluated = {
        shape_of(load_workload(name)) for name in workload_names() if name.startswith(("deepbench.", "resnet18."))
    }
    trained = {shape_of(load_workload(text)) for text in load_weights().metadata["layers"]}
    assert len(trained) > 20
    assert not trained & evaluated


def test_no_accelerator_of_the_shipped_training_is_that_of_a_board_model() -> None:
    evaluated = {each.accelerator.parameters.name for each in BOARD_MODELS.values()}
    trained = {text.split()[0] for text in load_weights().metadata["accelerators"]}
    assert len(trained) > 5
    assert not trained & evaluated


def test_a_layer_is_held_out_by_its_shape_and_not_by_its_name() -> None:
    """autotvm.C2 is resnet18.C2; a bias or another shift does not make another layer."""
    assert shape_of(load_workload("autotvm.C2")) in held_out_shapes()
    assert shape_of(replace(load_workload("resnet18.C5"), name="x", bias=True, shift=4)) in held_out_shapes()
    assert shape_of(load_workload("autotvm.C3")) not in held_out_shapes()


def test_held_out_layers_are_refused_to_everyone() -> None:
    allowed = draw_generations(1, 1, np.random.default_rng(0))[0].accelerator.parameters
    require_not_held_out(load_workload("autotvm.C3"), allowed)
    with pytest.raises(HeldOutError, match=r"resnet18\.C2"):
        require_not_held_out(load_workload("resnet18.C2"), allowed)
    with pytest.raises(HeldOutError, match="parameters"):
        require_not_held_out(load_workload("autotvm.C3"), next(iter(held_out_parameters())))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_nothing_held_out_is_ever_drawn(seed: int) -> None:
    generator = np.random.default_rng(seed)
    layers = draw_layers(100, generator)
    assert len({shape_of(layer) for layer in layers}) == 100
    assert not {shape_of(layer) for layer in layers} & held_out_shapes()
    drawn = {each.accelerator.parameters for each in draw_generations(60, 1, generator)}
    assert not drawn & held_out_parameters()
