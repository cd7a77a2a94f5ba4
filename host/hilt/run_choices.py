"""The named choices that every layer shares: check level, space kind, aim of a compilation. Imports nothing of hilt."""

from __future__ import annotations

from enum import StrEnum


class CheckLevel(StrEnum):
    """The strictness of the compiler's checks."""

    COMPILER = "compiler"
    """Buffers, fields and limits of hilt's own lowering."""
    STRICT = "strict"
    """Also sums that a write hazard could lose on RTL without interlock."""
    TVM = "tvm"
    """The configurations that TVM v0.9 would compile and run."""
    OFF = "off"
    """Every configuration that can be written down as a program."""


class Aim(StrEnum):
    """The aim of a compilation, where a board has batch lanes."""

    LATENCY = "latency"
    """The lanes hold bands of one image."""
    THROUGHPUT = "throughput"
    """The lanes hold the model's images."""


class SpaceName(StrEnum):
    """The kind of a space: its set of knobs."""

    AUTOTVM = "autotvm"
    """TVM's knobs for conv2d on VTA, and a loop order."""
    ML2 = "ml2"
    """ML2Tuner's knobs (its Table 5)."""
    ROWS = "rows"
    """hilt's row programs, for machines where DMA rows, iterations and padding cost."""


class DatasetForm(StrEnum):
    """The form of a dataset's file for others: Kernel Tuner's cache, or CSV."""

    KERNELTUNER = "kerneltuner"
    CSV = "csv"
