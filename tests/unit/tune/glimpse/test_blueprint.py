from __future__ import annotations

import numpy as np
import pytest

from hilt.tune.glimpse.blueprint import ALLOWED_LOSS, BlueprintEncoder
from hilt.tune.glimpse.target import FIGURES, HardwareTarget
from hilt.tune.glimpse.weights import load_weights
from hilt.virtual.board_model import BOARD_MODELS, board_model
from hilt_experiments.glimpse_training.population import random_accelerator, random_target

GENERATOR = np.random.default_rng(20)


def population(count: int) -> np.ndarray:
    targets = [random_target(random_accelerator(GENERATOR), GENERATOR) for _ in range(count)]
    return np.array([target.figures() for target in targets])


def information_loss(blueprint: BlueprintEncoder, figures: np.ndarray) -> float:
    """Return the root mean square of the reconstruction error, over that of the standardised figures."""
    standard = (figures - blueprint.mean) / blueprint.scale
    lost = standard - blueprint.encode(figures) @ blueprint.components
    return float(np.sqrt(np.mean(lost**2) / np.mean(standard**2)))


def test_the_shipped_blueprint_is_smaller_than_the_figures_and_loses_less_than_half_a_percent() -> None:
    """Section 4.1: of targets that it was not fitted to, and of every board model together."""
    blueprint = load_weights().blueprint
    assert blueprint.size < len(FIGURES)
    assert information_loss(blueprint, population(300)) < ALLOWED_LOSS
    shipped = np.array([HardwareTarget.assumed(each.accelerator).figures() for each in BOARD_MODELS.values()])
    assert information_loss(blueprint, shipped) < ALLOWED_LOSS


def test_one_component_fewer_would_lose_too_much() -> None:
    figures = population(300)
    blueprint = BlueprintEncoder.fit(figures)
    fewer = BlueprintEncoder(blueprint.mean, blueprint.scale, blueprint.components[:-1])
    assert information_loss(blueprint, figures) < ALLOWED_LOSS <= information_loss(fewer, figures)


def test_different_targets_have_different_blueprints() -> None:
    blueprint = load_weights().blueprint
    accelerator = board_model("pynq").accelerator
    near, far = (blueprint.encode(HardwareTarget(accelerator, read, 150, 8).figures()) for read in (300, 900))
    assert np.linalg.norm(near - far) > 0.1


def test_figures_are_those_of_the_data_sheet() -> None:
    """HARDWARE.md section 1, first column; 100 MHz and a bus of 64 bits."""
    figures = dict(zip(FIGURES, HardwareTarget.assumed(board_model("pynq").accelerator).figures(), strict=True))
    assert figures["log2 micro-op buffer depth"] == 13
    assert figures["log2 input buffer depth"] == 11
    assert figures["log2 weight buffer depth"] == 10
    assert figures["log2 accumulator depth"] == 11
    assert figures["log2 MACs a cycle"] == 8
    assert figures["log2 bus bytes"] == 3
    assert figures["log2 read latency cycles"] == pytest.approx(np.log2(30))


def test_a_target_is_the_memory_that_the_twin_is_asked_about() -> None:
    memory = HardwareTarget(board_model("pynq").accelerator, 800, 400, 2.0).memory
    assert (memory.read_latency, memory.write_latency, memory.bandwidth) == (80, 40, (2, 1))
    assert HardwareTarget.assumed(board_model("pynq").accelerator).memory.bandwidth == (0, 1)
