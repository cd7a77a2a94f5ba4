"""Options for values that an ONNX model leaves open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hilt.schedule.onnx_model import Network

Shapes = Annotated[
    list[str] | None, typer.Option(metavar="INPUT=1,3,224,224", help="The shape of a model's open input.")
]
Values = Annotated[list[str] | None, typer.Option(metavar="INPUT=NUMBER", help="Make an input of a model a constant.")]


class OptionFormError(ValueError):
    """A value of --shape or --value that cannot be read."""


def read_shapes(texts: list[str] | None) -> dict[str, tuple[int, ...]]:
    """Return shapes by input name of texts like `input=1,3,224,224`.

    Raises:
        OptionFormError: A text has another form.
    """
    shapes = {}
    for text in texts or []:
        name, _, sizes = text.rpartition("=")
        parts = sizes.replace("x", ",").split(",")
        if not name or not all(part.strip().isdecimal() for part in parts):
            raise OptionFormError(f"--shape {text} is no shape; write it as --shape input=1,3,224,224")
        shapes[name] = tuple(int(part) for part in parts)
    return shapes


def read_values(texts: list[str] | None) -> dict[str, float]:
    """Return numbers by input name of texts like `rate=16000`.

    Raises:
        OptionFormError: A text has another form.
    """
    values = {}
    for text in texts or []:
        name, _, number = text.rpartition("=")
        try:
            values[name] = float(number)
        except ValueError:
            name = ""
        if not name:
            raise OptionFormError(f"--value {text} is no number; write it as --value rate=16000")
    return values


def model_network(path: Path, shapes: list[str] | None, values: list[str] | None) -> Network:
    """Return the layers of a model file, for tuning.

    Raises:
        OnnxError: The file is no model that can be read, or an input's shape stays open.
    """
    from hilt.cli.files import named_in_text
    from hilt.network.workloads import read_layers

    return named_in_text(read_layers(path, read_shapes(shapes), read_values(values)))
