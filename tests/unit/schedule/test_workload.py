import json

import pytest

from hilt.schedule import Conv2d, WorkloadError, load_workload, workload_names


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
