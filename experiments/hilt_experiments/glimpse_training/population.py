"""Layers and generations of hardware to train on: drawn at random around existing ones, without held-out ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hilt.schedule import Conv2d, WorkloadError, load_convolution, workload_names
from hilt.schedule.workload_syntax import format_workload
from hilt.tune.glimpse.target import HardwareTarget
from hilt.vta.accelerator import Accelerator, FieldOverflowError, ParameterError
from hilt.vta.parameters import VTAParameters
from hilt_experiments.glimpse_training.held_out import held_out_parameters, held_out_shapes, shape_of

MOST_MACS = 2.5e8
LEAST_MACS = 1e6

_SIZES = (
    *(7, 8, 10, 12, 13, 14, 16, 18, 20, 24, 26, 27, 28, 32),
    *(35, 36, 40, 48, 52, 56, 60, 64, 72, 80, 96, 112, 120, 160),
)
_CHANNELS = (16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512, 768, 1024, 2048)
_KERNELS = ((1, 1), (1, 1), (1, 1), (3, 3), (3, 3), (3, 3), (3, 3), (5, 5), (7, 7), (1, 7), (3, 1), (9, 5))


@dataclass(frozen=True)
class Generation:
    """One accelerator, and its memories."""

    accelerator: Accelerator
    memories: tuple[HardwareTarget, ...]


def draw_layers(count: int, generator: np.random.Generator) -> list[Conv2d]:
    """Return the layers of the catalogue that are not held out, then random convolutions.

    Grouped layers of the catalogue are computed densely.
    """
    named = [load_convolution(name) for name in workload_names()]
    dense = [replace(layer, groups=1, name=f"{layer.name} dense") if layer.groups > 1 else layer for layer in named]
    layers = [layer for layer in dense if layer.macs <= MOST_MACS]
    layers += [_random_layer(generator) for _ in range(count)]
    found = {shape_of(layer): layer for layer in layers if shape_of(layer) not in held_out_shapes()}
    return list(found.values())[:count]


def draw_generations(count: int, memories: int, generator: np.random.Generator) -> list[Generation]:
    """Draw `count` different accelerators, each with `memories` memories."""
    found: dict[Accelerator, Generation] = {}
    while len(found) < count:
        accelerator = random_accelerator(generator)
        targets = tuple(random_target(accelerator, generator) for _ in range(memories))
        found[accelerator] = Generation(accelerator, targets)
    return list(found.values())


def random_accelerator(generator: np.random.Generator) -> Accelerator:
    """Draw an accelerator with buffers around the public sizes.

    Half of the draws have the block of 16, which most VTAs have.
    """
    while True:
        log_batch = int(generator.choice([0, 0, 0, 1, 2]))
        log_block = int(generator.choice([3, 4, 4, 5]))
        zcu = int(generator.integers(0, 2))  # larger devices have larger buffers throughout
        uop, inp, wgt, acc = (int(generator.integers(low, high + 1)) + zcu for low, high in _BUFFERS)
        bus_bits, clock = (64, (80, 100, 125, 142)) if generator.random() < 0.6 else (128, (200, 250, 300, 333))
        try:
            parameters = VTAParameters(3, 3, 5, log_batch, log_block, uop, inp, wgt, acc)
            if parameters in held_out_parameters():
                continue
            return Accelerator.for_parameters(
                parameters,
                bus_bits=bus_bits,
                hazards="none" if generator.random() < 0.2 else "interlock",
                clock_hz=int(generator.choice(clock)) * 1_000_000,
            )
        except (ParameterError, FieldOverflowError):
            continue


_BUFFERS = ((13, 15), (14, 16), (16, 19), (15, 18))
"""Least and largest log2 bytes of the micro-op, input, weight and accumulator buffers."""


def random_target(accelerator: Accelerator, generator: np.random.Generator) -> HardwareTarget:
    """Draw a target with reads of 100 to 900 ns and a quarter of the bus up to all of it."""
    read = float(np.exp(generator.uniform(np.log(100), np.log(900))))
    write = read * float(generator.choice([0.4, 0.5, 0.7, 1.0]))
    share = float(generator.choice([0.25, 0.5, 1.0, 1.0, 1.0]))
    return HardwareTarget(accelerator, read, write, accelerator.bus_bits / 8 * share)


def _random_layer(generator: np.random.Generator) -> Conv2d:
    while True:
        kernel = _KERNELS[generator.integers(len(_KERNELS))]
        stride = int(generator.choice([1, 1, 2]))
        height = int(generator.choice(_SIZES))
        width = height if generator.random() < 0.8 else int(generator.choice(_SIZES))
        padded = generator.random() < 0.7
        try:
            layer = Conv2d(
                name="",
                batch=int(generator.choice([1, 1, 1, 2, 4, 8])),
                in_channels=int(generator.choice(_CHANNELS)),
                height=height,
                width=width,
                out_channels=int(generator.choice(_CHANNELS)),
                kernel=kernel,
                stride=(stride, stride),
                padding=(kernel[0] // 2, kernel[1] // 2) if padded else (0, 0),
            )
        except WorkloadError:
            continue
        if LEAST_MACS <= layer.macs <= MOST_MACS:
            return replace(layer, name=format_workload(layer))
