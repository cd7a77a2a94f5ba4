import json
from dataclasses import replace
from typing import Any

import pytest

from hilt.schedule import Conv2d, WorkloadError, load_workload, workload_names
from hilt.schedule.workload import EPILOGUES, is_dense
from hilt.schedule.workload_syntax import format_workload


def test_sizes_and_work_of_a_known_layer() -> None:
    layer = load_workload("resnet18.C3")
    assert (layer.out_height, layer.out_width) == (28, 28)
    assert layer.macs == 128 * 28 * 28 * 64 * 9
    assert (layer.shift, layer.clip, layer.bias) == (8, (0, 127), False)


def test_the_whole_catalogue_loads() -> None:
    names = workload_names()
    assert len([name for name in names if name.startswith("deepbench.")]) == 13
    for name in names:
        assert load_workload(name).name == name


def test_a_dilation_moves_taps_apart() -> None:
    text = "conv2d:n=1,ci=16,h=20,w=9,co=16,k=3x3,s=1x1,p=4x0,d=4x2"
    layer = load_workload(text)
    assert (layer.reach, layer.out_height, layer.out_width) == ((9, 5), 20, 5)
    assert layer.macs == 16 * 16 * 9 * 20 * 5 and format_workload(layer) == text
    assert Conv2d.from_dict(json.loads(json.dumps(layer.to_dict()))) == layer
    assert "dilation" not in replace(layer, dilation=(1, 1)).to_dict()
    alone = load_workload("conv2d:n=1,ci=16,h=20,w=9,co=16,k=1x3,d=4x2")
    assert alone.dilation == (1, 2)  # a tap without a next one
    with pytest.raises(WorkloadError, match="'d=2' is none of"):
        load_workload("conv2d_transpose:n=1,ci=16,h=4,w=4,co=16,k=3x3,d=2")


def test_a_workload_spelled_out_is_the_one_named() -> None:
    written = load_workload("conv2d:n=1,ci=64,h=56,w=56,co=64,k=3x3,s=1x1,p=1x1")
    assert {**written.to_dict(), "name": ""} == {**load_workload("resnet18.C2").to_dict(), "name": ""}
    full = load_workload("conv2d:n=2,ci=3,h=9,w=8,co=5,k=3x2,s=2,p=1x0,bias=1,shift=4,clip=-7:9")
    assert full == Conv2d(full.name, 2, 3, 9, 8, 5, (3, 2), (2, 2), (1, 0), 1, True, 4, (-7, 9))


def test_plain_values_make_the_same_workload_again() -> None:
    layer = load_workload("conv2d:n=2,ci=3,h=9,w=8,co=5,k=3x2,bias=1")
    assert Conv2d.from_dict(json.loads(json.dumps(layer.to_dict()))) == layer


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("resnet18.C55", r"no workload named 'resnet18.C55'; did you mean resnet18.C5"),
        ("zzz", "spell one out: conv2d:n=1"),
        ("zzz:n=1,ci=2", "no workload named 'zzz:n=1,ci=2'; spell one out"),
        ("conv2d", "no workload named 'conv2d'; spell one out"),
        ("dense", "no workload named 'dense'; spell one out"),
        ("conv2d:n=1,x=3", "'x=3' is none of n, ci, h, w, co, k"),
        ("conv2d:n=1,n=1", "n is given twice"),
        ("conv2d:n=1,ci=two", "cannot read 'ci=two'"),
        ("conv2d:n=1,ci=16,h=4,w=4,co=16", "k missing"),
        ("conv2d:n=1,ci=16,h=4,w=4,co=16,k=5x5", "kernel's height 5 exceeds the padded input"),
        ("conv2d:n=1,ci=16,h=4,w=4,co=16,k=3x3,p=-1x0", "padding of height is -1"),
        ("conv2d:n=0,ci=16,h=4,w=4,co=16,k=1x1", "batch is 0"),
        ("conv2d:n=1,ci=16,h=4,w=4,co=16,k=1x1,shift=16", "shifts right by 0 to 15"),
        ("conv2d:n=1,ci=16,h=4,w=4,co=16,k=1x1,clip=0:200", "interval of int8"),
        ("conv2d:n=1,ci=16,h=4,w=4,co=16,k=1x1,groups=3", "3 groups do not divide"),
        ("conv2d:n=99999999999,ci=16,h=8,w=8,co=16,k=3x3", "input has 102,399,999,998,976 elements; a VTA can address"),
        ("conv2d:n=1,ci=16,h=1,w=1,co=16,k=1x1,p=99999x99999", "output has 639,993,600,016 elements"),
        ("dense:n=1,ci=99999,co=99999", "weight has 9,999,800,001 elements"),
        ("conv2d:n=1,ci=16,h=4,w=4,co=16,k=1x1,bias=2", "cannot read 'bias=2'"),
    ],
)
def test_an_unreadable_file_gets_one_clear_line(text: str, message: str) -> None:
    with pytest.raises(WorkloadError, match=message) as raised:
        load_workload(text)
    assert "\n" not in str(raised.value)


