"""The accelerator's registers, by byte offset: HARDWARE.md section 4 and hilt's own of docs/architecture.md."""

from __future__ import annotations

from enum import IntEnum

START = 0x01
START_AND_AUTO_RESTART = 0x81


class Register(IntEnum):
    """Fetch is at 0x0000, load 0x1000, compute 0x2000, store 0x3000."""

    FETCH_CONTROL = 0x0000
    INSN_COUNT = 0x0010
    INSN_ADDR = 0x0018
    IDENTITY = 0x0040
    MAP_VERSION = 0x0044
    GEOMETRY = 0x0048
    BUFFER_SIZES = 0x004C
    BUILD = 0x0050
    FAULT_CODE = 0x0054
    FAULT_ADDRESS_LOW = 0x0058
    FAULT_ADDRESS_HIGH = 0x005C
    CYCLES_LOW = 0x0060
    CYCLES_HIGH = 0x0064
    SOFT_RESET = 0x0068
    GEMM_MICRO_OPS_LOW = 0x0070
    GEMM_MICRO_OPS_HIGH = 0x0074
    LOAD_CONTROL = 0x1000
    INP_ADDR = 0x1010
    WGT_ADDR = 0x1018
    COMPUTE_CONTROL = 0x2000
    DONE_WRITE = 0x2010
    DONE_READ = 0x2018
    UOP_ADDR = 0x2020
    BIAS_ADDR = 0x2028
    STORE_CONTROL = 0x3000
    OUT_ADDR = 0x3010


class FaultCode(IntEnum):
    """Why the accelerator stopped itself."""

    NONE = 0
    SLVERR = 1
    DECERR = 2
    UOP_INDEX = 3
    INP_INDEX = 4
    WGT_INDEX = 5
    ACC_INDEX = 6
    OUT_INDEX = 7
    ILLEGAL_INSTRUCTION = 8
