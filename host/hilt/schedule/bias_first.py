"""A convolution whose tiles begin with a lowered bias, in place of a reset and an addition.

`with_bias_first` saves the resets of all tiles but the first in each place. When a tile has been stored, its
accumulators hold values within the clip's bounds. MIN with a bias that lies below these bounds sets them to the bias,
whatever they hold: one instruction in place of a reset and an ADD. The bias is lowered by 256 * 2^shift, so the
shifted sum is lower by 256. The bounds of the clip are lowered as much; the low 8 bits, which a STORE takes, stay the
same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.code import Code
from hilt.schedule.residual import output_tiles
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode, Opcode

LOWER = 256
"""Decrease of the shifted sum."""


def with_bias_first(code: Code, accelerator: Accelerator) -> Code:
    """Return `code`, a convolution's with a bias, a shift and a clip, for a lowered bias."""
    records = code.records.copy()
    bounds = (records["opcode"] == Opcode.ALU) & np.isin(records["alu_opcode"], (AluOpcode.MIN, AluOpcode.MAX))
    records["imm"][bounds & (records["use_imm"] == 1)] -= LOWER
    wanted = np.arange(len(records), dtype=np.float64)
    keep = np.ones(len(records), dtype=np.bool_)
    clean = np.zeros(accelerator.parameters.acc_depth, dtype=np.bool_)
    for tile in output_tiles(code):
        elements = _elements(code, records[tile.reset])
        keep[tile.reset] = not clean[elements].all()
        clean[elements] = True
        records["alu_opcode"][tile.bias] = AluOpcode.MIN
        wanted[tile.bias] = tile.reset + 0.5
    order = np.argsort(wanted, kind="stable")
    order = order[keep[order]]
    return Code(records[order], code.buffers[order], code.names, code.uops)


def _elements(code: Code, reset: np.void) -> NDArray[np.int64]:
    """Return the accumulators that a reset writes."""
    outer = np.arange(int(reset["iter_out"]))[:, None] * int(reset["dst_factor_out"])
    inner = np.arange(int(reset["iter_in"])) * int(reset["dst_factor_in"])
    micro_ops = code.uops["dst"][int(reset["uop_bgn"]) : int(reset["uop_end"])].astype(np.int64)
    return (micro_ops[:, None, None] + outer + inner).reshape(-1)
