"""The native engine beside numpy on the cases of the processor's operators, on boards too."""

from __future__ import annotations

import pytest

from tests.unit.network.engines import assert_native_equals_numpy
from tests.unit.network.processor_cases import CASES, NUMPY_ALONE


@pytest.mark.parametrize("case", CASES)
def test_the_native_engine_gives_the_same_bits(case: str) -> None:
    assert assert_native_equals_numpy(*CASES[case]) == (case not in NUMPY_ALONE)
