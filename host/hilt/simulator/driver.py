"""Runs instructions that lie in a simulated accelerator's memory, by the register protocol of HARDWARE.md section 4."""

from __future__ import annotations

from dataclasses import dataclass

from hilt.simulator.device import Counters, DeviceStatus, SimulatedDevice, SimulatorError
from hilt_runtime.registers import START, START_AND_AUTO_RESTART, FaultCode, Register


@dataclass(frozen=True)
class Fault:
    """`address`: a byte address for SLVERR and DECERR, an element index past its buffer, or an instruction's number."""

    code: FaultCode
    address: int

    def __str__(self) -> str:
        if self.code in (FaultCode.SLVERR, FaultCode.DECERR):
            return f"{self.code.name} at address {self.address:#x}"
        if self.code is FaultCode.ILLEGAL_INSTRUCTION:
            return f"illegal instruction number {self.address}"
        return f"{self.code.name.removesuffix('_INDEX').lower()} index {self.address} is past its buffer"


@dataclass(frozen=True)
class Execution:
    """The end of instructions: `status` DONE, RUNNING (at the limit) or FAULT; `cycles` from the start of fetch."""

    status: DeviceStatus
    cycles: int
    counters: Counters
    fault: Fault | None = None


def execute(device: SimulatedDevice, insn_addr: int, insn_count: int, max_cycles: int) -> Execution:
    """Runs `insn_count` instructions at byte address `insn_addr` for at most `max_cycles`.

    Every dram_base is physical: the address registers are written 0. After RUNNING or FAULT the device must be reset
    before it runs again. Raises SimulatorError where an argument does not fit its register.
    """
    device.write_register(Register.INSN_COUNT, insn_count)
    device.write_register(Register.INSN_ADDR, insn_addr)
    for register in (Register.INP_ADDR, Register.WGT_ADDR, Register.UOP_ADDR, Register.BIAS_ADDR, Register.OUT_ADDR):
        device.write_register(register, 0)
    device.write_register(Register.FETCH_CONTROL, START)
    for register in (Register.LOAD_CONTROL, Register.COMPUTE_CONTROL, Register.STORE_CONTROL):
        device.write_register(register, START_AND_AUTO_RESTART)
    status, _ = device.step(max_cycles)
    if status is DeviceStatus.DONE and device.read_register(Register.DONE_READ) != 1:
        raise SimulatorError("the model ended without setting compute's done register")
    counters = device.counters()
    return Execution(status, counters.cycles, counters, _fault(device) if status is DeviceStatus.FAULT else None)


def _fault(device: SimulatedDevice) -> Fault:
    low, high = device.read_register(Register.FAULT_ADDRESS_LOW), device.read_register(Register.FAULT_ADDRESS_HIGH)
    return Fault(FaultCode(device.read_register(Register.FAULT_CODE)), high << 32 | low)
