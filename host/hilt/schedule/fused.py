"""Programs of convolutions as a compiled network runs them.

A network's layer begins its sums with the bias or with a skip connection, and its tokens come from the reads and
writes of its instructions, as those of a chain do (hilt.schedule.chain). So a trial of such a workload measures what
the network runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hilt.schedule.bias_first import with_bias_first
from hilt.schedule.bias_product import BIAS_BLOCKS, BIAS_INPUT, with_bias_product
from hilt.schedule.chain import ChainLink, join
from hilt.schedule.code import Code, code_of
from hilt.schedule.reasons import Rejected
from hilt.schedule.residual import IDENTITY, RESIDUAL, Skip, with_residual
from hilt.schedule.workload import Conv2d
from hilt.vta.accelerator import Accelerator
from hilt.vta.program import Program

SKIP_SHIFTS = {"skip": 6, "shifted_skip": 7, "product_skip": 6, "product_shifted_skip": 7}
"""Left shift of a trial's skip connection. Shifts up to 6 take the same instructions, higher ones also."""


def in_form(
    workload: Conv2d, accelerator: Accelerator, lowered: Iterator[Program | Rejected]
) -> Iterator[Program | Rejected]:
    """Return programs of the plain form in the form of their workload."""
    if workload.epilogue is None:
        return lowered
    return (each if isinstance(each, Rejected) else _fused(each, workload, accelerator) for each in lowered)


def alone(code: Code, sizes: Mapping[str, int], accelerator: Accelerator) -> Program:
    """Return the program of one layer; `sizes` has the bytes of its buffers but `uop` by name."""
    names = {name: name for name in code.names if name != "uop"}
    return join([ChainLink(code, names)], sizes, accelerator).program


def _fused(program: Program, workload: Conv2d, accelerator: Accelerator) -> Program | Rejected:
    code = code_of(program, accelerator)
    sizes = {buffer.name: buffer.bytes for buffer in program.buffers}
    try:
        if workload.epilogue == "low_bias":
            code = with_bias_first(code, accelerator)
        elif workload.epilogue in SKIP_SHIFTS:
            spare = int(workload.multiplies_bias)
            code = with_residual(code, Skip(SKIP_SHIFTS[workload.epilogue]), accelerator, spare)
            sizes |= {RESIDUAL: sizes["out"], IDENTITY: accelerator.parameters.wgt_element_bytes}
    except Rejected as rejected:
        return rejected
    if workload.multiplies_bias:
        made = with_bias_product(code, accelerator)
        if made is None:
            return Rejected("wgt_overflow", "no input element or weight blocks are left for the bias")
        code, element = made, accelerator.parameters.wgt_element_bytes
        blocks = sizes["bias"] // accelerator.parameters.acc_element_bytes
        sizes |= {BIAS_BLOCKS: blocks * element, BIAS_INPUT: accelerator.parameters.inp_element_bytes}
    return alone(code, sizes, accelerator)
