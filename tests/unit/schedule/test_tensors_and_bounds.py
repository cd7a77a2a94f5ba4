import numpy as np
import pytest

from hilt.schedule import bound_cycles, giga_operations_per_second, load_workload, make_tensors
from hilt.schedule.bounds import least_bytes
from hilt.vta import reference
from hilt.vta.layout import unpack_data, unpack_weights
from tests.unit.schedule.cases import BATCHED, PYNQ, RESNET18


@pytest.mark.parametrize(
    "name", [*RESNET18, "deepbench.107", "conv2d:n=1,ci=16,h=6,w=6,co=16,k=1x1,clip=-128:127,shift=3,bias=1"]
)
def test_outputs_are_mostly_neither_zero_nor_saturated(name: str) -> None:
    workload = load_workload(name)
    tensors = make_tensors(workload, PYNQ, seed=11)
    expected = tensors.expected
    assert np.mean(expected == 0) < 0.15
    assert np.mean((expected == workload.clip[0]) | (expected == workload.clip[1])) < 0.15
    assert len(np.unique(expected)) > 60


def test_tensors_follow_the_seed() -> None:
    workload = load_workload("resnet18.C11")
    first, again, other = (make_tensors(workload, PYNQ, seed) for seed in (1, 1, 2))
    assert np.array_equal(first.expected, again.expected)
    assert not np.array_equal(first.expected, other.expected)


def test_expected_is_the_convolution_of_the_inputs_with_padding_computed_too() -> None:
    workload = load_workload("conv2d:n=3,ci=5,h=6,w=7,co=9,k=3x2,s=1x2,p=1x1,bias=1,shift=5,clip=-50:60")
    tensors = make_tensors(workload, BATCHED, seed=4)
    data, weights = unpack_data(tensors.inputs["inp"], 3, 5), unpack_weights(tensors.inputs["wgt"], 9, 5)
    bias = tensors.inputs["bias"][:, 0, :].ravel()[:9]
    plain = reference.conv2d(data, weights, bias, stride=(1, 2), padding=(1, 1), shift=5, clip=(-50, 60))
    assert np.array_equal(unpack_data(tensors.expected, 3, 9), plain)
    assert tensors.expected.shape == (1, 2, 6, 4, 4, 8)
    assert np.all(unpack_data(tensors.expected, 4, 16)[:, 9:] == 0)


def test_bounds_by_hand() -> None:
    layer = load_workload("resnet18.C10")
    assert least_bytes(layer, PYNQ) == 256 * 7 * 7 + 256 * 512 + 512 * 7 * 7  # 1x1, stride 2: a quarter of the input
    assert bound_cycles(layer, PYNQ) == 16 * 32 * 49  # one micro-op a cycle
    assert bound_cycles(layer, PYNQ, bytes_per_cycle=1) == least_bytes(layer, PYNQ)
    ragged = load_workload("conv2d:n=1,ci=3,h=5,w=5,co=17,k=1x1,bias=1")
    assert bound_cycles(ragged, PYNQ, bytes_per_cycle=1e9) == 1 * 2 * 25
    assert least_bytes(ragged, PYNQ) == 25 * 16 + 2 * 256 + 2 * 64 + 2 * 25 * 16


def test_operations_are_two_a_multiply_accumulate() -> None:
    layer = load_workload("resnet18.C2")
    assert giga_operations_per_second(layer, 1e6) == pytest.approx(2 * layer.macs / 1e9)
