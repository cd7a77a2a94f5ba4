"""TFLite's variables, which keep a stream's state between inferences: inputs and outputs of the network."""

from __future__ import annotations

from hilt.network.tflite.convert import Converter
from hilt.network.tflite.reader import TfliteOperator


def read(c: Converter, op: TfliteOperator) -> None:
    """Convert READ_VARIABLE: the input of the variable's name, or the value that was assigned before."""
    name, made = c.name(op, 0), c.output(op)
    if name not in c.variables:
        c.variables[name] = c.add_input(f"{name}.before", made)
    c.add("Identity", [c.variables[name]], made.name)


def assign(c: Converter, op: TfliteOperator) -> None:
    """Convert ASSIGN_VARIABLE: the variable's last value is an output."""
    c.variables[c.name(op, 0)] = c.name(op, 1)


def finish(c: Converter) -> list[str]:
    """Return the outputs that hold the variables' values after the inference."""
    return [c.add("Identity", [value], f"{name}.after") for name, value in c.variables.items()]


def handle(_c: Converter, _op: TfliteOperator) -> None:
    """Convert VAR_HANDLE and CALL_ONCE: nothing is left, for the first values are given with the first input."""
