"""Block RAM by the aspect ratios of UG473 and UG573, against figures that are added up by hand."""

from __future__ import annotations

import pytest

from hilt.vta.accelerator import Accelerator
from hilt.vta.block_ram import accelerator_blocks, blocks
from hilt.vta.parameters import VTAParameters


@pytest.mark.parametrize(
    ("width", "depth", "expected"),
    [
        (72, 512, 1),
        (36, 512, 0.5),
        (37, 512, 1),
        (73, 512, 1.5),
        (8192, 256, 114),  # 113 blocks of 72 bits, and 56 bits
        (2048, 1024, 57),
        (18, 1024, 0.5),
        (128, 2048, 7.5),
        (1, 32768, 1),
        (1, 65536, 2),
        (3, 8192, 1),
        (2, 8192, 0.5),
    ],
)
def test_a_ram_with_a_port_for_each_direction(width: int, depth: int, expected: float) -> None:
    assert blocks(width, depth) == expected


def test_two_reading_ports_have_half_the_width_at_512_words() -> None:
    assert (blocks(72, 512), blocks(72, 512, dual_port=True)) == (1, 2)
    assert blocks(32, 2048, dual_port=True) == blocks(32, 2048) == 2


@pytest.mark.parametrize(
    ("name", "bus_bits", "expected"),
    [
        ("1x16_i8w8a32_15_15_18_17", 64, 57 + 7.5 + 32 + 8 + 8),
        ("1x32_i8w8a32_15_15_18_17", 128, 114 + 7.5 + 32 + 8 + 8),
        ("1x64_i8w8a32_15_17_19_17", 128, 455.5 + 28.5 + 64 + 15 + 8),
        ("1x16_i8w8a32_16_16_19_18", 128, 114 + 14.5 + 64 + 15 + 15),  # wide ISA: micro-ops of 64 bits
    ],
)
def test_an_accelerator_is_the_sum_of_its_rams(name: str, bus_bits: int, expected: float) -> None:
    """Weights, inputs, accumulator by lane, outputs, micro-ops."""
    accelerator = Accelerator.for_parameters(VTAParameters.from_name(name), bus_bits=bus_bits)
    assert accelerator_blocks(accelerator) == expected
