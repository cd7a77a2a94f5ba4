"""Small integer graphs with random weights, made layer by layer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.graph import Graph, Node, Tensor, check
from hilt.network.target import CompileTarget
from hilt.simulator.device import MemoryModel
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import INSTRUCTION, Opcode
from hilt.vta.parameters import VTAParameters

PYNQ = "1x16_i8w8a32_15_15_18_17"
SMALL = "1x8_i8w8a32_12_13_14_15"
BATCHED = "4x8_i8w8a32_15_16_16_18"


def target(parameters: str = PYNQ) -> CompileTarget:
    accelerator = Accelerator.for_parameters(VTAParameters.from_name(parameters))
    return CompileTarget("test", accelerator, MemoryModel(base=0x1000_0000))


def without_table(aim: CompileTarget) -> CompileTarget:
    """Return a target whose accelerator stores by no table, as public bitstreams: the processor looks up."""
    return replace(aim, accelerator=replace(aim.accelerator, table=False))


def banded(aim: CompileTarget) -> CompileTarget:
    """Return a target whose batch lanes can hold bands of one image."""
    return replace(aim, accelerator=replace(aim.accelerator, bands=True))


class Builder:
    """Adds nodes one after another; each returns the name of its output."""

    def __init__(self, shape: tuple[int, ...], seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.tensors = {"x": Tensor("x", shape, "int8", 1.0)}
        self.constants: dict[str, NDArray[Any]] = {}
        self.nodes: list[Node] = []

    def conv(
        self,
        data: str,
        channels: int,
        kernel: int = 3,
        *,
        stride: int = 1,
        groups: int = 1,
        residual: str = "",
        residual_shift: int | list[int] = 5,
        dilation: int = 1,
        **attributes: Any,
    ) -> str:
        images, inputs, height, width = self.tensors[data].shape
        name = f"conv{len(self.nodes)}"
        taps = inputs // groups * kernel * kernel
        self.constants[f"{name}.w"] = self.random.integers(
            -40, 41, (channels, inputs // groups, kernel, kernel)
        ).astype(np.int8)
        self.constants[f"{name}.b"] = self.random.integers(-2000, 2001, channels).astype(np.int32)
        reach = (kernel - 1) * dilation
        before = reach // 2
        values: dict[str, Any] = {
            "strides": [stride, stride],
            "pads": [before, before, reach - before, reach - before],
            "groups": groups,
            "dilations": [dilation, dilation],
            "input_dilation": [1, 1],
            "shift": [6 + int(np.log2(taps)) // 2],
            "clip": [-128, 127],
        }
        names = [data, f"{name}.w", f"{name}.b"]
        if residual:
            names.append(residual)
            values["residual_shift"] = residual_shift if isinstance(residual_shift, list) else [residual_shift]
        shape = (images, channels, (height - 1) // stride + 1, (width - 1) // stride + 1)
        return self.add_node(name, "conv2d", names, shape, {**values, **attributes})

    def dense(self, data: str, outputs: int) -> str:
        images, inputs = self.tensors[data].shape
        name = f"dense{len(self.nodes)}"
        self.constants[f"{name}.w"] = self.random.integers(-40, 41, (outputs, inputs)).astype(np.int8)
        attributes = {"shift": [8], "clip": [-128, 127]}
        return self.add_node(name, "dense", [data, f"{name}.w", ""], (images, outputs), attributes)

    def add_node(
        self, name: str, op: str, inputs: list[str], shape: tuple[int, ...], attributes: dict[str, Any]
    ) -> str:
        output = f"{name}.y"
        self.tensors[output] = Tensor(output, shape, "int8", 1.0)
        self.nodes.append(Node(name, op, tuple(inputs), (output,), attributes))
        return output

    def graph(self, *outputs: str) -> Graph:
        made = Graph("small", ("x",), outputs, tuple(self.nodes), self.tensors, self.constants)
        check(made)
        return made

    def input(self) -> NDArray[np.int8]:
        return self.random.integers(-128, 128, self.tensors["x"].shape).astype(np.int8)


def residual_network(seed: int = 0) -> Builder:
    """A stem, a residual block, a second one with a strided shortcut, pooling, a dense layer: 12 x 12 images."""
    builder = Builder((1, 3, 12, 12), seed)
    stem = builder.conv("x", 16)
    first = builder.conv(builder.conv(stem, 16), 16, residual=stem, residual_shift=8)
    shortcut = builder.conv(first, 24, 1, stride=2, clip=[-128, 127])
    second = builder.conv(builder.conv(first, 24, stride=2), 24, residual=shortcut, residual_shift=7)
    attributes = {
        "kernel": [2, 2],
        "strides": [2, 2],
        "pads": [0, 0, 0, 0],
        "divisor": 1,
        "shift": 2,
        "clip": [-128, 127],
    }
    pooled = builder.add_node("pool", "average_pool", [second], (1, 24, 3, 3), attributes)
    maximum = {"kernel": [3, 3], "strides": [1, 1], "pads": [0, 0, 0, 0]}
    top = builder.add_node("top", "max_pool", [pooled], (1, 24, 1, 1), maximum)
    flat = builder.add_node("flat", "reshape", [top], (1, 24), {"shape": [1, 24]})
    builder.dense(flat, 10)
    return builder


def instruction(opcode: Opcode, **fields: int) -> np.ndarray:
    """Return an INSTRUCTION record of one instruction."""
    made = np.zeros(1, dtype=INSTRUCTION)
    made["opcode"] = opcode
    for name, value in fields.items():
        made[name] = value
    return made
