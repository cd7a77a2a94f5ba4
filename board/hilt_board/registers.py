"""Registers, in bytes from the fetch page: VTA's (HARDWARE.md section 4) and hilt's own (docs/architecture.md)."""

from __future__ import annotations

REGISTER_BYTES = 0x4000
"""Four pages: fetch, load, compute, store."""

FETCH_CONTROL, FETCH_COUNT, FETCH_ADDRESS = 0x0000, 0x0010, 0x0018
LOAD_CONTROL, LOAD_INP_ADDRESS, LOAD_WGT_ADDRESS = 0x1000, 0x1010, 0x1018
COMPUTE_CONTROL, COMPUTE_DONE, COMPUTE_UOP_ADDRESS, COMPUTE_BIAS_ADDRESS = 0x2000, 0x2018, 0x2020, 0x2028
STORE_CONTROL, STORE_OUT_ADDRESS = 0x3000, 0x3010

START = 0x01
START_AND_AUTO_RESTART = 0x81

IDENTITY = 0x40
IDENTITY_VALUE = 0x48494C54  # "HILT"
IDENTITY_VERSION, IDENTITY_BLOCKS, IDENTITY_BUFFERS, IDENTITY_BUILD = 0x44, 0x48, 0x4C, 0x50
FAULT_CODE, FAULT_ADDRESS_LOW, FAULT_ADDRESS_HIGH = 0x54, 0x58, 0x5C
CYCLES_LOW, CYCLES_HIGH = 0x60, 0x64
SOFT_RESET = 0x68

SLVERR, DECERR = 1, 2
FAULTS = {
    SLVERR: "slave error (SLVERR) at address 0x{:x}",
    DECERR: "no memory answers (DECERR) at address 0x{:x}",
    3: "micro-op index {} is past its buffer",
    4: "input index {} is past its buffer",
    5: "weight index {} is past its buffer",
    6: "accumulator index {} is past its buffer",
    7: "output index {} is past its buffer",
    8: "instruction number {} is illegal",
}
