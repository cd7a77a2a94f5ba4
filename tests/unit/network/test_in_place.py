"""Results of VTA of one pixel: which are read in its buffer, and that operators read them there as elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilt_runtime import operators
from hilt_runtime.layout import pack
from hilt_runtime.native.in_place import read_in_place
from hilt_runtime.native.inference import InferencePlan
from tests.unit.network.engines import library

UNPACK = {"kind": "unpack", "name": "back", "tensor": "t", "buffer": "b"}
VTA = {"kind": "vta", "name": "vta 1", "program": 1}


def cpu(op: str, source: str = "t", **attributes: Any) -> dict[str, Any]:
    return {"kind": "cpu", "name": op, "op": op, "inputs": [source], "outputs": [op], "attributes": attributes}


def places(
    *steps: dict[str, Any], shape: tuple[int, ...] = (4, 32), buffer: tuple[int, ...] = (4, 2, 1, 1, 1, 16)
) -> set[int]:
    manifest = {
        "outputs": [{"name": "kept"}],
        "buffers": {"b": {"shape": list(buffer)}},
        "steps": [VTA, {**UNPACK, "shape": list(shape)}, *steps],
    }
    return set(read_in_place(manifest))


def test_rows_are_read_where_they_lie() -> None:
    assert places(cpu("dequantize", scale=0.5), VTA) == {1}
    assert places(cpu("softmax", axis=1), shape=(4, 21)) == {1}
    assert places(cpu("table"), shape=(1, 21, 1, 1)) == {1}
    other = {**UNPACK, "name": "other", "tensor": "u", "shape": [2, 2, 2]}
    assert places(other, cpu("add"), shape=(4, 32, 1, 1)) == {1}


@pytest.mark.parametrize(
    ("steps", "facts"),
    [
        ([VTA, cpu("dequantize")], {}),  # it is written before
        ([{**cpu("table", "u"), "packed": {"table": "b"}}, cpu("dequantize")], {}),
        ([{"kind": "pack", "name": "in", "tensor": "t", "buffer": "b"}], {}),
        ([cpu("Reshape")], {}),  # a view, which others may read later
        ([cpu("dequantize"), cpu("Transpose")], {}),
        ([cpu("dequantize")], {"shape": (4, 21)}),  # it takes no lanes of nothing
        ([cpu("softmax", axis=0)], {"shape": (4, 21)}),
        ([cpu("softmax", axis=1)], {"shape": (4, 21, 1)}),
        ([cpu("dequantize")], {"shape": (4, 32, 1, 5), "buffer": (4, 2, 1, 5, 1, 16)}),
        ([cpu("dequantize")], {"shape": (4, 32), "buffer": (2, 2, 1, 1, 2, 16)}),
    ],
)
def test_others_are_read_back(steps: list[dict[str, Any]], facts: dict[str, Any]) -> None:
    assert places(*steps, **facts) == set()


def test_the_callers_tensors_are_read_back() -> None:
    kept = {**UNPACK, "tensor": "kept", "shape": [4, 32]}
    manifest = {"outputs": [{"name": "kept"}], "buffers": {"b": {"shape": [4, 2, 1, 1, 1, 16]}}, "steps": [kept]}
    assert not read_in_place(manifest)


@pytest.mark.parametrize("shape", [(5, 41), (1, 41), (5, 48), (300, 1000)])
@pytest.mark.parametrize("threads", [1, 2])
def test_an_operator_reads_rows_in_their_buffer(shape: tuple[int, int], threads: int) -> None:
    random = np.random.default_rng(0)
    packed = np.zeros((shape[0], -(-shape[1] // 16), 1, 1, 1, 16), np.int8)
    plan = InferencePlan(library(), {}, {"b": packed}, threads)
    step = cpu("softmax", axis=1, scale=0.25, logarithm=0, shape=list(shape))
    for turn in range(2):
        data = random.integers(-128, 128, shape).astype(np.int8)
        packed[...] = 99  # the lanes behind the last channel hold anything
        whole = np.empty_like(packed)
        pack(data, whole)
        packed.reshape(shape[0], -1)[:, : shape[1]] = whole.reshape(shape[0], -1)[:, : shape[1]]
        if turn == 0:
            plan.begin({})
            plan.add_view({**UNPACK, "shape": list(shape)})
            plan.add_operator(step, lambda given: pytest.fail("numpy computes it"))
            plan.finish([{**UNPACK, "shape": list(shape), "op": ""}, step], {"softmax"})
        else:
            plan.run({})
        (wanted,) = operators.run("softmax", [data], step["attributes"])
        np.testing.assert_array_equal(plan.values["softmax"].view(np.int32), wanted.view(np.int32))
    assert [begin == end for begin, end, _ in plan.step_times(*plan.times())] == [True, False]
