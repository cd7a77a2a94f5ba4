"""A check that a board's Python runs: the agent's driver and memory on pynq's own device for Zynq boards.

It covers pynq 2.7 to 4.0. Stand-ins replace the layers below pynq: XRT, the FPGA manager's files, /lib/firmware and
/dev/mem. It prints its observations as JSON. Arguments: a .bit file, and a folder for the files.
"""
# ruff: noqa: N801, N802, N815  names are XRT's

import ctypes
import itertools
import json
import mmap
import platform
import sys
import types
from pathlib import Path

import numpy as np
import pynq
from pynq import buffer, ps
from pynq.pl_server import embedded_device, xrt_device

SAW = []
SLCR, FPGA0_CLK_CTRL, IO_PLL_CTRL = 0xF8000000, 0x170, 0x108
CACHEABLE = 1 << 24


class Buffers:
    """XRT's buffer objects, by number."""

    def __init__(self):
        self.numbers = itertools.count(1)
        self.memory, self.address = {}, {}
        self.next_address = 0x1680_0000

    def allocate(self, size, cacheable):
        number = next(self.numbers)
        self.memory[number], self.address[number] = mmap.mmap(-1, size), self.next_address
        self.next_address += size
        SAW.append(["allocate", number, size, bool(cacheable)])
        return number


BUFFERS = Buffers()


class OldXrt:
    """XRT's C functions, as pynq 2.7 and 3.0 call them."""

    XRT_SUPPORTED = True
    xclDeviceInfo2 = types.SimpleNamespace(mName=b"edge", mPciSlot=0)
    xclBOSyncDirection = types.SimpleNamespace(
        XCL_BO_SYNC_BO_TO_DEVICE="flush", XCL_BO_SYNC_BO_FROM_DEVICE="invalidate"
    )
    xclBOKind = types.SimpleNamespace(XCL_BO_DEVICE_RAM=0)

    class xclBOProperties(ctypes.Structure):
        _fields_ = (("size", ctypes.c_uint64), ("paddr", ctypes.c_uint64))

    def __getattr__(self, name):  # xclOpen, xclLockDevice, xclGetDeviceInfo2, ...: all is well
        return lambda *_: 0

    def xclLoadXclBin(self, handle, data):
        SAW.append(["xclbin"])
        return 0

    def xclAllocBO(self, handle, size, kind, flags):
        return BUFFERS.allocate(size, flags & CACHEABLE)

    def xclMapBO(self, handle, number, write):
        return ctypes.addressof(ctypes.c_char.from_buffer(BUFFERS.memory[number]))

    def xclGetBOProperties(self, handle, number, properties):
        properties.size, properties.paddr = len(BUFFERS.memory[number]), BUFFERS.address[number]
        return 0

    def xclSyncBO(self, handle, number, direction, size, offset):
        SAW.append([direction, number])
        return 0


class NewBuffer:
    flags = types.SimpleNamespace(normal=0, cacheable=CACHEABLE)

    def __init__(self, device, size, flags, group):
        self.number = BUFFERS.allocate(size, flags & CACHEABLE)

    def map(self):
        return memoryview(BUFFERS.memory[self.number])

    def size(self):
        return len(BUFFERS.memory[self.number])

    def address(self):
        return BUFFERS.address[self.number]

    def sync(self, direction):
        SAW.append([direction, self.number])


class NewDevice:
    """XRT's own Python classes, as pynq 4.0 calls them."""

    def __init__(self, index):
        pass

    def get_info(self, what):
        return "edge" if what == "name" else ""

    def load_xclbin(self, path):
        SAW.append(["xclbin"])


class Words:
    def __getattr__(self, name):
        return name


def stand_in_for_xrt():
    loose = types.SimpleNamespace(munmap=lambda *_: 0)
    if hasattr(xrt_device, "xrt"):
        xrt_device.xrt = OldXrt()
        OldXrt.xclDeviceInfo2 = type("Info", (), vars(OldXrt.xclDeviceInfo2))
        if hasattr(buffer, "xrt"):
            buffer.xrt = xrt_device.xrt
    else:
        directions = OldXrt.xclBOSyncDirection
        xrt_device.pyxrt = types.SimpleNamespace(
            bo=NewBuffer, device=NewDevice, xrt_info_device=Words(), xclBOSyncDirection=directions
        )
    xrt_device.libc = buffer.libc = loose


def stand_in_for_the_kernel(folder):
    for name in ("firmware", "flags", "state"):
        (folder / name).write_text("operating")
    device = embedded_device.EmbeddedDevice
    device.BS_FPGA_MAN, device.BS_FPGA_MAN_FLAGS = str(folder / "firmware"), str(folder / "flags")
    notes = sys.modules.get("pynq.pl_server.global_state")
    if notes is not None:
        notes.STATE_DIR = str(folder)
        for module in (embedded_device, notes):
            module.initial_global_state_file_boot_check = lambda *_: None
        # Of a notebook's overlay that was removed since.
        note = {"bitfile_name": str(folder / "gone.bit"), "active_name": "edge", "timestamp": ""}
        (folder / "global_pl_state.json").write_text(json.dumps(note))
    write_bytes = Path.write_bytes

    def write(path, data):
        if str(path).startswith("/lib/firmware/"):
            SAW.append(["firmware", path.name, bytes(data).hex(), clock()])
            return len(data)
        return write_bytes(path, data)

    Path.write_bytes = write
    registers = {}

    def clock():
        """MHz that the fabric has, of an IO PLL of 1,000: divided twice."""
        word = int(registers[SLCR][FPGA0_CLK_CTRL // 4])
        return 1000 / ((word >> 8 & 63) * (word >> 20 & 63))

    def map_registers(self, base, length):
        if base not in registers:
            array = np.zeros(length // 4, np.uint32)
            if base == SLCR:
                array[[IO_PLL_CTRL // 4, FPGA0_CLK_CTRL // 4]] = 20 << 12, 10 << 20 | 2 << 8  # 50 MHz until it is set
            SAW.append(["map", base, length])
            registers[base] = array
        return registers[base]

    device.mmap = map_registers
    ps.CPU_ARCH, ps.CPU_ARCH_IS_SUPPORTED = "armv7l", True
    platform.machine = lambda: ps.CPU_ARCH


def main():
    from hilt_board.driver import Driver, physical_address
    from hilt_board.memory import ContiguousMemory, read_back
    from hilt_board.protocol import Manifest

    path, folder = Path(sys.argv[1]), Path(sys.argv[2])
    stand_in_for_xrt()
    stand_in_for_the_kernel(folder)
    pynq.Device.active_device = embedded_device.EmbeddedDevice()
    driver = Driver(1.0, lambda: None)
    driver.program(path, Manifest("pynq", "7z020clg484", "1x16_i8w8a32_15_15_18_17", "A", 10**8, 0x43C0_0000))
    loaded = (folder / "firmware").read_text()
    driver.reload()
    at_the_reload = len(SAW)
    memory = ContiguousMemory(folder)
    output = memory.scratch("output", 5000)
    np.invert(np.zeros(5000, np.uint8), out=output)
    output.flush()
    read_back(output)
    addresses = [physical_address(output), physical_address(output[256:])]
    whole = bool((np.asarray(output) == 255).all())
    memory.clear()
    memory.scratch("instructions", 4096)
    print(json.dumps({
        "pynq": pynq.__version__, "loading": SAW[:at_the_reload], "buffers": SAW[at_the_reload:], "loaded": loaded,
        "addresses": addresses, "whole": whole,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
