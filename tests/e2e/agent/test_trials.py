"""Every outcome that a board can see, through pynq's own Bitstream, MMIO and allocate; then a trial that is right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from hilt_board.protocol import AgentFailure, Input, Measure, Measured, Relocation
from tests.e2e.agent.client import Client
from tests.e2e.agent.conftest import Hardware, connected, load, make_hardware, running_agent
from tests.e2e.agent.programs import ELEMENTS, MANY, Prepared, add_constant, sha256


@dataclass
class Bench:
    """A programmed board, and trials for it that all have keys of their own."""

    client: Client
    hardware: Hardware
    keys: Iterator[str] = field(default_factory=lambda: (f"run/{number}/0" for number in count(1)))

    def make(self, **settings: Any) -> Prepared:
        return add_constant(self.hardware.accelerator, self.hardware.bitstream, next(self.keys), **settings)

    def measure(self, **settings: Any) -> Measured:
        return self.client.measure(self.make(**settings))


@pytest.fixture(scope="module", params=["golden", "rtl"])
def bench(request: pytest.FixtureRequest, board_model: Path) -> Iterator[Bench]:
    hardware = make_hardware(request.param)
    with running_agent(board_model) as agent, connected(agent) as session:
        yield Bench(load(session, hardware), hardware)


def assert_well(measured: Measured) -> None:
    assert (measured.outcome, measured.reason) == ("ok", "")
    assert measured.verification is not None and measured.verification.mismatched == 0
    assert measured.verification.compared == ELEMENTS * 16
    assert all(cycles > 0 for cycles in measured.cycles)
    assert measured.microseconds == tuple(cycles / 100 for cycles in measured.cycles)


def test_ok_is_verified_and_timed(bench: Bench) -> None:
    measured = bench.measure(number=2, repeat=3)
    assert_well(measured)
    assert len(measured.cycles) == 3 and len(set(measured.cycles)) == 1
    assert measured.canary is None and measured.worker_restarts == 0


def test_new_tensors_and_sizes_follow_each_other(bench: Bench) -> None:
    for number, elements in enumerate((64, 1, 500, 64), start=1):
        measured = bench.measure(seed=number, elements=elements)
        assert measured.outcome == "ok", measured
        assert measured.verification.compared == elements * 16


def test_one_falsified_item_is_a_wrong_answer(bench: Bench) -> None:
    measured = bench.measure(corrupt_item=777)
    assert measured.outcome == "wrong_answer"
    verification = measured.verification
    assert verification is not None
    assert (verification.compared, verification.mismatched, verification.first) == (ELEMENTS * 16, 1, 777)
    assert verification.largest_error in (5, 251)  # 5 modulo 256
    assert measured.cycles == ()
    assert_well(bench.measure())


def test_an_output_that_is_not_written_differs_in_every_item(bench: Bench) -> None:
    # The output of the trial before equals the expected one: only filling it in between tells the two apart.
    assert_well(bench.measure())
    silent = bench.make()
    finish = bytes([3]) + bytes(15)
    code = finish + silent.code[16:]
    measured = bench.client.ask(Measure(silent.trial, code), Measured)
    assert measured.outcome == "wrong_answer"
    assert measured.verification is not None and measured.verification.mismatched == ELEMENTS * 16


def test_a_token_that_never_comes_is_a_timeout(bench: Bench) -> None:
    measured = bench.measure(lose_token=True)
    assert measured.outcome == "timeout"
    assert "no FINISH" in measured.reason
    assert (measured.canary, measured.worker_restarts) == (True, 0)
    assert_well(bench.measure())


def test_the_limit_counts_cycles_of_the_device(bench: Bench) -> None:
    rounds = {"rounds": MANY, "elements": 1}
    long_enough = bench.measure(limit_seconds=0.01, **rounds)
    assert long_enough.outcome == "ok"
    cycles = long_enough.cycles[0]
    assert cycles > 10_000
    limit = 0.9 * cycles / 100e6
    measured = bench.measure(limit_seconds=limit, **rounds)
    assert (measured.outcome, measured.canary) == ("timeout", True)
    assert measured.reason == f"no FINISH within {int(limit * 100e6)} cycles"
    assert_well(bench.measure())


def test_an_index_past_its_buffer_is_a_crash_with_its_place(bench: Bench) -> None:
    measured = bench.measure(uop_end=MANY)
    assert measured.outcome == "crash"
    assert measured.reason == "micro-op index 8192 is past its buffer"
    assert measured.canary is True
    assert_well(bench.measure())


def test_a_store_outside_the_buffers_is_refused_and_nothing_runs(bench: Bench) -> None:
    stray = bench.make(relocate_output=False)
    bench.client.put(stray.blobs)
    refused = bench.client.ask(Measure(stray.trial, stray.code), AgentFailure)
    assert refused.code == "program_invalid"
    assert "instruction 3 (STORE of OUT) covers bytes 0x0 to 0x400" in refused.message
    # One row more than the output has: the first bytes are its own, the last are not.
    longer = bench.make()
    words = bytearray(longer.code)
    words[3 * 16 + 8] = 2  # y_size of the STORE
    assert bench.client.refused(Measure(replace(longer.trial, key=next(bench.keys)), bytes(words))) == "program_invalid"
    assert_well(bench.measure())


def test_inputs_that_a_program_overwrote_are_restored(bench: Bench) -> None:
    first = bench.make()
    assert_well(bench.client.measure(first))
    # The same program, its store relocated to the input: it overwrites the tensor that the next trial shares.
    trial = first.trial
    alias = Input("alias", "acc", trial.inputs[0].sha256, trial.inputs[0].bytes, trial.output.element_bytes)
    relocations = (*trial.relocations[:2], Relocation("alias", 1))
    spoiler = replace(trial, key=next(bench.keys), inputs=(*trial.inputs, alias), relocations=relocations)
    assert bench.client.ask(Measure(spoiler, first.code), Measured).outcome == "wrong_answer"
    assert_well(bench.measure())


def test_a_program_that_does_not_fit_its_trial_is_refused(bench: Bench) -> None:
    prepared = bench.make()
    bench.client.put(prepared.blobs)
    beyond = prepared.code[:-4] + (5).to_bytes(4, "little")
    assert bench.client.refused(Measure(prepared.trial, beyond)) == "program_invalid"
    twice = prepared.code[:-4] + (1).to_bytes(4, "little")
    assert bench.client.refused(Measure(prepared.trial, twice)) == "program_invalid"
    assert_well(bench.client.measure(prepared))


def test_tensors_beyond_contiguous_memory_are_refused_by_name(bench: Bench) -> None:
    prepared = bench.make()
    large = bytes(20 << 20)  # the board has 16 MiB
    huge = Input("huge", "inp", sha256(large), len(large), 16)
    trial = replace(prepared.trial, inputs=(*prepared.trial.inputs, huge))
    bench.client.put({**prepared.blobs, sha256(large): large})
    assert bench.client.refused(Measure(trial, prepared.code)) == "out_of_memory"
    assert_well(bench.client.measure(prepared))


def test_tensors_that_no_longer_fit_make_room(bench: Bench) -> None:
    for number in range(1, 5):  # 6 MiB each beside the others
        extra = bytes([number]) * (6 << 20)
        prepared = bench.make(seed=number)
        more = Input("more", "inp", sha256(extra), len(extra), 16)
        trial = replace(prepared.trial, inputs=(*prepared.trial.inputs, more))
        bench.client.put({**prepared.blobs, sha256(extra): extra})
        assert_well(bench.client.ask(Measure(trial, prepared.code), Measured))


@pytest.mark.parametrize("parameters", ["pynq_batched", "zcu102"])
def test_other_parameters_and_the_wide_isa(client: Client, parameters: str) -> None:
    hardware = make_hardware("golden", parameters)
    bench = Bench(load(client, hardware), hardware)
    assert bench.measure().outcome == "ok"
    assert bench.measure(lose_token=True).outcome == "timeout"
    assert bench.measure().outcome == "ok"
