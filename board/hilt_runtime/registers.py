# SPDX-License-Identifier: Apache-2.0
"""The accelerator's registers and faults. Generated from hls/registers/registers.toml: do not edit."""

from __future__ import annotations

from enum import IntEnum

REGISTER_BYTES = 0x4000
"""Size of the four pages: fetch, load, compute, store."""

START = 0x01
START_AND_AUTO_RESTART = 0x81

IDENTITY_VALUE = 0x48494C54


class Register:
    """Byte offset of a register. Fetch is at 0x0000, load 0x1000, compute 0x2000, store 0x3000."""

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
    FETCH_BUSY_LOW = 0x0080
    FETCH_BUSY_HIGH = 0x0084
    FETCH_STARVED_LOW = 0x0088
    FETCH_STARVED_HIGH = 0x008C
    FETCH_STALLED_LOW = 0x0090
    FETCH_STALLED_HIGH = 0x0094
    FETCH_BYTES_LOW = 0x0098
    FETCH_BYTES_HIGH = 0x009C
    FETCH_INSTRUCTIONS_LOW = 0x00A0
    FETCH_INSTRUCTIONS_HIGH = 0x00A4
    LOAD_CONTROL = 0x1000
    INP_ADDR = 0x1010
    WGT_ADDR = 0x1018
    LOAD_BUSY_LOW = 0x1080
    LOAD_BUSY_HIGH = 0x1084
    LOAD_STARVED_LOW = 0x1088
    LOAD_STARVED_HIGH = 0x108C
    LOAD_STALLED_LOW = 0x1090
    LOAD_STALLED_HIGH = 0x1094
    LOAD_BYTES_LOW = 0x1098
    LOAD_BYTES_HIGH = 0x109C
    LOAD_INSTRUCTIONS_LOW = 0x10A0
    LOAD_INSTRUCTIONS_HIGH = 0x10A4
    COMPUTE_CONTROL = 0x2000
    DONE_WRITE = 0x2010
    DONE_READ = 0x2018
    UOP_ADDR = 0x2020
    BIAS_ADDR = 0x2028
    COMPUTE_BUSY_LOW = 0x2080
    COMPUTE_BUSY_HIGH = 0x2084
    COMPUTE_STARVED_LOW = 0x2088
    COMPUTE_STARVED_HIGH = 0x208C
    COMPUTE_STALLED_LOW = 0x2090
    COMPUTE_STALLED_HIGH = 0x2094
    COMPUTE_BYTES_LOW = 0x2098
    COMPUTE_BYTES_HIGH = 0x209C
    COMPUTE_INSTRUCTIONS_LOW = 0x20A0
    COMPUTE_INSTRUCTIONS_HIGH = 0x20A4
    STORE_CONTROL = 0x3000
    OUT_ADDR = 0x3010
    STORE_BUSY_LOW = 0x3080
    STORE_BUSY_HIGH = 0x3084
    STORE_STARVED_LOW = 0x3088
    STORE_STARVED_HIGH = 0x308C
    STORE_STALLED_LOW = 0x3090
    STORE_STALLED_HIGH = 0x3094
    STORE_BYTES_LOW = 0x3098
    STORE_BYTES_HIGH = 0x309C
    STORE_INSTRUCTIONS_LOW = 0x30A0
    STORE_INSTRUCTIONS_HIGH = 0x30A4


class FaultCode(IntEnum):
    """Reason why the accelerator stopped itself."""

    NONE = 0
    SLVERR = 1
    DECERR = 2
    UOP_INDEX = 3
    INP_INDEX = 4
    WGT_INDEX = 5
    ACC_INDEX = 6
    OUT_INDEX = 7
    ILLEGAL_INSTRUCTION = 8


FAULTS = {
    1: "slave error (SLVERR) at address 0x{:x}",
    2: "no memory answers (DECERR) at address 0x{:x}",
    3: "micro-op index {} is past its buffer",
    4: "input index {} is past its buffer",
    5: "weight index {} is past its buffer",
    6: "accumulator index {} is past its buffer",
    7: "output index {} is past its buffer",
    8: "instruction number {} is illegal",
}
"""Text of a fault by its code; `format` takes the fault address."""
