"""The accelerator between cocotbext-axi's models: an AXI4-Lite master at its registers, AXI4 slaves at its ports."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, Timer
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiReadBus, AxiResp, AxiSlaveRead, AxiSlaveWrite, AxiWriteBus

from hilt.simulator.driver import Fault
from hilt_runtime.registers import START, START_AND_AUTO_RESTART, FaultCode, Register
from tests.rtl.cocotb.memory import GuardedMemory

ADDRESS_RULES = (
    *("a valid address was withdrawn", "a waiting address changed", "a burst crosses 4 KiB", "odd burst"),
    "not plain memory",
)
DATA_RULES = ("valid data was withdrawn", "waiting data changed", "a strobe is missing")
PORTS = ("fetch", "load", "compute", "store")
POLL_CYCLES = 40
CLOCK_NS = 10


class Bench:
    """Clock, reset, models and their pauses, all of it drawn from `seed`. `start` it before use."""

    def __init__(self, dut: Any, memory: GuardedMemory, seed: int) -> None:
        self.dut, self.memory = dut, memory
        reset = {"clock": dut.clk, "reset": dut.rst_n, "reset_active_level": False}
        self.registers = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi"), **reset)
        self.reads = {
            name: AxiSlaveRead(AxiReadBus.from_prefix(dut, f"m_axi_{name}"), target=memory.port(name), **reset)
            for name in PORTS[:3]
        }
        self.write = AxiSlaveWrite(AxiWriteBus.from_prefix(dut, "m_axi_store"), target=memory.port("store"), **reset)
        generator = random.Random(seed)
        self._pauses = [(channel, generator.getrandbits(32)) for channel in self._channels()]

    async def start(self) -> None:
        self.dut.tamper_araddr.value = self.dut.tamper_wstrb.value = 0
        self.dut.rst_n.value = 0
        cocotb.start_soon(Clock(self.dut.clk, CLOCK_NS, "ns").start())
        await ClockCycles(self.dut.clk, 5)
        self.dut.rst_n.value = 1
        await ClockCycles(self.dut.clk, 2)
        for channel, seed in self._pauses:
            cocotb.start_soon(_pause(channel, seed))

    def answer_errors_with(self, response: AxiResp) -> None:
        """Replace the models' SLVERR, the only error they know, by `response`."""
        for channel, name in ((self.write.b_channel, "bresp"), *((r.r_channel, "rresp") for r in self.reads.values())):
            _replace_response(channel, name, response)

    async def read(self, register: int) -> int:
        return int(await self.registers.read_dword(register))

    async def run(self, insn_addr: int, insn_count: int, *, max_cycles: int) -> Fault | None:
        """Run instructions by the driver protocol until done is set or there is a fault; return the fault.

        Raises:
            AssertionError: Neither happens.
        """
        await self.begin(insn_addr, insn_count)
        for _ in range(max_cycles // POLL_CYCLES):
            await ClockCycles(self.dut.clk, POLL_CYCLES)
            code = await self.read(Register.FAULT_CODE)
            if code:
                low, high = await self.read(Register.FAULT_ADDRESS_LOW), await self.read(Register.FAULT_ADDRESS_HIGH)
                return Fault(FaultCode(code), high << 32 | low)
            if await self.read(Register.DONE_READ):
                return None
        raise AssertionError(f"neither done nor a fault in more than {max_cycles} cycles")

    async def begin(self, insn_addr: int, insn_count: int) -> None:
        await self.registers.write_dword(Register.INSN_COUNT, insn_count)
        await self.registers.write_dword(Register.INSN_ADDR, insn_addr)
        for register in (
            *(Register.INP_ADDR, Register.WGT_ADDR, Register.UOP_ADDR, Register.BIAS_ADDR, Register.OUT_ADDR),
        ):
            await self.registers.write_dword(register, 0)
        await self.registers.write_dword(Register.FETCH_CONTROL, START)
        for register in (Register.LOAD_CONTROL, Register.COMPUTE_CONTROL, Register.STORE_CONTROL):
            await self.registers.write_dword(register, START_AND_AUTO_RESTART)

    async def soft_reset(self) -> None:
        """Raises AssertionError where it does not end."""
        await self.registers.write_dword(Register.SOFT_RESET, 1)
        for _ in range(2000):
            if not await self.read(Register.SOFT_RESET):
                return
        raise AssertionError("the soft reset never ended")

    def broken_rules(self) -> list[str]:
        """Return the rules that axi_rules.sv saw broken, as `port: rule`."""
        watched = [(name, f"broken_{name}", ADDRESS_RULES) for name in PORTS]
        watched.append(("store", "broken_store_data", DATA_RULES))
        return [
            f"{port}: {rule}"
            for port, signal, rules in watched
            for bit, rule in enumerate(rules)
            if int(getattr(self.dut, signal).value) >> bit & 1
        ]

    def _channels(self) -> Iterator[Any]:
        for read in self.reads.values():
            yield from (read.ar_channel, read.r_channel)
        yield from (self.write.aw_channel, self.write.w_channel, self.write.b_channel)
        lite_write, lite_read = self.registers.write_if, self.registers.read_if
        yield from (lite_write.aw_channel, lite_write.w_channel, lite_write.b_channel)
        yield from (lite_read.ar_channel, lite_read.r_channel)


async def _pause(channel: Any, seed: int) -> None:
    """Let a channel go and stop in turn, for times whose lengths change now and then.

    The models' own generators give a value in every cycle, which takes most of a simulation's time.
    """
    generator = random.Random(seed)
    while True:
        go, stop = generator.choice(((200, 1), (30, 2), (4, 4), (1, 1), (1, 9), (12, 60)))
        for _ in range(generator.randrange(1, 12)):
            channel.pause = False
            await Timer(CLOCK_NS * generator.randint(1, 2 * go), "ns")
            channel.pause = True
            await Timer(CLOCK_NS * generator.randint(1, 2 * stop), "ns")


def _replace_response(channel: Any, name: str, response: AxiResp) -> None:
    send = channel.send

    async def replaced(transaction: Any) -> None:
        if getattr(transaction, name) != AxiResp.OKAY:
            setattr(transaction, name, response)
        await send(transaction)

    channel.send = replaced
