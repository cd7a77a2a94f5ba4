"""The values of hilt's own identity registers on an accelerator.

The registers are at 0x44 to 0x50 of the fetch page (docs/architecture.md).
"""

from __future__ import annotations

from hilt.vta.accelerator import Accelerator
from hilt_board.protocol import Identity

_REGISTER_MAP_VERSION = 1


def identity_of(accelerator: Accelerator) -> Identity:
    """Return the words that the board compares after it has loaded a bitstream of this accelerator."""
    parameters = accelerator.parameters
    return Identity(
        version=_REGISTER_MAP_VERSION,
        geometry=parameters.log_batch
        | parameters.log_block << 4
        | parameters.log_inp_width << 8
        | parameters.log_wgt_width << 12
        | parameters.log_acc_width << 16,
        buffer_sizes=parameters.log_uop_buff_size
        | parameters.log_inp_buff_size << 8
        | parameters.log_wgt_buff_size << 16
        | parameters.log_acc_buff_size << 24,
        build=accelerator.isa.number
        | (accelerator.bus_bits.bit_length() - 1) << 8
        | int(accelerator.hazards == "interlock") << 12,
    )
