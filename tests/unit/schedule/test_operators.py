"""Grouped and transposed convolutions and dense layers: the convolutions that compute them, against definitions of the
operators themselves, and their programs on the golden model."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.schedule import Conv2d, Rejected, WorkloadError, load_workload, make_tensors, space_for, workload_names
from hilt.vta import reference
from hilt.vta.accelerator import Accelerator
from hilt.vta.layout import unpack_data, unpack_weights
from tests.unit.schedule import test_lowering_on_golden, test_lowering_order
from tests.unit.schedule.cases import BATCHED, PYNQ, ZCU102, accepted


def check(workload: Conv2d, knobs: dict[str, int], accelerator: Accelerator) -> None:
    test_lowering_order.check(workload, knobs, accelerator)
    test_lowering_on_golden.check(workload, knobs, accelerator)


@st.composite
def grouped_convolutions(draw: st.DrawFn) -> Conv2d:
    """Groups of less than a block, of one, of several; channels that fill blocks in part."""
    groups = draw(st.integers(1, 6))
    channels = st.sampled_from([1, 3, 8, 16, 32])
    return Conv2d(
        name="grouped",
        batch=draw(st.integers(1, 5)),
        in_channels=groups * draw(channels),
        height=draw(st.integers(3, 9)),
        width=draw(st.integers(3, 9)),
        out_channels=groups * draw(channels),
        kernel=(draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        stride=(draw(st.integers(1, 2)), draw(st.integers(1, 2))),
        padding=(draw(st.integers(0, 1)), draw(st.integers(0, 1))),
        groups=groups,
        bias=draw(st.booleans()),
        shift=4,
        clip=(-100, 100),
    )


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    grouped_convolutions(),
    st.sampled_from([PYNQ, BATCHED, ZCU102]),
    st.sampled_from(["autotvm", "ml2"]),
    st.integers(0, 2**31),
)
def test_any_grouped_convolution(workload: Conv2d, accelerator: Accelerator, kind: str, seed: int) -> None:
    space = space_for(workload, accelerator, orders=4, kind=kind)  # type: ignore[arg-type]
    knobs = space.knobs_at(int(np.random.default_rng(seed).integers(len(space))))
    try:
        check(workload, knobs, accelerator)
    except Rejected as rejected:
        assert rejected.reason


@settings(max_examples=40, deadline=None)
@given(grouped_convolutions(), st.sampled_from([PYNQ, BATCHED]))
def test_expected_is_each_group_by_itself(workload: Conv2d, accelerator: Accelerator) -> None:
    tensors = make_tensors(workload, accelerator, seed=6)
    groups = workload.block_groups(accelerator.parameters.block)
    data = unpack_data(tensors.inputs["inp"], workload.batch, workload.in_channels)
    weights = unpack_weights(tensors.inputs["wgt"], workload.out_channels, workload.in_channels // groups)
    expected = unpack_data(tensors.expected, workload.batch, workload.out_channels)
    inputs, outputs = workload.in_channels // workload.groups, workload.out_channels // workload.groups
    together = workload.groups // groups
    for group in range(workload.groups):
        mine, out = slice(group * inputs, (group + 1) * inputs), slice(group * outputs, (group + 1) * outputs)
        place = group % together
        bias = None if not workload.bias else tensors.inputs["bias"][:, 0, :].ravel()[out]
        own = reference.conv2d(
            data[:, mine],
            weights[out, place * inputs : (place + 1) * inputs],
            bias,
            stride=workload.stride,
            padding=workload.padding,
            shift=workload.shift,
            clip=workload.clip,
        )
        assert np.array_equal(expected[:, out], own)


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_padding_of_two_sides(data: st.DataObject) -> None:
    """Each output against its own window of the definition."""
    draw = data.draw
    kernel, stride = (draw(st.integers(1, 3)), draw(st.integers(1, 4))), (draw(st.integers(1, 3)), 2)
    top, left, bottom, right = (draw(st.integers(0, 4)) for _ in range(4))
    text = f"conv2d:n=1,ci=5,h=7,w=6,co=3,k={kernel[0]}x{kernel[1]},s={stride[0]}x{stride[1]}"
    workload = load_workload(f"{text},p={top}x{left},pb={bottom}x{right},clip=-128:127")
    tensors = make_tensors(workload, PYNQ, seed=4)
    image = unpack_data(tensors.inputs["inp"], 1, 5)[0].astype(np.int64)
    weights = unpack_weights(tensors.inputs["wgt"], 3, 5).astype(np.int64)
    found = unpack_data(tensors.expected, 1, 3)[0]
    rows = range(-top, 7 + bottom - kernel[0] + 1, stride[0])
    columns = range(-left, 6 + right - kernel[1] + 1, stride[1])
    assert found.shape == (3, len(rows), len(columns))
    for y, row in enumerate(rows):
        for x, column in enumerate(columns):
            inside = [
                (i, j) for i in range(kernel[0]) for j in range(kernel[1]) if 0 <= row + i < 7 and 0 <= column + j < 6
            ]
            total = sum((weights[:, :, i, j] @ image[:, row + i, column + j] for i, j in inside), np.zeros(3, np.int64))
            assert np.array_equal(found[:, y, x], np.clip(total >> 8, -128, 127))
    for knobs in accepted(workload, PYNQ, 1, seed=draw(st.integers(0, 1000))):
        check(workload, knobs, PYNQ)


@pytest.mark.parametrize("name", [name for name in workload_names() if name.startswith("mobilenet.")])
def test_mobilenet(name: str) -> None:
    workload = load_workload(name)
    for knobs in accepted(workload, PYNQ, 2, seed=31):
        test_lowering_on_golden.check(workload, knobs, PYNQ)


@pytest.mark.parametrize("accelerator", [PYNQ, BATCHED], ids=["pynq", "batched"])
def test_a_dense_layer_is_a_matrix_product(accelerator: Accelerator) -> None:
    workload = load_workload("dense:n=5,ci=100,co=70,bias=1,shift=6,clip=-128:127")
    for knobs in accepted(workload, accelerator, 6, seed=8):
        check(workload, knobs, accelerator)
    tensors = make_tensors(workload, accelerator, seed=3)
    data = unpack_data(tensors.inputs["inp"], 5, 100)[:, :, 0, 0].astype(np.int64)
    weights = unpack_weights(tensors.inputs["wgt"], 70, 100)[:, :, 0, 0].astype(np.int64)
    bias = tensors.inputs["bias"][:, 0, :].ravel()[:70]
    expected = np.clip((data @ weights.T + bias) >> 6, -128, 127)
    assert np.array_equal(unpack_data(tensors.expected, 5, 70)[:, :, 0, 0], expected)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_transposed_convolution_scatters_its_inputs(data: st.DataObject) -> None:
    draw = data.draw
    kernel = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    stride = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    padding = (draw(st.integers(0, kernel[0] - 1)), draw(st.integers(0, kernel[1] - 1)))
    extra = (draw(st.integers(0, stride[0] - 1)), draw(st.integers(0, stride[1] - 1)))
    height, width = draw(st.integers(3, 6)), draw(st.integers(3, 6))
    pairs = ",".join(
        f"{key}={first}x{second}"
        for key, (first, second) in {"k": kernel, "s": stride, "p": padding, "op": extra}.items()
    )
    try:
        workload = load_workload(f"conv2d_transpose:n=1,ci=20,h={height},w={width},co=17,{pairs},clip=-128:127,shift=7")
    except WorkloadError as error:
        assert "exceeds the padded input" in str(error)  # an output of nothing
        return
    tensors = make_tensors(workload, PYNQ, seed=2)
    stretched = unpack_data(tensors.inputs["inp"], 1, 20)[0].astype(np.int64)
    small = stretched[:, : (height - 1) * stride[0] + 1 : stride[0], : (width - 1) * stride[1] + 1 : stride[1]]
    assert np.count_nonzero(stretched) == np.count_nonzero(small)
    # By definition: each input adds the kernel, times itself, to the output; of which the padding is cut away.
    weights = unpack_weights(tensors.inputs["wgt"], 17, 20)[:, :, ::-1, ::-1].transpose(1, 0, 2, 3).astype(np.int64)
    size = [(count - 1) * stride[axis] + kernel[axis] + extra[axis] for axis, count in enumerate((height, width))]
    sums = np.zeros((17, *size), dtype=np.int64)
    for y in range(height):
        for x in range(width):
            spread = np.einsum("i,iokl->okl", small[:, y, x], weights)
            top, left = y * stride[0], x * stride[1]
            sums[:, top : top + kernel[0], left : left + kernel[1]] += spread
    inside = sums[:, padding[0] : size[0] - padding[0], padding[1] : size[1] - padding[1]]
    assert (workload.out_height, workload.out_width) == inside.shape[1:]
    assert np.array_equal(unpack_data(tensors.expected, 1, 17)[0], np.clip(inside >> 7, -128, 127))
    for knobs in accepted(workload, PYNQ, 1, seed=draw(st.integers(0, 1000))):
        check(workload, knobs, PYNQ)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dense:n=1,ci=4", "co missing"),
        ("dense:n=1,ci=4,co=4,k=3x3", "'k=3x3' is none of n, ci, co"),
        ("conv2d_transpose:n=1,ci=4,h=4,w=4,co=4,k=2x2,p=2x0", "padding 2 must be at least 0 and below"),
        ("conv2d_transpose:n=1,ci=4,h=4,w=4,co=4,k=2x3,p=1x3", "padding 3 must be at least 0 and below"),
        ("conv2d_transpose:n=1,ci=4,h=4,w=4,co=4,k=2x2,op=0x1", "output padding 1 must be below the stride"),
        ("conv2d_transpose:n=1,ci=4,h=4,w=4,co=4,k=2x2,s=2x2,op=2x0", "output padding 2 must be"),
    ],
)
def test_an_unreadable_file_gets_one_clear_line(text: str, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        load_workload(text)


def test_a_transposed_convolution_pads_up_to_its_kernel_and_behind_up_to_its_stride() -> None:
    workload = load_workload("conv2d_transpose:n=1,ci=4,h=4,w=5,co=4,k=2x3,s=2x3,p=1x2,op=1x2")
    assert isinstance(workload, Conv2d)
    assert (workload.height, workload.width, workload.padding) == (8, 15, (0, 0))
    assert (workload.out_height, workload.out_width) == (7, 13)
