"""A trial in memory: the output is spoiled before it is compared, and each relocation is checked at its edges."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hilt_board.protocol import Input, Output, Relocation, TrialRequest

from .examples import MANIFEST as EXAMPLE

PLACE = 0x1680_0000
FINISH = 3
ITEMS = 16

MANIFEST = replace(EXAMPLE, isa="B")  # whose dram_base is at bit 26


class Buffer(np.ndarray):  # type: ignore[type-arg]
    physical_address = PLACE

    def flush(self) -> None:
        pass

    def invalidate(self) -> None:
        pass


class Accelerator:
    """A driver whose programs have the outcomes in `outcomes`, one after another; each gets the placed output."""

    counts_cycles = True
    manifest = MANIFEST

    def __init__(self, *outcomes: object) -> None:
        self.outcomes = list(outcomes)
        self.placed: Any = None
        self.ran = 0
        self.reloads = 0

    def run(self, instructions: Any, count: int, limit_seconds: float) -> SimpleNamespace:
        self.ran += 1
        act = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        outcome = act(self.placed) if callable(act) else act
        return SimpleNamespace(outcome=outcome or "ok", reason="why", cycles=100 + self.ran, seconds=1e-3 * self.ran)

    def reload(self) -> None:
        self.reloads += 1


def writes_right(placed: Any) -> None:
    placed.output[:] = placed.expected


def writes_nothing(placed: Any) -> None:
    pass


@pytest.fixture
def execution(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    pynq = ModuleType("pynq")
    pynq.__version__ = "3.0.1"  # type: ignore[attr-defined]
    pynq.allocate = lambda shape, dtype, cacheable: np.zeros(shape, dtype).view(Buffer)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pynq", pynq)
    yield importlib.import_module("hilt_board.execution")
    for name in ("execution", "memory", "driver"):
        del sys.modules[f"hilt_board.{name}"]


@pytest.fixture
def bench(execution: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a trial on an Accelerator that sees how it was placed."""
    memory = execution.ContiguousMemory(tmp_path)

    def run(accelerator: Accelerator, trial: TrialRequest, code: bytes) -> Any:
        class Seen(execution.Placed):  # type: ignore[name-defined, misc]
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                accelerator.placed = self

        monkeypatch.setattr(execution, "Placed", Seen)
        try:
            return execution.run_trial(trial, code, accelerator, memory)
        finally:
            monkeypatch.undo()

    return SimpleNamespace(run=run, memory=memory, folder=tmp_path)


def stored(folder: Path, data: bytes) -> str:
    name = hashlib.sha256(data).hexdigest()
    (folder / name).write_bytes(data)
    return name


def trial(folder: Path, **changes: Any) -> TrialRequest:
    inputs = (Input("inp", "inp", stored(folder, bytes(range(64))), 64, 16),)
    expected = stored(folder, bytes(range(100, 100 + ITEMS)))
    made = TrialRequest(
        key="run/1/0",
        bitstream="5e" * 32,
        instructions=2,
        instruction_bytes=16,
        uops=0,
        uop_bytes=4,
        inputs=inputs,
        output=Output("out", ITEMS, 16, expected, "int8"),
        relocations=(Relocation("inp", 1),),
        dram_base_bit=26,
        limit_seconds=0.5,
    )
    return replace(made, **changes)


def code(*words: tuple[int, int], indices: tuple[int, ...] = (0,)) -> bytes:
    return np.array(words, "<u8").tobytes() + np.array(indices, "<u4").tobytes()


LOAD = (0 | 2 << 7, 1 | 1 << 16)
"""A LOAD of one input element, from the start of its buffer."""
PROGRAM = code(LOAD, (FINISH, 0))


@pytest.fixture(autouse=True)
def any_bounds(execution: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "check_bounds", lambda *_: None)  # its own test: test_bounds.py


def test_a_program_that_writes_nothing_never_has_the_right_answer_of_the_one_before(bench: Any) -> None:
    right = bench.run(Accelerator(writes_right), trial(bench.folder), PROGRAM)
    assert right.outcome == "ok" and right.verification.mismatched == 0 and right.verification.compared == ITEMS
    idle = bench.run(Accelerator(writes_nothing), trial(bench.folder), PROGRAM)
    assert idle.outcome == "wrong_answer" and idle.verification.mismatched == ITEMS


