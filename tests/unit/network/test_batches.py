"""Batches of any size for a network of one: which inferences they make, and which inputs are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilt_runtime.batches import split
from hilt_runtime.errors import InputError


def tensor(name: str, *shape: int) -> dict[str, Any]:
    return {"name": name, "shape": list(shape)}


X, Z, Y = tensor("x", 2, 3), tensor("z", 2), tensor("y", 2, 10)


@pytest.mark.parametrize(
    ("images", "places"), [(1, [[0, 0]]), (3, [[0, 1], [2, 2]]), (4, [[0, 1], [2, 3]]), (5, [[0, 1], [2, 3], [4, 4]])]
)
def test_the_last_inference_is_filled_up_with_its_last_image(images: int, places: list[list[int]]) -> None:
    arrays = {"x": np.arange(images * 3).reshape(images, 3), "z": np.arange(images)}
    made = split([X, Z], [Y], arrays)
    assert made is not None and made[0] == images
    assert [list(feeds) for feeds in made[1]] == [["x", "z"]] * len(places)
    for feeds, wanted in zip(made[1], places, strict=True):
        assert feeds["z"].tolist() == wanted
        assert np.array_equal(feeds["x"], arrays["x"][wanted])


@pytest.mark.parametrize(
    ("outputs", "shape"),
    [
        ([Y], (2, 3)),  # the network's own size
        ([tensor("y", 1, 10)], (4, 3)),  # a result that is not of each image
        ([tensor("y")], (4, 3)),  # a result without sizes
        ([Y], (4, 4)),  # other images
        ([Y], (4, 3, 1)),
        ([Y], (4,)),
    ],
)
def test_other_inputs_are_no_batches(outputs: list[dict[str, Any]], shape: tuple[int, ...]) -> None:
    assert split([X], outputs, {"x": np.zeros(shape)}) is None


@pytest.mark.parametrize(("first", "second", "counts"), [(0, 0, "0"), (3, 5, "3 and 5"), (2, 4, "2 and 4")])
def test_inputs_without_images_or_of_several_counts_are_refused(first: int, second: int, counts: str) -> None:
    with pytest.raises(InputError, match=f"^the inputs have {counts} images$"):
        split([X, Z], [Y], {"x": np.zeros((first, 3)), "z": np.zeros(second)})