def test_other_operators_and_fields_are_refused() -> None:
    with pytest.raises(WorkloadError, match="operator 'dense'"):
        Conv2d.from_dict({"operator": "dense"})
    with pytest.raises(WorkloadError, match="not a workload"):
        Conv2d.from_dict({"colour": 1})


PLAIN = Conv2d("w", 2, 32, 9, 8, 48, (3, 2), (2, 1), (1, 0), groups=2, bias=True, padding_end=(2, 3))


def test_sizes_of_an_uneven_convolution() -> None:
    assert PLAIN.pad_end == (2, 3) and replace(PLAIN, padding_end=None).pad_end == (1, 0)
    assert PLAIN.output_shape == (2, 48, (9 + 3 - 3) // 2 + 1, 8 + 3 - 2 + 1) == (2, 48, 5, 10)
    assert PLAIN.macs == 2 * 48 * 5 * 10 * 16 * 6
    assert replace(PLAIN, padding_end=(1, 0)).padding_end is None and replace(PLAIN, padding_end=(1, 0)) == replace(
        PLAIN, padding_end=None
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(({field: 0}, f"{field} is 0; it must be at least 1") for field in (
            "batch", "in_channels", "height", "width", "out_channels", "groups",
        )),
        ({"kernel": (0, 1)}, "kernel and stride of height must be at least 1"),
        ({"stride": (1, 0)}, "kernel and stride of width must be at least 1"),
        ({"input_dilation": (1, 0)}, "input dilation of width is 0; it must be at least 1"),
        ({"input_dilation": (0, 1)}, "input dilation of height is 0"),
        ({"padding": (0, -1)}, "padding of width is -1; it must be at least 0"),
        ({"padding_end": (-1, 0)}, "padding of height is 1"),
        ({"kernel": (13, 2)}, "the kernel's height 13 exceeds the padded input's"),
        ({"kernel": (3, 12)}, "the kernel's width 12 exceeds the padded input's"),
        ({"dilation": (1, 0)}, "dilation of width is 0; it must be at least 1"),
        ({"dilation": (6, 1)}, "the kernel's height 13 exceeds the padded input's"),
        ({"groups": 3}, "3 groups do not divide 32 and 48 channels"),
        ({"in_channels": 33}, "2 groups do not divide 33 and 48 channels"),
        ({"out_channels": 33}, "2 groups do not divide 32 and 33 channels"),
        ({"shift": -1}, "shift is -1; VTA shifts right by 0 to 15"),
        ({"shift": 16}, "shift is 16"),
        ({"clip": (-129, 0)}, "clip is -129:0"),
        ({"clip": (0, 128)}, "clip is 0:128"),
        ({"clip": (1, 0)}, "clip is 1:0"),
        ({"epilogue": "skips"}, "epilogue 'skips' is none of bias, low_bias, product_bias, skip, shifted_skip"),
        ({"epilogue": "skip", "bias": False}, "epilogue skip needs bias=1"),
        ({"epilogue": "low_bias", "shift": 0}, "epilogue low_bias needs a shift of at least 1"),
        ({"batch": 1 << 24, "kernel": (1, 1), "stride": (9, 9)}, r"its input has 38,654,705,664 elements; a VTA can"),
    ],
)  # fmt: skip
def test_shapes_that_make_no_convolution_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError, match=f"^workload w: .*{message}"):
        replace(PLAIN, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"kernel": (12, 11), "stride": (1, 1)},
        {"dilation": (5, 10)},
        {"shift": 0},
        {"shift": 15},
        {"clip": (-128, 127)},
        {"clip": (5, 5)},
        {"epilogue": "low_bias", "shift": 1},
        {"epilogue": "bias", "shift": 0},
        {"batch": 1, "in_channels": 1 << 15, "height": 256, "width": 256, "out_channels": 2, "groups": 1},
    ],
)
def test_the_limits_are_in(changes: dict[str, Any]) -> None:
    assert replace(PLAIN, **changes) != PLAIN


