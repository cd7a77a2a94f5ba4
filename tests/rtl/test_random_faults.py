"""Programs that fault end with a status and an address, in agreement with numpy.

They are GEMM and ALU instructions with indices drawn at random; most leave their buffers sooner or later. The work
before the fault is done, nothing after it.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.simulator.build import Form, quick_build
from hilt.simulator.device import DeviceStatus, MemoryModel, SimulatedDevice
from hilt.simulator.driver import Fault, execute
from hilt.vta.isa import UOP, AluOpcode, MemoryType, encode_uops
from hilt_runtime.registers import FaultCode, Register
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
    store,
    words,
)
from tests.rtl.numpy_interpreter import NumpyInterpreter
from tests.rtl.variants import VARIANTS

A = VARIANTS["pynq A"]
DEPTHS = {"dst": 2048, "src": 2048, "wgt": 1024}
UOPS = 16
PROGRAMS = 40


class _FaultError(Exception):
    def __init__(self, fault: Fault) -> None:
        self.fault = fault


class _Interpreter(NumpyInterpreter):
    """Stops at the first index past its buffer: micro-op, input, weight, accumulator; ALU: destination, source."""

    _fault: Fault | None = None

    def execute(self, record: np.void) -> None:
        self._fault = None
        super().execute(record)
        if self._fault is not None:
            raise _FaultError(self._fault)

    def _indices(self, f: dict[str, int], names: tuple[str, ...]) -> list[tuple[int, ...]]:
        """Return the indices of the micro-ops before the fault."""
        good: list[tuple[int, ...]] = []
        for out in range(f["iter_out"]):
            for inner in range(f["iter_in"]):
                for number in range(f["uop_bgn"], f["uop_end"]):
                    if number >= len(self.uop):
                        self._fault = Fault(FaultCode.UOP_INDEX, number)
                        return good
                    index = {
                        name: int(self.uop[number][name])
                        + out * f[f"{name}_factor_out"]
                        + inner * f[f"{name}_factor_in"]
                        for name in names
                    }
                    self._fault = self._past(f, index)
                    if self._fault is not None:
                        return good
                    good.append(tuple(index.values()))
        return good

    @staticmethod
    def _past(f: dict[str, int], index: dict[str, int]) -> Fault | None:
        if "wgt" in index:
            if index["src"] >= DEPTHS["src"]:
                return Fault(FaultCode.INP_INDEX, index["src"])
            if index["wgt"] >= DEPTHS["wgt"]:
                return Fault(FaultCode.WGT_INDEX, index["wgt"])
        for name in ("dst",) if "wgt" in index or f["use_imm"] else ("dst", "src"):
            if index[name] >= DEPTHS["dst"]:
                return Fault(FaultCode.ACC_INDEX, index[name])
        return None


def _nest(generator: np.random.Generator) -> Fields:
    """Factors are such that an index may leave its buffer early, late or never."""
    begin = int(generator.choice((0, 3, 8, 8188)))
    end = begin + int(generator.integers(1, 9))
    loops = [int(generator.choice((1, 2, 3, 9, 20))) for _ in range(2)]
    factors = {
        f"{name}_factor_{loop}": int(generator.choice((0, 1, 1, 2, 7, 40, depth // 4, depth - 1)))
        for name, depth in DEPTHS.items()
        for loop in ("in", "out")
    }
    if generator.random() < 0.5:
        if generator.random() < 0.5:  # one operand for all
            factors |= {f"{name}_factor_{loop}": 0 for name in ("src", "wgt") for loop in ("in", "out")}
        return gemm(begin, end, *loops, **factors, reset=int(generator.random() < 0.3))
    of_alu = {name: factor for name, factor in factors.items() if not name.startswith("wgt")}
    operation, immediate = AluOpcode(int(generator.integers(4))), int(generator.random() < 0.5)
    return alu(operation, begin, end, *loops, **of_alu, use_imm=immediate, imm=int(generator.integers(-9, 9)))


def _chain(generator: np.random.Generator) -> list[Fields]:
    """An ALU over a tile that may leave the accumulator, and MIN and MAX over the same, which would join it."""
    begin, rows, columns = (int(generator.choice(sizes)) for sizes in ((0, 5, 8188), (1, 2, 9), (1, 3, 20)))
    factors = {"dst_factor_out": int(generator.choice((columns, 90, 256))), "dst_factor_in": 1}
    operations = [AluOpcode.ADD, *(AluOpcode(int(operation)) for operation in generator.integers(2, size=2))]
    return [
        alu(operation, begin, begin + 1, rows, columns, **factors, use_imm=1, imm=int(generator.integers(-9, 9)))
        for operation in operations
    ]


def _micro_ops(generator: np.random.Generator) -> NDArray[np.void]:
    uops = np.zeros(UOPS, dtype=UOP)
    for name, depth in DEPTHS.items():
        uops[name] = generator.integers(generator.choice((2, 100, depth)), size=UOPS)
    return uops


def _run(device: SimulatedDevice, interpreter: NumpyInterpreter, generator: np.random.Generator) -> FaultCode | None:
    """Fill the buffers, execute a few random instructions and, after a soft reset, show `out`; return the fault."""
    program = [
        load(MemoryType.UOP, 0, UOP_POOL // 4, 1, UOPS),
        load(MemoryType.UOP, 8192 - UOPS, UOP_POOL // 4, 1, UOPS),
        load(MemoryType.INP, 0, DATA // 16, 1, 2048),
        load(MemoryType.WGT, 0, DATA // 256, 1, 512, push_next=1),
        load(MemoryType.ACC, 0, DATA // 64, 1, 2048, pop_prev=1),
        *(_chain(generator) if generator.random() < 0.4 else [_nest(generator)]),
        _nest(generator),
        finish(),
    ]
    device.write_memory(UOP_POOL, encode_uops(_micro_ops(generator), A))
    expected = _interpret(device, interpreter, program)
    execution = execute(device, INSN, len(program), 10_000_000)
    assert execution.status is (DeviceStatus.DONE if expected is None else DeviceStatus.FAULT)
    assert execution.fault == expected
    device.write_register(Register.SOFT_RESET, 1)
    show = [store(0, RESULT // 16, 1, 2048, push_prev=1), finish(pop_next=1)]
    _interpret(device, interpreter, show)
    assert execute(device, INSN, len(show), 100_000).status is DeviceStatus.DONE
    assert np.array_equal(device.memory, interpreter.memory)
    return None if expected is None else expected.code


def _interpret(device: SimulatedDevice, interpreter: NumpyInterpreter, program: list[Fields]) -> Fault | None:
    """Put the program into the device's memory and run it on a copy of that; return the fault that it ends with."""
    device.write_memory(INSN, words(A, program))
    interpreter.memory[:] = device.memory
    try:
        interpreter.run(INSN, len(program))
    except _FaultError as faulted:
        return faulted.fault
    return None


@pytest.mark.parametrize("form", ["golden", "rtl"])
@pytest.mark.parametrize("seed", [1, 2])
def test_random_indices(form: Form, seed: int) -> None:
    generator = np.random.default_rng(seed)
    with SimulatedDevice(quick_build(A, form), MemoryModel(BASE, MEMORY_BYTES)) as device:
        device.write_memory(DATA, generator.integers(-128, 128, 0x2_0000, dtype=np.int8))
        interpreter = _Interpreter(A, BASE, device.memory.copy())
        codes = [_run(device, interpreter, generator) for _ in range(PROGRAMS)]
    assert {FaultCode.UOP_INDEX, FaultCode.INP_INDEX, FaultCode.WGT_INDEX, FaultCode.ACC_INDEX, None} <= set(codes)
