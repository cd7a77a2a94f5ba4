"""Folds that quantise their image: which do, and their times by the model of a core."""

from __future__ import annotations

from typing import Any

import pytest

from hilt.network.core_speed import CORTEX_A9, fold_of_floats_work, pack_work, step_seconds
from hilt_runtime.native.folds import folds_of_floats

FOLD = {"kernel": 3, "stride": 1, "left": 1}
QUANTISE: dict[str, Any] = {
    "kind": "cpu", "name": "q", "op": "quantize", "inputs": ["x"], "outputs": ["t"], "attributes": {"scale": 0.25}
}  # fmt: skip
PACK: dict[str, Any] = {"kind": "pack", "name": "p", "tensor": "t", "buffer": "b", "fold": FOLD}


def places(*steps: dict[str, Any], block: int = 16, batch: int = 1, numpy: str = "", kept: str = "") -> dict[int, int]:
    buffers = {"b": {"shape": [1, 1, 8, 8, batch, block]}}
    return folds_of_floats(steps, buffers, lambda step: step["name"] != numpy, {kept})


def test_a_fold_right_behind_a_quantisation_is_of_floats() -> None:
    assert places(QUANTISE, PACK) == {1: 0}
    assert places(QUANTISE, {**PACK, "channels_last": True}, block=32) == {1: 0}


@pytest.mark.parametrize(
    ("steps", "facts"),
    [
        ((QUANTISE, {key: value for key, value in PACK.items() if key != "fold"}), {}),
        (({**QUANTISE, "attributes": {"scale": 0.3}}, PACK), {}),
        (({**QUANTISE, "op": "Relu"}, PACK), {}),
        (({**QUANTISE, "outputs": ["u"]}, PACK), {}),
        ((QUANTISE, PACK, {**PACK, "name": "again"}), {}),
        ((QUANTISE, PACK, {**QUANTISE, "op": "dequantize", "inputs": ["t"], "outputs": ["y"]}), {}),
        ((QUANTISE, PACK), {"block": 32}),
        ((QUANTISE, PACK), {"batch": 2}),
        ((QUANTISE, PACK), {"numpy": "q"}),
        ((QUANTISE, PACK), {"numpy": "p"}),
        ((QUANTISE, PACK), {"kept": "t"}),
    ],
)
def test_others_read_int8(steps: tuple[dict[str, Any], ...], facts: dict[str, Any]) -> None:
    assert places(*steps, **facts) == {}


def test_it_takes_less_than_both_by_the_model() -> None:
    shape, size = (1, 3, 224, 224), 401408
    apart = pack_work(shape, size, fold=True)
    both = step_seconds(CORTEX_A9, "native", fold_of_floats_work(shape, size))
    assert step_seconds(CORTEX_A9, "native", apart) < both < 0.003
