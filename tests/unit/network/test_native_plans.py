"""The steps that the native engine takes for each operator, beside those that were accepted, whole and in pieces.

Other tests hold that they compute right. More steps, other pieces and other refusals show here. If they are meant:
`build/host-env/bin/pytest tests/unit/network/test_native_plans.py --snapshot-update`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from hilt_runtime.native import split
from hilt_runtime.native.plans import PLANS, plan_operator
from hilt_runtime.native.steps import KERNELS, Builder, NotNativeError, StepRecord
from tests.unit.network.processor_cases import CASES

GROUPS = 4
"""Parts of the cases."""


@pytest.mark.parametrize("group", range(GROUPS))
def test_steps(group: int, snapshot: SnapshotAssertion) -> None:
    lines = []
    for case in list(CASES)[group::GROUPS]:
        lines += [case, *(f"  {line}" for line in _lines(*CASES[case]))]
    assert "\n".join(lines) == snapshot


def _lines(op: str, inputs: Sequence[Any], attributes: dict[str, Any]) -> Iterator[str]:
    for threads in (1, 3):
        builder = Builder(threads)
        arrays = [None if value is None else np.array(value, order="C") for value in inputs]
        for constant in arrays[1:]:
            if constant is not None:
                builder.constant(constant)
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(split, "LEAST", 200)
                made = plan_operator(builder, op, arrays, attributes)
        except NotNativeError as error:
            if op in PLANS:
                yield f"refused: {error}"
            return
        if threads == 1:
            yield f"-> {', '.join(f'{each.dtype} {each.shape}' for each in made)}"
        if threads == 1 or len(builder.records) > 1:
            yield from (f"{threads}: {_record(builder, each)}" for each in builder.records[:6])
            yield f"{threads}: {len(builder.records)} steps, {zlib.crc32(_all(builder).encode()):08x}"


def _record(builder: Builder, each: StepRecord) -> str:
    numbers, sizes = [*each.numbers], [builder.arrays[place].nbytes for place in each.places]
    return (
        f"{KERNELS[each.kernel - 1]} of {sizes} x{each.together} {numbers} {[f'{value:.5g}' for value in each.floats]}"
    )


def _all(builder: Builder) -> str:
    """Return all steps, with the buffers that they share and the numbers in constant ones."""
    known = [array.tobytes() if builder.is_constant(array) else b"" for array in builder.arrays]
    places = [(*each.places, *(zlib.crc32(known[place]) for place in each.places)) for each in builder.records]
    return "\n".join(f"{_record(builder, each)} {place}" for each, place in zip(builder.records, places, strict=True))