def test_the_second_comparison_is_of_a_spoiled_output_too(bench: Any) -> None:
    def almost(placed: Any) -> None:
        placed.output[:] = placed.expected
        placed.output[3] ^= 1

    measured = bench.run(Accelerator(almost, writes_nothing), trial(bench.folder), PROGRAM)
    assert measured.outcome == "wrong_answer" and measured.verification.mismatched == ITEMS


def test_an_item_that_is_wrong_is_counted_placed_and_sized(bench: Any) -> None:
    def two_wrong(placed: Any) -> None:
        placed.output[:] = placed.expected
        placed.output[5] += 7
        placed.output[9] -= 2

    measured = bench.run(Accelerator(two_wrong), trial(bench.folder), PROGRAM)
    found = measured.verification
    assert (found.compared, found.mismatched, found.first, found.largest_error) == (ITEMS, 2, 5, 7)
    assert measured.reason == "2 of 16 items differ, the first at 5, by at most 7"


def test_figures_are_means_of_runs_and_the_verified_run_is_the_first(bench: Any) -> None:
    accelerator = Accelerator(writes_right)
    measured = bench.run(accelerator, trial(bench.folder, number=2, repeat=3), PROGRAM)
    assert accelerator.ran == 6
    assert measured.cycles == (101.5, 103.5, 105.5)
    assert measured.microseconds == pytest.approx([cycles * 1e6 / MANIFEST.clock_hz for cycles in measured.cycles])
    assert measured.wall_microseconds == pytest.approx([1500.0, 3500.0, 5500.0])


def test_a_later_run_that_fails_fails_the_trial(bench: Any) -> None:
    measured = bench.run(Accelerator(writes_right, "timeout"), trial(bench.folder, repeat=2), PROGRAM)
    assert measured.outcome == "timeout" and measured.reason == "verified, but failed in a later run: why"
    assert measured.cycles == ()


def test_a_first_run_that_fails_is_not_compared(bench: Any) -> None:
    measured = bench.run(Accelerator("crash"), trial(bench.folder), PROGRAM)
    assert (measured.outcome, measured.reason, measured.verification) == ("crash", "why", None)


@pytest.mark.parametrize(("index", "fits"), [(1, True), (2, False), (3, False)])
def test_a_relocation_is_of_an_instruction_that_there_is(
    bench: Any, execution: ModuleType, index: int, fits: bool
) -> None:
    relocated = code(LOAD, LOAD, indices=(index,))
    if fits:
        assert bench.run(Accelerator(writes_right), trial(bench.folder), relocated).outcome == "ok"
        return
    with pytest.raises(execution.InvalidProgramError, match=f"relocation of instruction {index}, the program has 2"):
        bench.run(Accelerator(writes_right), trial(bench.folder), relocated)


def test_an_instruction_is_relocated_once(bench: Any, execution: ModuleType) -> None:
    twice = trial(bench.folder, relocations=(Relocation("inp", 1), Relocation("out", 1)))
    with pytest.raises(execution.InvalidProgramError, match="relocated twice"):
        bench.run(Accelerator(writes_right), twice, code(LOAD, (FINISH, 0), indices=(0, 0)))


def dram_base(words: Any, bit: int) -> int:
    return int(words[0, 0]) >> bit & 0xFFFFFFFF


@pytest.mark.parametrize("bit", [25, 26, 32])
def test_a_place_is_added_in_elements_and_no_other_bit_changes(execution: ModuleType, bit: int) -> None:
    other = (1 << bit) - 1 | (0 if bit == 32 else -1 << bit + 32) & (1 << 64) - 1
    words = np.array([[other | 5 << bit, 7], [0, 0]], dtype=np.uint64)
    buffer = SimpleNamespace(physical_address=PLACE, nbytes=64)
    execution._relocate(words, np.array([0], np.uint32), bit, "inp", buffer, 16)
    assert dram_base(words, bit) == PLACE // 16 + 5
    assert int(words[0, 0]) & other == other and int(words[0, 1]) == 7 and not words[1].any()


