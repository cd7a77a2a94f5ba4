"""The verdict on whole spaces, against lowering configurations one by one and against TVM's rules."""

import numpy as np
import pytest

from hilt.schedule import ConfigurationError, Reason, Rejected, load_workload, lower, space_for, verdicts
from hilt.vta.accelerator import Accelerator
from tests.unit.schedule.cases import BATCHED, PYNQ, RESNET18, ZCU102, describe


@pytest.mark.slow
@pytest.mark.parametrize("level", ["compiler", "strict"])
@pytest.mark.parametrize("accelerator", [PYNQ, ZCU102], ids=["pynq", "zcu102"])
def test_a_verdict_agrees_with_lowering(accelerator: Accelerator, level: str) -> None:
    generator = np.random.default_rng(7)
    for name in RESNET18:
        workload = load_workload(name)
        space = space_for(workload, accelerator)
        indices = space.sample(25, generator)
        for index, verdict in zip(indices, verdicts(workload, accelerator, space.columns(indices), level), strict=True):
            knobs = space.knobs_at(int(index))
            try:
                lower(workload, knobs, accelerator, level)
                said = Reason.OK.text
            except Rejected as rejected:
                said = rejected.reason
            assert said == Reason(verdict).text, f"{name} {describe(knobs)}"


def test_more_is_accepted_than_tvm_accepts() -> None:
    """TVM_FACTS section 1: TVM v0.9 compiles 1,995 of the 13,760."""
    compiled_by_tvm = dict(zip(RESNET18, (290, 217, 385, 226, 147, 363, 147, 44, 132, 44), strict=True))
    total = 0
    for name in RESNET18:
        workload = load_workload(name)
        space = space_for(workload, PYNQ)
        good = int(np.sum(verdicts(workload, PYNQ, space.columns(np.arange(len(space)))) == 0))
        assert good > 2 * compiled_by_tvm[name]
        total += good
    assert total == 9137


@pytest.mark.parametrize(
    ("changes", "reason", "detail"),
    [
        ({"tile_co": 4, "oc_nthread": 2}, "thread_split", "so many virtual threads"),
        ({"tile_h": 56, "tile_w": 56}, "inp_overflow", "needs 3364 elements of input, the buffer holds 2048"),
        ({"tile_h": 14, "tile_w": 56, "tile_co": 4}, "acc_overflow", "needs 3136 accumulator elements, there are 2048"),
    ],
)
def test_a_rejection_says_why_in_numbers(changes: dict[str, int], reason: str, detail: str) -> None:
    plain = {"tile_b": 1, "tile_h": 7, "tile_w": 7, "tile_ci": 1, "tile_co": 1, "oc_nthread": 1, "h_nthread": 1}
    with pytest.raises(Rejected, match=detail) as raised:
        lower(load_workload("resnet18.C2"), {**plain, **changes}, PYNQ)
    assert raised.value.reason == reason


def test_weights_beyond_their_buffer_are_rejected() -> None:
    knobs = {"tile_b": 1, "tile_h": 1, "tile_w": 1, "tile_ci": 32, "tile_co": 4}
    with pytest.raises(Rejected) as raised:
        lower(load_workload("resnet18.C11"), {**knobs, "oc_nthread": 1, "h_nthread": 1}, PYNQ)
    assert raised.value.reason == "wgt_overflow"
    assert raised.value.detail == "needs 1152 elements of weights, the buffer holds 1024"


def test_pads_beyond_their_field_are_rejected_by_field() -> None:
    workload = load_workload("conv2d:n=1,ci=16,h=4,w=4,co=16,k=33x3,p=16x1")
    knobs = {"tile_b": 1, "tile_h": 1, "tile_w": 1, "tile_ci": 1, "tile_co": 1, "oc_nthread": 1, "h_nthread": 1}
    with pytest.raises(Rejected) as raised:
        lower(workload, knobs, PYNQ)
    assert raised.value.reason == "field_overflow:y_pad_0"


def test_lost_sums_are_rejected_by_strict_only() -> None:
    knobs = {"tile_b": 1, "tile_h": 1, "tile_w": 1, "tile_ci": 4, "tile_co": 1, "oc_nthread": 1, "h_nthread": 1}
    workload = load_workload("resnet18.C2")
    lower(workload, knobs, PYNQ)
    with pytest.raises(Rejected) as raised:
        lower(workload, knobs, PYNQ, "strict")
    assert raised.value.reason == "acc_hazard"


def test_a_wrong_index_is_an_error_of_the_caller() -> None:
    knobs = {"tile_b": 1, "tile_h": 9, "tile_w": 1, "tile_ci": 4, "tile_co": 1, "oc_nthread": 1, "h_nthread": 1}
    workload = load_workload("resnet18.C2")
    with pytest.raises(ConfigurationError, match="tile_h is 9, which does not divide 56"):
        lower(workload, knobs, PYNQ)
    with pytest.raises(ConfigurationError, match="has no h_nthread"):
        lower(workload, {name: 1 for name in knobs if name != "h_nthread"}, PYNQ)
    with pytest.raises(ValueError, match="check level 'lax'"):
        verdicts(workload, BATCHED, {name: [1] for name in knobs}, "lax")  # type: ignore[arg-type]