@pytest.mark.parametrize(
    ("channels", "groups", "apart"),
    [
        ((32, 32), 2, 2), ((32, 32), 4, 2), ((32, 64), 4, 2), ((96, 96), 6, 6), ((96, 96), 12, 6),
        ((48, 96), 3, 3), ((32, 16), 2, 1), ((8, 8), 8, 1), ((8, 8), 1, 1),
    ],
)  # fmt: skip
def test_groups_of_whole_blocks_are_computed_apart(channels: tuple[int, int], groups: int, apart: int) -> None:
    layer = replace(PLAIN, in_channels=channels[0], out_channels=channels[1], groups=groups)
    assert layer.block_groups(16) == apart


def test_the_forms_of_a_network_have_skips_and_products() -> None:
    forms = {epilogue: replace(PLAIN, epilogue=epilogue) for epilogue in EPILOGUES}
    skips = ["skip", "shifted_skip", "product_skip", "product_shifted_skip"]
    assert [name for name, form in forms.items() if form.has_skip] == skips
    products = ["product_bias", "product_skip", "product_shifted_skip"]
    assert [name for name, form in forms.items() if form.multiplies_bias] == products
    assert all(form.plain == PLAIN for form in forms.values()) and PLAIN.plain is PLAIN
    assert not PLAIN.has_skip and not PLAIN.multiplies_bias


def test_fields_that_affect_no_schedule_are_left_out_of_the_shape() -> None:
    other = replace(PLAIN, name="other", bias=False, shift=3, clip=(-5, 5))
    assert other.schedule_shape == PLAIN.schedule_shape == replace(PLAIN, name="", clip=(0, 127))
    assert replace(PLAIN, groups=1).schedule_shape != PLAIN.schedule_shape
    assert (PLAIN.schedule_shape.shift, PLAIN.schedule_shape.bias) == (8, True)


def test_records_of_older_versions_are_read() -> None:
    values = PLAIN.to_dict()
    assert values["kernel"] == [3, 2] and "epilogue" not in values and values["operator"] == "conv2d"
    older = {"padding_behind" if field == "padding_end" else field: value for field, value in values.items()}
    older["stretch"] = older.pop("input_dilation")
    assert Conv2d.from_dict(older) == PLAIN


DENSE = Conv2d("d", 4, 32, 1, 1, 16, (1, 1))


@pytest.mark.parametrize(
    "changes",
    [
        {"height": 2}, {"width": 2}, {"padding": (1, 0)}, {"padding": (0, 1)}, {"padding_end": (0, 1)},
        {"input_dilation": (2, 1)}, {"stride": (1, 2)}, {"height": 2, "kernel": (2, 1)},
    ],
)  # fmt: skip
def test_a_dense_layer_is_of_one_pixel(changes: dict[str, Any]) -> None:
    assert is_dense(DENSE) and not is_dense(replace(DENSE, **changes))