@pytest.mark.parametrize(("base", "fits"), [(0xFFFFFFFF - PLACE // 16, True), (0x100000000 - PLACE // 16, False)])
def test_a_place_beyond_32_bits_is_refused(execution: ModuleType, base: int, fits: bool) -> None:
    words = np.array([[base << 26, 0]], dtype=np.uint64)
    buffer = SimpleNamespace(physical_address=PLACE, nbytes=64)
    chosen = np.array([0], np.uint32)
    if fits:
        execution._relocate(words, chosen, 26, "inp", buffer, 16)
        assert dram_base(words, 26) == 0xFFFFFFFF
        return
    with pytest.raises(execution.InvalidProgramError, match="dram_base in buffer inp passes 32 bits"):
        execution._relocate(words, chosen, 26, "inp", buffer, 16)


def test_a_buffer_that_is_not_aligned_to_its_elements_is_refused(execution: ModuleType) -> None:
    words = np.zeros((1, 2), dtype=np.uint64)
    buffer = SimpleNamespace(physical_address=PLACE + 8, nbytes=64)
    with pytest.raises(execution.InvalidProgramError, match="inp is not aligned to its 16-byte elements"):
        execution._relocate(words, np.array([0], np.uint32), 26, "inp", buffer, 16)


def test_an_output_is_a_whole_number_of_items(bench: Any, execution: ModuleType) -> None:
    output = Output("out", 18, 2, stored(bench.folder, bytes(18)), "int32")
    with pytest.raises(execution.InvalidProgramError, match="output of 18 bytes"):
        bench.run(Accelerator(writes_right), trial(bench.folder, output=output), PROGRAM)


def test_micro_ops_that_there_are_not_are_not_relocated(bench: Any, execution: ModuleType) -> None:
    wanted = trial(bench.folder, relocations=(Relocation("uop", 1),))
    with pytest.raises(execution.InvalidProgramError, match="relocations of micro-ops"):
        bench.run(Accelerator(writes_right), wanted, PROGRAM)


def test_micro_ops_are_placed_and_relocated_to_their_place(bench: Any, execution: ModuleType) -> None:
    def check(placed: Any) -> None:
        placed.output[:] = placed.expected
        loaded = np.asarray(placed.instructions).view("<u8").reshape(2, 2)
        assert dram_base(loaded, 26) == PLACE // 4
        micro_ops = bench.memory.scratch("micro-ops", 8)
        assert micro_ops.tobytes() == bytes(range(8))

    relocated = trial(bench.folder, uops=2, relocations=(Relocation("uop", 1),))
    program = np.array((LOAD, (FINISH, 0)), "<u8").tobytes() + bytes(range(8)) + np.array([0], "<u4").tobytes()
    assert bench.run(Accelerator(check), relocated, program).outcome == "ok"


def test_each_relocation_has_its_own_instructions(bench: Any) -> None:
    """The output's elements have 1 byte here and the input's 16, so that the places differ."""

    def check(placed: Any) -> None:
        placed.output[:] = placed.expected
        loaded = np.asarray(placed.instructions).view("<u8").reshape(3, 2)
        bases = [dram_base(loaded[number:], 26) for number in range(3)]
        assert bases == [PLACE // 16, PLACE, 0]

    output = replace(trial(bench.folder).output, element_bytes=1)
    wanted = trial(
        bench.folder, instructions=3, output=output, relocations=(Relocation("inp", 1), Relocation("out", 1))
    )
    ran = bench.run(Accelerator(check), wanted, code(LOAD, LOAD, (FINISH, 0), indices=(0, 1)))
    assert ran.outcome == "ok"


def test_a_program_that_leaves_its_buffers_is_not_run(
    bench: Any, execution: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def refuse(words: Any, machine: Any, ranges: Any) -> None:
        seen.extend(ranges)
        raise execution.ProgramCheckError("LOAD leaves inp")

    monkeypatch.setattr(execution, "check_bounds", refuse)
    accelerator = Accelerator(writes_right)
    with pytest.raises(execution.InvalidProgramError, match="LOAD leaves inp"):
        execution.run_trial(trial(bench.folder), PROGRAM, accelerator, bench.memory)
    assert accelerator.ran == 0
    assert seen == [("inp", PLACE, 64), ("out", PLACE, ITEMS)]


@pytest.mark.parametrize("changes", [{"dram_base_bit": 25}, {"uop_bytes": 8}])
def test_a_trial_of_another_isa_than_the_bitstreams_is_not_run(bench: Any, changes: dict[str, int]) -> None:
    """Its addresses would be checked at other bits than the accelerator reads."""
    accelerator = Accelerator(writes_right)
    with pytest.raises(Exception, match="the trial is encoded for another ISA than B"):
        bench.run(accelerator, trial(bench.folder, **changes), PROGRAM)
    assert accelerator.ran == 0


def test_a_tensor_of_an_earlier_trial_may_leave(bench: Any) -> None:
    bench.run(Accelerator(writes_right), trial(bench.folder), PROGRAM)
    name = stored(bench.folder, bytes(64))
    bench.run(Accelerator(writes_right), trial(bench.folder, inputs=(Input("inp", "inp", name, 64, 16),)), PROGRAM)
    assert bench.memory._in_use == {name}


def test_the_output_is_read_past_the_caches(bench: Any, execution: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The accelerator writes to memory; the processor sees it when the output was read back."""
    written: list[Any] = []

    def read_back(buffer: Any) -> None:
        buffer[:] = written[0]

    def behind_the_caches(placed: Any) -> None:
        written[:] = [placed.expected]

    monkeypatch.setattr(execution, "read_back", read_back)
    placed = execution.Placed(trial(bench.folder), PROGRAM, MANIFEST, bench.memory)
    placed.spoil_output()
    behind_the_caches(placed)
    assert placed.compare().mismatched == 0


@pytest.mark.parametrize(("counts", "reloads"), [(True, 0), (False, 2)])
def test_a_wrong_output_on_a_public_bitstream_costs_a_reload_before_and_after(
    bench: Any, counts: bool, reloads: int
) -> None:
    """Tokens that a program left behind: a soft reset removes them if there is one, else the bitstream is loaded."""
    accelerator = Accelerator(writes_nothing)
    accelerator.counts_cycles = counts
    clears: list[int] = []
    clear = bench.memory.clear
    bench.memory.clear = lambda: clears.append(1) or clear()
    assert bench.run(accelerator, trial(bench.folder), PROGRAM).outcome == "wrong_answer"
    assert (accelerator.ran, accelerator.reloads, len(clears)) == (2, reloads, reloads)


def test_overwritten_inputs_are_restored_before_the_second_comparison(bench: Any) -> None:
    def spoils_input(placed: Any) -> None:
        placed.inputs["inp"][:] = 0

    def right_on_clean_inputs(placed: Any) -> None:
        assert placed.inputs["inp"].tobytes() == bytes(range(64))
        placed.output[:] = placed.expected

    assert bench.run(Accelerator(spoils_input, right_on_clean_inputs), trial(bench.folder), PROGRAM).outcome == "ok"


def test_each_step_has_its_seconds(bench: Any, execution: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that a look at it moves by a second: each step holds the seconds since the last one ended."""
    seconds = iter(range(100))
    monkeypatch.setattr(execution, "time", SimpleNamespace(perf_counter=lambda: float(next(seconds))))
    measured = bench.run(Accelerator(writes_right), trial(bench.folder), PROGRAM)
    assert measured.seconds == {"load": 1.0, "run": 1.0, "verify": 1.0, "time": 1.0}


@pytest.mark.parametrize(("isa", "size"), [("A", 16), ("B", 16), ("wide", 32)])
def test_the_smallest_program_is_one_finish(bench: Any, execution: ModuleType, isa: str, size: int) -> None:
    ran: list[tuple[bytes, int, float]] = []

    def run(instructions: Any, count: int, limit_seconds: float) -> str:
        ran.append((instructions.tobytes(), count, limit_seconds))
        return "done"

    driver = SimpleNamespace(manifest=replace(MANIFEST, isa=isa), run=run)
    assert execution.finish_only(driver, bench.memory, 0.25) == "done"
    assert ran == [(b"\x03" + bytes(size - 1), 1, 0.25)]
