"""Requests become trials of the protocol, replies become results: nothing is lost and nothing invented on the way."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from hilt.measure import trial_encoding
from hilt.measure.trial_encoding import WireBlobs, result_of, ship
from hilt.trial import Outcome, Verification
from hilt.vta.accelerator import Accelerator, load_parameters
from hilt_board.protocol import Measured, MessageError, WireVerification
from tests.e2e.small_programs import dot_product

BITSTREAM = "b" * 64


@pytest.mark.parametrize("parameters", ["pynq", "pynq_batched", "zcu102"])
def test_a_trial_holds_the_whole_program(parameters: str) -> None:
    accelerator = Accelerator.for_parameters(load_parameters(parameters))
    request = replace(dot_product(accelerator, 3, rounds=9, run="r"), number=2, repeat=4)
    program, tensors = request.program, request.tensors
    shipment = ship(request, WireBlobs().digests(tensors), BITSTREAM)
    trial = shipment.trial
    assert (trial.key, trial.bitstream, trial.number, trial.repeat) == ("r/3/0", BITSTREAM, 2, 4)
    assert trial.instruction_bytes == accelerator.instruction_bytes
    assert trial.uop_bytes == accelerator.uop_element_bytes
    assert len(shipment.code) == trial.code_bytes

    at_uops = program.instructions.nbytes
    at_indices = at_uops + program.uops.nbytes
    np.testing.assert_array_equal(np.frombuffer(shipment.code[:at_uops], "<u8"), program.instructions.ravel())
    np.testing.assert_array_equal(np.frombuffer(shipment.code[at_uops:at_indices], "<u4"), program.uops.ravel())
    indices = np.frombuffer(shipment.code[at_indices:], "<u4")
    for relocation in trial.relocations:
        mine, indices = indices[: relocation.count], indices[relocation.count :]
        np.testing.assert_array_equal(mine, program.buffer(relocation.buffer).instructions)
    assert indices.size == 0
    assert [each.name for each in trial.inputs] == ["inp", "wgt"]
    assert [each.memory for each in trial.inputs] == ["inp", "wgt"]
    assert trial.output.item == "int8"


def test_blobs_are_the_bytes_of_tensors_of_any_strides() -> None:
    accelerator = Accelerator.for_parameters(load_parameters("pynq"))
    tensors = dot_product(accelerator, 0).tensors
    blobs = WireBlobs()
    plain = blobs.digests(tensors)
    strided = replace(tensors, inputs={**tensors.inputs, "wgt": np.asfortranarray(tensors.inputs["wgt"])})
    assert WireBlobs().digests(strided) == plain
    assert plain["wgt"] == hashlib.sha256(tensors.inputs["wgt"].tobytes()).hexdigest()
    assert blobs.contents(plain["out"]) == tensors.expected.tobytes()


def test_code_that_no_frame_holds_is_refused_before_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instructions and micro-ops may have 32 MiB each, and their relocations come on top."""
    request = dot_product(Accelerator.for_parameters(load_parameters("pynq")), 0)
    digests = WireBlobs().digests(request.tensors)
    size = len(ship(request, digests, BITSTREAM).code)
    monkeypatch.setattr(trial_encoding, "MAX_BODY_BYTES", size)
    ship(request, digests, BITSTREAM)
    monkeypatch.setattr(trial_encoding, "MAX_BODY_BYTES", size - 1)
    with pytest.raises(MessageError, match=f"code of {size} bytes; a frame holds {size - 1}"):
        ship(request, digests, BITSTREAM)


def test_programs_and_tensors_that_do_not_fit_are_named() -> None:
    accelerator = Accelerator.for_parameters(load_parameters("pynq"))
    request = dot_product(accelerator, 0)
    short = replace(request.tensors, inputs={**request.tensors.inputs, "inp": np.zeros(3, np.int8)})
    with pytest.raises(ValueError, match="buffer inp has 16 bytes, its tensor 3"):
        ship(replace(request, tensors=short), WireBlobs().digests(short), BITSTREAM)


def test_figures_are_medians_and_only_of_ok() -> None:
    verification = WireVerification(compared=8, mismatched=0)
    measured = Measured(
        "r/1/0",
        "ok",
        cycles=(30.0, 10.0, 20.5),
        microseconds=(0.3, 0.1, 0.2),
        verification=verification,
        seconds={"run": 1.0},
    )
    result = result_of(measured, "desk", {"send": 2.0})
    assert (result.outcome, result.cycles, result.microseconds) == (Outcome.OK, 20, 0.2)
    assert result.repeats == (0.3, 0.1, 0.2)
    assert result.verification == Verification(compared=8, mismatched=0)
    assert result.board == "desk"
    assert result.seconds == {"run": 1.0, "send": 2.0}

    failed = result_of(replace(measured, outcome="timeout", reason="late", verification=None), "desk", {})
    assert (failed.outcome, failed.reason) == (Outcome.TIMEOUT, "late")
    assert failed.cycles is failed.microseconds is failed.verification is None
