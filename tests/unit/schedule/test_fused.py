"""Forms of compiled networks: right on the golden model, rejected where they do not fit, kept by text and records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hilt.schedule import Conv2d, Rejected, WorkloadError, bound_cycles, load_convolution, lower, make_tensors, verdicts
from hilt.schedule import space_for as space_of
from hilt.schedule.reasons import Reason
from hilt.schedule.workload import EPILOGUES
from hilt.schedule.workload_syntax import format_workload
from hilt.simulator.build import build
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program
from hilt.tune.problem import TuningProblem
from hilt.vta.accelerator import Accelerator
from hilt.vta.parameters import VTAParameters
from hilt_board.protocol.fields import is_name

PARAMETERS = ("1x16_i8w8a32_15_15_18_17", "1x8_i8w8a32_12_13_14_15", "4x8_i8w8a32_15_16_16_18")
LAYER = Conv2d("", 3, 24, 10, 9, 40, (3, 3), padding=(1, 1), bias=True)
SAMPLES = 8


pytestmark = pytest.mark.slow  # runs programs on the golden model


def of(parameters: str) -> Accelerator:
    return Accelerator.for_parameters(VTAParameters.from_name(parameters))


def sample(workload: Conv2d, accelerator: Accelerator, count: int = SAMPLES) -> list[dict[str, int]]:
    space = space_of(workload, accelerator, orders=4)
    chosen = np.random.default_rng(3).choice(len(space), count, replace=False)
    return [dict(space.knobs_at(int(index))) for index in chosen]


@pytest.mark.parametrize("epilogue", EPILOGUES)
@pytest.mark.parametrize("parameters", PARAMETERS)
def test_every_output_element_is_right(epilogue: str, parameters: str) -> None:
    accelerator = of(parameters)
    workload = replace(LAYER, epilogue=epilogue)
    tensors = make_tensors(workload, accelerator, seed=2)
    for name in tensors.inputs:
        is_name(name, "a name that an agent takes")
    library = build(accelerator, "golden")
    ran = 0
    for knobs in sample(workload, accelerator):
        try:
            program = lower(workload, knobs, accelerator)
        except Rejected:
            continue
        run = run_program(library, program, tensors.inputs, max_cycles=1 << 40)
        assert run.execution.status is DeviceStatus.DONE, knobs
        assert np.array_equal(run.output, tensors.expected.ravel()), knobs
        ran += 1
    assert ran >= 2


@pytest.mark.parametrize("epilogue", EPILOGUES[2:])
@pytest.mark.parametrize("parameters", PARAMETERS)
def test_the_verdict_knows_what_a_skip_takes(epilogue: str, parameters: str) -> None:
    accelerator = of(parameters)
    workload = Conv2d("", 1, 64, 12, 12, 64, (3, 3), padding=(1, 1), bias=True, epilogue=epilogue)
    samples = sample(workload, accelerator, 30)
    columns = {name: [knobs[name] for knobs in samples] for name in samples[0]}
    found = verdicts(workload, accelerator, columns)
    plain = verdicts(workload.plain, accelerator, columns)
    assert (found[plain != Reason.OK] != Reason.OK).all()
    for knobs, verdict in zip(samples, found.tolist(), strict=True):
        if verdict == Reason.OK:
            lower(workload, knobs, accelerator)  # raises Rejected if the skip does not fit
        else:
            with pytest.raises(Rejected, match=Reason(verdict).text):
                lower(workload, knobs, accelerator)


def test_a_tile_that_fills_the_input_buffer_leaves_no_room_for_a_skip() -> None:
    accelerator = of(PARAMETERS[0])
    workload = Conv2d("", 1, 128, 14, 14, 16, (1, 1), bias=True)
    knobs = {"tile_b": 1, "tile_h": 14, "tile_w": 14, "tile_ci": 8, "tile_co": 1, "oc_nthread": 1, "h_nthread": 1}
    lower(workload, knobs, accelerator)
    wide = replace(workload, in_channels=16 * 10)
    full = {**knobs, "tile_ci": 10}
    lower(replace(wide, epilogue="bias"), full, accelerator)
    with pytest.raises(Rejected, match="inp_overflow: needs 2156 elements of input, the buffer holds 2048"):
        lower(replace(wide, epilogue="skip"), full, accelerator)


def test_a_lowered_bias_takes_fewer_resets() -> None:
    accelerator = of(PARAMETERS[1])
    knobs = {"tile_b": 1, "tile_h": 5, "tile_w": 9, "tile_ci": 1, "tile_co": 1, "oc_nthread": 1, "h_nthread": 1}
    lengths = {
        epilogue: len(lower(replace(LAYER, epilogue=epilogue), knobs, accelerator).instructions)
        for epilogue in ("bias", "low_bias")
    }
    tiles = 3 * 2 * 5
    assert lengths["bias"] - lengths["low_bias"] == tiles - 1


@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_text_and_record_keep_the_form(epilogue: str) -> None:
    workload = replace(load_convolution("resnet18.C2"), name="", bias=True, epilogue=epilogue)
    again = load_convolution(format_workload(workload))
    assert replace(again, name="") == workload
    assert Conv2d.from_dict(workload.to_dict()) == workload
    assert workload.schedule_shape.epilogue == epilogue


def test_the_record_of_a_plain_workload_is_that_of_older_stores() -> None:
    assert "epilogue" not in load_convolution("resnet18.C2").to_dict()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epilogue": "gelu"}, "epilogue 'gelu' is none of bias, low_bias, product_bias, skip"),
        ({"epilogue": "skip", "bias": False}, "epilogue skip needs bias=1"),
        ({"epilogue": "low_bias", "shift": 0}, "needs a shift of at least 1"),
    ],
)
def test_a_form_that_cannot_be_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        replace(LAYER, **change)  # type: ignore[arg-type]


def test_the_bound_counts_the_skip() -> None:
    accelerator = of(PARAMETERS[1])
    plain = Conv2d("", 1, 64, 8, 8, 64, (3, 3), padding=(1, 1), bias=True)
    outputs = 8 * 8 * 8
    assert bound_cycles(replace(plain, epilogue="skip"), accelerator) - bound_cycles(plain, accelerator) == outputs


def test_a_tuner_predicts_by_the_plain_form() -> None:
    accelerator = of(PARAMETERS[1])
    workload = replace(LAYER, epilogue="skip")
    problem = TuningProblem.of(workload, accelerator, orders=4)
    plain = TuningProblem.of(workload.plain, accelerator, orders=4)
    valid = np.flatnonzero(problem.compiles)[:8]
    assert set(valid) <= set(np.flatnonzero(plain.compiles))
    assert [program and program.sha256 for program in problem.lowered_many(valid)] == [
        program and program.sha256 for program in plain.lowered_many(valid)
    ]
