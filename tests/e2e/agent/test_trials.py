"""Every outcome that a board can see, through pynq's own Bitstream, MMIO and allocate; then a trial that is right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hilt_board.protocol import Input, Measure, Measured, Relocation
from tests.e2e.agent.client import Client
from tests.e2e.agent.conftest import Hardware, make_hardware
from tests.e2e.agent.programs import ELEMENTS, MANY, Prepared, add_constant, sha256


def make(hardware: Hardware, key: str, **settings: Any) -> Prepared:
    return add_constant(hardware.accelerator, hardware.bitstream, key, **settings)


def assert_well(measured: Measured) -> None:
    assert (measured.outcome, measured.reason) == ("ok", "")
    assert measured.comparison is not None and measured.comparison.mismatched == 0
    assert measured.comparison.compared == ELEMENTS * 16
    assert all(cycles > 0 for cycles in measured.cycles)
    assert measured.microseconds == tuple(cycles / 100 for cycles in measured.cycles)


def test_ok_is_verified_and_timed(board: Client, golden: Hardware) -> None:
    measured = board.measure(make(golden, "run/1/0", number=2, repeat=3))
    assert_well(measured)
    assert len(measured.cycles) == 3 and len(set(measured.cycles)) == 1
    assert measured.canary is None and measured.worker_restarts == 0


def test_new_tensors_and_sizes_follow_each_other(board: Client, golden: Hardware) -> None:
    for number, elements in enumerate((64, 1, 500, 64), start=1):
        measured = board.measure(make(golden, f"run/{number}/0", seed=number, elements=elements))
        assert measured.outcome == "ok", measured
        assert measured.comparison.compared == elements * 16


def test_one_falsified_item_is_a_wrong_answer(board: Client, golden: Hardware) -> None:
    measured = board.measure(make(golden, "run/1/0", corrupt_item=777))
    assert measured.outcome == "wrong_answer"
    comparison = measured.comparison
    assert comparison is not None
    assert (comparison.compared, comparison.mismatched, comparison.first) == (ELEMENTS * 16, 1, 777)
    assert comparison.largest_error in (5, 251)  # 5 modulo 256
    assert measured.cycles == ()
    assert_well(board.measure(make(golden, "run/2/0")))


def test_an_output_that_is_not_written_differs_in_every_item(board: Client, golden: Hardware) -> None:
    # The output of the trial before holds just what is expected: only filling it in between tells the two apart.
    assert_well(board.measure(make(golden, "run/1/0")))
    silent = make(golden, "run/2/0")
    finish = bytes([3]) + bytes(15)
    code = finish + silent.code[16:]
    measured = board.ask(Measure(silent.trial, code), Measured)
    assert measured.outcome == "wrong_answer"
    assert measured.comparison is not None and measured.comparison.mismatched == ELEMENTS * 16


def test_a_token_that_never_comes_is_a_timeout(board: Client, golden: Hardware) -> None:
    measured = board.measure(make(golden, "run/1/0", lose_token=True))
    assert measured.outcome == "timeout"
    assert "no FINISH" in measured.reason
    assert (measured.canary, measured.worker_restarts) == (True, 0)
    assert_well(board.measure(make(golden, "run/2/0")))


def test_the_limit_counts_cycles_of_the_device(board: Client, golden: Hardware) -> None:
    rounds = {"rounds": MANY, "elements": 1}
    long_enough = board.measure(make(golden, "run/1/0", limit_seconds=0.01, **rounds))
    assert long_enough.outcome == "ok"
    cycles = long_enough.cycles[0]
    assert cycles > 10_000
    limit = 0.9 * cycles / 100e6
    measured = board.measure(make(golden, "run/2/0", limit_seconds=limit, **rounds))
    assert (measured.outcome, measured.canary) == ("timeout", True)
    assert measured.reason == f"no FINISH within {int(limit * 100e6)} cycles"
    assert_well(board.measure(make(golden, "run/3/0")))


def test_an_index_past_its_buffer_is_a_crash_with_its_place(board: Client, golden: Hardware) -> None:
    measured = board.measure(make(golden, "run/1/0", uop_end=MANY))
    assert measured.outcome == "crash"
    assert measured.reason == "micro-op index 8192 is past its buffer"
    assert measured.canary is True
    assert_well(board.measure(make(golden, "run/2/0")))


def test_an_address_without_memory_is_a_bus_error(board: Client, golden: Hardware) -> None:
    measured = board.measure(make(golden, "run/1/0", relocate_output=False))
    assert measured.outcome == "bus_error"
    assert "DECERR" in measured.reason
    assert measured.canary is True
    assert_well(board.measure(make(golden, "run/2/0")))


def test_inputs_that_a_program_overwrote_are_restored(board: Client, golden: Hardware) -> None:
    first = make(golden, "run/1/0")
    assert_well(board.measure(first))
    # The same program, its store relocated to the input: it overwrites the tensor that the next trial shares.
    trial = first.trial
    alias = Input("alias", "acc", trial.inputs[0].sha256, trial.inputs[0].bytes, trial.output.element_bytes)
    relocations = (*trial.relocations[:2], Relocation("alias", 1))
    spoiler = replace(trial, key="run/2/0", inputs=(*trial.inputs, alias), relocations=relocations)
    assert board.ask(Measure(spoiler, first.code), Measured).outcome == "wrong_answer"
    assert_well(board.measure(make(golden, "run/3/0")))


def test_a_program_that_does_not_fit_its_trial_is_refused(board: Client, golden: Hardware) -> None:
    prepared = make(golden, "run/1/0")
    board.put(prepared.blobs)
    beyond = prepared.code[:-4] + (5).to_bytes(4, "little")
    assert board.refused(Measure(prepared.trial, beyond)) == "program_invalid"
    twice = prepared.code[:-4] + (1).to_bytes(4, "little")
    assert board.refused(Measure(prepared.trial, twice)) == "program_invalid"
    assert_well(board.measure(prepared))


def test_tensors_beyond_contiguous_memory_are_refused_by_name(board: Client, golden: Hardware) -> None:
    prepared = make(golden, "run/1/0")
    large = bytes(20 << 20)  # the board has 16 MiB
    huge = Input("huge", "inp", sha256(large), len(large), 16)
    trial = replace(prepared.trial, inputs=(*prepared.trial.inputs, huge))
    board.put({**prepared.blobs, sha256(large): large})
    assert board.refused(Measure(trial, prepared.code)) == "out_of_memory"
    assert_well(board.measure(prepared))


def test_tensors_that_no_longer_fit_make_room(board: Client, golden: Hardware) -> None:
    for number in range(1, 5):  # 6 MiB each beside the others
        extra = bytes([number]) * (6 << 20)
        prepared = make(golden, f"run/{number}/0", seed=number)
        more = Input("more", "inp", sha256(extra), len(extra), 16)
        trial = replace(prepared.trial, inputs=(*prepared.trial.inputs, more))
        board.put({**prepared.blobs, sha256(extra): extra})
        assert_well(board.ask(Measure(trial, prepared.code), Measured))


@pytest.mark.parametrize("parameters", ["pynq_batched", "zcu102"])
def test_other_parameters_and_the_wide_isa(client: Client, parameters: str) -> None:
    hardware = make_hardware("golden", parameters)
    client.put({hardware.bitstream: hardware.bitfile})
    client.program(hardware.program())
    assert client.measure(make(hardware, "run/1/0")).outcome == "ok"
    assert client.measure(make(hardware, "run/2/0", lose_token=True)).outcome == "timeout"
    assert client.measure(make(hardware, "run/3/0")).outcome == "ok"
