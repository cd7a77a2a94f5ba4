"""Resets that end unexecuted, because the GEMM after them clears their accumulators in passing (vta_fold).

The tests cover which ones do and their cost. Accumulators, outputs, counters and faults equal those of instructions
one after another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.simulator.build import Form, build
from hilt.simulator.device import DeviceStatus, MemoryModel, SimulatedDevice
from hilt.simulator.driver import Execution, execute
from hilt.simulator.registers import Register
from hilt.simulator.twin import PlacedProgram, Twin
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import UOP, AluOpcode, MemoryType, encode_uops
from tests.rtl.assembly import (
    BASE,
    DATA,
    INSN,
    MEMORY_BYTES,
    RESULT,
    UOP_POOL,
    Fields,
    alu,
    finish,
    gemm,
    load,
    micro_ops,
    store,
    words,
)
from tests.rtl.numpy_interpreter import NumpyInterpreter
from tests.rtl.twin_comparison import differences
from tests.rtl.variants import VARIANTS

PYNQ = VARIANTS["pynq A"]
ROWS, COLUMNS = 4, 100
COUNT = ROWS * COLUMNS
FIRST = 300
UOPS = [(0, 0, 0), (FIRST, 1, 2), (FIRST, 3, 4), (FIRST + COUNT, 5, 6), (2048 - COUNT, 2, 2), (2049 - COUNT, 2, 2)]
ZERO, RESET, ADD, NEXT, LAST, PAST = range(len(UOPS))
EXECUTED, FOLDED = COUNT // 2 + 7, 6  # busy cycles
LOADS = [
    load(MemoryType.UOP, 0, UOP_POOL // 4, 1, len(UOPS)),
    load(MemoryType.INP, 0, DATA // 16, 1, 64),
    load(MemoryType.WGT, 0, DATA // 256, 1, 64, push_next=1),
    load(MemoryType.ACC, 0, DATA // 64, 1, 2048, pop_prev=1),
]
_TILE = {"dst_factor_out": COLUMNS, "dst_factor_in": 1}


def reset(uop: int = RESET, **more: int) -> Fields:
    return gemm(uop, uop + 1, ROWS, COLUMNS, **_TILE, reset=1) | more


def add(uop: int = ADD, **more: int) -> Fields:
    return gemm(uop, uop + 1, ROWS, COLUMNS, **_TILE, src_factor_in=1, src_factor_out=3, wgt_factor_out=1) | more


def _show_all(target: int, depth: int, element: int) -> list[Fields]:
    everywhere = {"dst_factor_out": 4, "dst_factor_in": 1, "use_imm": 1}
    stores = [store(0, target // element + depth * n, 1, depth, push_prev=1) for n in range(5)]
    shifts = [alu(AluOpcode.SHR, 0, 1, depth // 4, 4, **everywhere, imm=8 * (n > 0)) for n in range(4)]
    tokens = {"pop_next": 1, "push_next": 1}
    shown = [each for n in range(4) for each in (shifts[n] | tokens, stores[n + 1] | {"pop_prev": 1})]
    begin = alu(AluOpcode.ADD, 0, 1, 0, 0, use_imm=1, push_next=1)
    return [begin, stores[0] | {"pop_prev": 1}, *shown, finish(pop_next=1)]


SHOW = _show_all(RESULT, 2048, 16)
TOKEN = [load(MemoryType.INP, 60, DATA // 16, 0, 0, push_next=1)]
CASES: dict[str, tuple[list[Fields], int]] = {
    "all of its accumulators": ([reset(), add()], FOLDED),
    "each twice": ([reset(), add() | {"uop_bgn": RESET, "uop_end": ADD + 1}], FOLDED),
    "again and again": ([reset(), gemm(ADD, ADD + 1, 9, COUNT, dst_factor_in=1, src_factor_out=1)], FOLDED),
    "one at a time, backwards in rows": (
        [reset(), gemm(ADD, ADD + 1, COLUMNS, ROWS, dst_factor_out=1, dst_factor_in=COLUMNS)],
        FOLDED,
    ),
    "more than its own": ([reset(), gemm(ZERO, ZERO + 1, 1, 2048, dst_factor_in=1)], FOLDED),
    "two at a time": ([reset(), gemm(ADD, ADD + 1, 1, COUNT, dst_factor_in=1)], FOLDED),
    "one row": ([reset(iter_out=1, iter_in=COUNT, dst_factor_out=9), add()], FOLDED),
    "one column": ([reset(iter_out=COUNT, iter_in=1, dst_factor_out=1, dst_factor_in=9), add()], FOLDED),
    "to the last accumulator": ([reset(LAST), add(LAST)], FOLDED),
    "a token before either": ([*TOKEN, *TOKEN, reset(pop_prev=1), add(pop_prev=1)], FOLDED),
    "a GEMM that pushes": ([reset(), add(push_prev=1)], FOLDED),
    "after another": ([reset(), add(), reset(NEXT), add(NEXT), reset(), add()], 3 * FOLDED),
    "some of its accumulators": ([reset(), add(iter_out=1, iter_in=COLUMNS - 1)], FOLDED + EXECUTED),
    "none of its accumulators": ([reset(), add(NEXT)], FOLDED + EXECUTED),
    "every other one": ([reset(), add(dst_factor_in=2)], FOLDED + EXECUTED),
    "a GEMM of nothing": ([reset(), add(iter_in=0)], FOLDED + EXECUTED),
    "left twice, one after another": (
        [reset(), add(NEXT), reset(NEXT), add(), reset(), add()],
        3 * FOLDED + 2 * EXECUTED,
    ),
    "rows apart": ([reset(dst_factor_out=COLUMNS + 1), add()], EXECUTED),
    "rows that meet": ([reset(dst_factor_out=COLUMNS - 1), add()], EXECUTED),
    "an input that moves": ([reset(src_factor_in=1), add()], 2 * EXECUTED - 7),
    "two micro-ops": ([reset(uop_end=ADD + 1, iter_out=2), add()], 2 * COUNT + 7),
    "a token after": ([reset(push_prev=1), add()], EXECUTED),
    "another reset next": ([reset(), reset()], 2 * EXECUTED),
    "an ALU next": (
        [reset(), alu(AluOpcode.ADD, ADD, ADD + 1, ROWS, COLUMNS, **_TILE, use_imm=1, imm=5)],
        EXECUTED,
    ),
}


@pytest.mark.parametrize("hazards", ["interlock", "none"])
@pytest.mark.parametrize("name", CASES)
def test_these_operators_fold(name: str, hazards: Literal["interlock", "none"]) -> None:
    if hazards == "none" and name in ("each twice", "two micro-ops"):
        return  # updates are lost: test_micro_op_pairs.py
    instructions, cycles = CASES[name]
    accelerator = replace(PYNQ, hazards=hazards)
    execution = _compare(accelerator, [*LOADS, *instructions, *SHOW])
    if hazards == "none":
        return
    others = [fields for fields in instructions if not fields.get("reset")]
    rest = _compare(accelerator, [*LOADS, *others, *SHOW]).counters.compute.busy
    took = execution.counters.compute.busy - rest
    slack = 8 * sum(fields.get("reset", 0) for fields in instructions)  # a GEMM's end; the launch of what was left
    assert cycles - slack <= took <= cycles + slack


def test_a_slow_memory_changes_nothing() -> None:
    program = [*LOADS, reset(), add(), reset(NEXT), add(), *SHOW]
    _compare(PYNQ, program, read_latency=90, bandwidth=(1, 1))


def test_the_first_program_after_power_on() -> None:
    """The marks of accumulators are wiped before the first reset can be folded."""
    _compare(PYNQ, [LOADS[0], reset(), add(), finish()], read_latency=1)


@pytest.mark.parametrize("variant", VARIANTS)
def test_random_tiles(variant: str) -> None:
    """Resets of any tile, and GEMMs that come to all of it, to some or to none, in any order, once or more."""
    statuses = {_random(VARIANTS[variant], seed, faulty=False) for seed in range(8 if variant == "pynq A" else 3)}
    assert statuses == {DeviceStatus.DONE}


def test_random_faults() -> None:
    """A GEMM that ends in a fault leaves the accumulators that it did not come to as the reset does."""
    statuses = {_random(PYNQ, seed, faulty=True) for seed in range(40)}
    assert statuses == {DeviceStatus.DONE, DeviceStatus.FAULT}


def _compare(accelerator: Accelerator, instructions: list[Fields], **timing: Any) -> Execution:
    """Run them on the RTL; memory equals the numpy interpreter's, cycles and counters the twin's."""
    program, pool = words(accelerator, instructions), micro_ops(accelerator, *UOPS)
    with SimulatedDevice(build(accelerator, "rtl"), MemoryModel(BASE, MEMORY_BYTES, **timing)) as device:
        device.write_memory(INSN, program)
        device.write_memory(UOP_POOL, pool)
        device.write_memory(DATA, np.random.default_rng(3).integers(-128, 128, 0x2_0000, dtype=np.int8))
        expected = device.memory.copy()
        NumpyInterpreter(accelerator, BASE, expected).run(INSN, len(program))
        execution = execute(device, INSN, len(program), 1_000_000)
        assert execution.status is DeviceStatus.DONE, execution
        assert np.array_equal(device.memory, expected)
    placed = PlacedProgram(program, np.frombuffer(pool, np.uint32).reshape(-1, 1), INSN, UOP_POOL)
    assert differences(execution, Twin(accelerator), placed, MemoryModel(**timing)) == []
    return execution


# ---- Random programs, on the golden model too ------------------------------------------------------------------------

POOL, SOURCE, TARGET, MEMORY = 0x1_0000, 0x2_0000, 0x20_0000, 0x60_0000
POOL_UOPS = 256


def _random(accelerator: Accelerator, seed: int, *, faulty: bool) -> DeviceStatus:
    """Compare the RTL with the golden model and the twin; return how the program ends.

    After a soft reset `out` and all bytes of the accumulator are stored, and compared.
    """
    generator = np.random.default_rng(seed)
    parameters = accelerator.parameters
    depths = {"dst": parameters.acc_depth, "src": parameters.inp_depth, "wgt": parameters.wgt_depth}
    uops = np.zeros(POOL_UOPS, dtype=UOP)
    for name, depth in depths.items():
        uops[name] = generator.integers(0, generator.choice((2, 40, depth // 2), POOL_UOPS))
    uops[0] = (0, 0, 0)
    pool = encode_uops(uops, accelerator)
    load_uops = load(MemoryType.UOP, 0, POOL // accelerator.uop_element_bytes, 1, POOL_UOPS)
    loads = [
        load(MemoryType.INP, 0, SOURCE // parameters.inp_element_bytes, 1, min(depths["src"], 2048)),
        load(MemoryType.WGT, 0, SOURCE // parameters.wgt_element_bytes, 1, min(depths["wgt"], 1024), push_next=1),
        load(MemoryType.ACC, 0, SOURCE // parameters.acc_element_bytes, 1, depths["dst"], pop_prev=1),
    ]
    tiles = [fields for _ in range(12) for fields in _tile(generator, uops, depths, faulty)]
    program = words(accelerator, [load_uops, *loads, *tiles, finish()])
    show = words(accelerator, [load_uops, *_show_all(TARGET, parameters.acc_depth, parameters.out_element_bytes)])
    contents = generator.integers(-128, 128, 0x10_0000, dtype=np.int8)

    def run(form: Form) -> tuple[Execution, NDArray[np.uint8]]:
        with SimulatedDevice(build(accelerator, form), MemoryModel(0, MEMORY)) as device:
            for address, part in ((0, program), (POOL, pool), (SOURCE, contents)):
                device.write_memory(address, np.ascontiguousarray(part))
            execution = execute(device, 0, len(program), 10_000_000)
            device.write_register(Register.SOFT_RESET, 1)
            device.write_memory(0, show)
            assert execute(device, 0, len(show), 1_000_000).status is DeviceStatus.DONE
            return execution, device.memory.copy()

    (rtl, memory), (golden, expected) = run("rtl"), run("golden")
    assert (rtl.status, rtl.fault, rtl.counters.macs) == (golden.status, golden.fault, golden.counters.macs), seed
    assert np.array_equal(memory, expected), seed
    placed = PlacedProgram(program, np.ascontiguousarray(pool).view(np.uint32).reshape(POOL_UOPS, -1), 0, POOL)
    assert differences(rtl, Twin(accelerator), placed, MemoryModel(0, MEMORY)) == [], seed
    return rtl.status


def _tile(
    generator: np.random.Generator, uops: NDArray[np.void], depths: dict[str, int], faulty: bool
) -> Iterator[Fields]:
    """A reset and one or two GEMMs over about the same accumulators; sometimes the other way round, or with an ALU."""
    bgn = int(generator.integers(POOL_UOPS - 8))
    room = depths["dst"] - int(uops["dst"][bgn])
    inner = int(generator.integers(1, min(room, 60) + 1))
    outer = int(generator.integers(1, max(2, min(room // inner + int(faulty), 12))))
    yield gemm(bgn, bgn + 1, outer, inner, dst_factor_out=inner, dst_factor_in=1, reset=1)
    for _ in range(int(generator.integers(1, 3))):
        first, count = bgn + int(generator.choice((0, 0, 0, 1))), int(generator.choice((1, 1, 2, 5)))
        loops = (outer, inner) if generator.random() < 0.5 else (inner, outer)
        steps = (inner, 1) if loops[0] == outer else (1, inner)
        if generator.random() < 0.3:
            steps = (int(generator.integers(0, 3)), int(generator.integers(0, 3)))
        most = {name: int(uops[name][first : first + count].max()) for name in depths}
        factors = dict(zip(("dst_factor_out", "dst_factor_in"), steps, strict=True))
        for name in ("src", "wgt"):
            for loop in ("out", "in"):
                factors[f"{name}_factor_{loop}"] = int(
                    generator.choice((0, 0, 1, 3, depths[name] - 1 if faulty else 2))
                )
        fields = gemm(first, first + count, *loops, **factors, reset=int(generator.random() < 0.1))
        fits = all(
            most[name] + (loops[0] - 1) * factors[f"{name}_factor_out"] + (loops[1] - 1) * factors[f"{name}_factor_in"]
            < depth
            for name, depth in depths.items()
        )
        if fits or (faulty and generator.random() < 0.2):
            yield fields
    if generator.random() < 0.3:
        yield alu(AluOpcode.ADD, bgn, bgn + 1, 1, inner, dst_factor_in=1, use_imm=1, imm=3)
