"""An Expand or Tile of pixels is a Resize, with ONNX Runtime's results."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from .models import model_of
from .test_canonical_form import assert_same, normal


@pytest.mark.parametrize(
    ("op", "shape", "to", "made"),
    [
        ("Expand", (1, 3, 1, 1), (1, 3, 4, 5), ["Resize"]),
        ("Expand", (1, 3, 4, 1), (1, 1, 4, 5), ["Resize"]),
        ("Expand", (2, 3, 1), (2, 3, 7), ["Resize"]),
        ("Expand", (1, 1, 4, 4), (1, 3, 4, 4), ["Expand"]),
        ("Expand", (3, 1, 4), (2, 3, 5, 4), ["Expand"]),
        ("Tile", (1, 3, 1), (1, 1, 7), ["Resize"]),
        ("Tile", (1, 1, 4, 4), (1, 3, 1, 1), ["Expand"]),
        ("Tile", (1, 3, 2, 2), (1, 1, 2, 1), ["Concat"]),
        ("Tile", (1, 3, 2, 2), (1, 1, 9, 1), ["Tile"]),
        ("Tile", (1, 3, 2, 2), (1, 2, 2, 1), ["Tile"]),
    ],
)
def test_pixels_that_are_repeated_are_of_another_size(
    op: str, shape: tuple[int, ...], to: tuple[int, ...], made: list[str]
) -> None:
    model = model_of([helper.make_node(op, ["x", "to"], ["y"])], {"x": shape}, {"to": np.array(to)})
    assert list(assert_same(model, {"x": normal(*shape)})) == made
