from __future__ import annotations

from dataclasses import replace

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


def test_a_fit_standardises_projects_and_keeps_the_sign_of_the_largest_entry() -> None:
    """Two figures that go together, one that never changes: one component holds all."""
    figures = np.array([[1.0, 30.0, 7.0], [2.0, 20.0, 7.0], [3.0, 10.0, 7.0]])
    blueprint = BlueprintEncoder.fit(figures)
    assert blueprint.mean.tolist() == [2, 20, 7] and blueprint.size == 1
    assert blueprint.scale == pytest.approx([np.sqrt(2 / 3), 10 * np.sqrt(2 / 3), 1])
    (component,) = blueprint.components
    assert np.abs(component) == pytest.approx([np.sqrt(0.5), np.sqrt(0.5), 0])
    assert component[np.abs(component).argmax()] > 0
    assert blueprint.encode(figures[1]) == pytest.approx([0])
    assert np.abs(blueprint.encode(figures[0])) == pytest.approx([np.sqrt(3)])


def test_as_few_components_are_kept_as_the_allowed_loss_lets() -> None:
    """Independent figures: each component holds as much as the others."""
    figures = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
    lost = {1: np.sqrt(2 / 3), 2: np.sqrt(1 / 3)}
    for size, loss in lost.items():
        assert BlueprintEncoder.fit(figures, loss + 0.01).size == size
        assert BlueprintEncoder.fit(figures, loss - 0.01).size == size + 1


def test_different_targets_have_different_blueprints() -> None:
    blueprint = load_weights().blueprint
    accelerator = board_model("pynq").accelerator
    near, far = (blueprint.encode(HardwareTarget(accelerator, read, 150, 8).figures()) for read in (300, 900))
    assert np.linalg.norm(near - far) > 0.1


def test_figures_are_those_of_the_data_sheet() -> None:
    """HARDWARE.md section 1, first column; 100 MHz and a bus of 64 bits."""
    target = HardwareTarget(board_model("pynq").accelerator, 300.0, 150.0, 4.0)
    figures = dict(zip(FIGURES, target.figures().tolist(), strict=True))
    assert figures.pop("waits for accumulator updates") == 1
    assert figures == pytest.approx(
        {
            "log2 batch": 0,
            "log2 block": 4,
            "log2 MACs a cycle": 8,
            "log2 micro-op buffer bytes": 15,
            "log2 input buffer bytes": 15,
            "log2 weight buffer bytes": 18,
            "log2 accumulator bytes": 17,
            "log2 micro-op buffer depth": 13,
            "log2 input buffer depth": 11,
            "log2 weight buffer depth": 10,
            "log2 accumulator depth": 11,
            "log2 instruction bytes": 4,
            "log2 bus bytes": 3,
            "log2 clock MHz": np.log2(100),
            "log2 peak MACs a microsecond": np.log2(256 * 100),
            "log2 read latency ns": np.log2(300),
            "log2 write latency ns": np.log2(150),
            "log2 read latency cycles": np.log2(30),
            "log2 write latency cycles": np.log2(15),
            "log2 memory bytes a cycle": 2,
            "log2 memory bytes a microsecond": np.log2(400),
            "log2 MACs a byte": 6,
        }
    )


def test_a_target_that_waits_for_no_accumulator_update_says_so() -> None:
    target = HardwareTarget.assumed(replace(board_model("pynq").accelerator, hazards="none"))
    assert (target.read_latency_ns, target.write_latency_ns, target.bytes_per_cycle) == (300, 150, 8)
    assert target.figures()[FIGURES.index("waits for accumulator updates")] == 0


def test_a_target_is_the_memory_that_the_twin_is_asked_about() -> None:
    memory = HardwareTarget(board_model("pynq").accelerator, 800, 400, 2.0).memory
    assert (memory.read_latency, memory.write_latency, memory.bandwidth) == (80, 40, (2, 1))
    sixteenths = HardwareTarget(board_model("pynq").accelerator, 300, 150, 5.0625).memory
    assert sixteenths.bandwidth == (81, 16)
    assert HardwareTarget.assumed(board_model("pynq").accelerator).memory.bandwidth == (0, 1)
