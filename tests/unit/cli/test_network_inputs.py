"""Inputs of `hilt run` and data of `hilt eval` that do not fit a network are refused in one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from hilt.cli.eval import _data
from hilt.cli.run_network import inputs_for
from hilt.network.metrics import MetricError
from hilt_runtime import Bundle

IMAGE = np.ones((1, 3, 4, 4), np.float32)
IMAGES = np.ones((6, 3, 4, 4), np.float32)
CLASSES = np.arange(6)


def bundle(*inputs: str, batch: int = 1) -> Bundle:
    tensors = [{"name": name, "shape": [batch, 3, 4, 4], "dtype": "float32"} for name in inputs]
    outputs = [{"name": "y", "shape": [batch, 10], "dtype": "float32"}]
    return Bundle("m.hilt", {"inputs": tensors, "outputs": outputs}, {}, "")


def saved(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)  # type: ignore[arg-type]  # allow_pickle is a name as any other to mypy
    return path


def test_a_single_array_is_the_only_input(tmp_path: Path) -> None:
    np.testing.assert_array_equal(inputs_for(bundle("x"), saved(tmp_path / "a.npz", other=IMAGE))["x"], IMAGE)


@pytest.mark.parametrize(
    ("names", "array", "message"),
    [
        (("x",), np.full_like(IMAGE, np.nan), "input x in a.npz holds NaN in 48 of 48 elements"),
        (("x",), IMAGE.astype(">f4"), "input x in a.npz is >f4 (1, 3, 4, 4), the network takes float32 (1, 3, 4, 4)"),
        (("x",), IMAGE[0], "input x in a.npz is float32 (3, 4, 4)"),
        (("x", "z"), IMAGE, "a.npz has no input z; the network's inputs are x, z"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(
    names: tuple[str, ...], array: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(typer.BadParameter, match=re.escape(message)):
        inputs_for(bundle(*names), saved(Path("a.npz"), x=array))


@pytest.mark.parametrize("classes", [CLASSES, CLASSES[:, None], CLASSES.astype(float)])
def test_labels_may_be_a_column(classes: Any, tmp_path: Path) -> None:
    images, given = _data(saved(tmp_path / "d.npz", x=IMAGES, y=classes), bundle("x"), 4, "classes")
    assert images.shape == (4, 1, 3, 4, 4)
    assert given.reshape(-1).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": IMAGES, "y": np.eye(6)}, "has y (6, 6) of float64 for 6 images; give one class an image"),
        ({"x": IMAGES, "y": CLASSES[:3]}, "has y (3,) of int64 for 6 images"),
        ({"x": IMAGES, "y": np.int64(3)}, "has y () of int64 for 6 images"),
        ({"x": IMAGES, "y": CLASSES.astype(str)}, "has y (6,) of <U21 for 6 images"),
        ({"x": IMAGES, "y": CLASSES + 5}, "has class 10 in y; the network tells classes 0 to 9 apart"),
        ({"x": IMAGES, "y": -CLASSES}, "has class -1 in y"),
        ({"x": IMAGES, "y": CLASSES + 0.5}, "has class 0.5 in y"),
        ({"x": np.float32(1), "y": CLASSES}, "has x (); the network takes (1, 3, 4, 4) an image"),
        ({"x": IMAGES[:0], "y": CLASSES[:0]}, "has x (0, 3, 4, 4)"),
        ({"x": IMAGES.astype(float), "y": CLASSES}, "is float64, the network takes float32"),
        ({"x": IMAGES}, "has no array y; it has x"),
    ],
)
def test_data_that_does_not_fit_is_refused(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises((typer.BadParameter, MetricError), match=re.escape(message)):
        _data(saved(tmp_path / "d.npz", **arrays), bundle("x"), None, "classes")


def test_networks_of_other_forms_have_no_accuracy(tmp_path: Path) -> None:
    path = saved(tmp_path / "d.npz", x=IMAGES, y=CLASSES)
    with pytest.raises(typer.BadParameter, match="m.hilt takes x, z; `hilt eval` is for networks of one input"):
        _data(path, bundle("x", "z"), None, "classes")
    with pytest.raises(typer.BadParameter, match="takes 2 images at once; .* --shape x=1,3,4,4"):
        _data(path, bundle("x", batch=2), None, "classes")
