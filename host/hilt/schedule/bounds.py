"""Lower bounds of a workload's cycles, and the usual figures of merit."""

from __future__ import annotations

from hilt.schedule.operator import Workload
from hilt.schedule.tiling import TilingProblem
from hilt.schedule.workload import Conv2d
from hilt.vta.accelerator import Accelerator


def bound_cycles(workload: Conv2d, accelerator: Accelerator, bytes_per_cycle: float | None = None) -> int:
    """Return the roofline bound in cycles: the larger of one GEMM micro-op a cycle and every needed byte moved once.

    A skip connection takes one micro-op for each output element, and its tensor is moved once.
    Channels and batch count in whole blocks, for the accelerator computes and moves nothing smaller.
    `bytes_per_cycle` is the memory's; that of the read ports where it is not given.
    """
    problem = TilingProblem.of(workload, accelerator)
    pixels = problem.out_height * problem.out_width
    sums = problem.ci * problem.taps + workload.has_skip
    micro_ops = problem.batch * problem.all_co * sums * pixels
    bandwidth = accelerator.bytes_per_cycle if bytes_per_cycle is None else bytes_per_cycle
    return max(micro_ops, int(-(-least_bytes(workload, accelerator) // bandwidth)))


def least_bytes(workload: Conv2d, accelerator: Accelerator) -> int:
    """Return the needed bytes: input that any output depends on, weights, bias, skip and output, each once."""
    problem = TilingProblem.of(workload, accelerator)
    parameters = accelerator.parameters
    rows, columns = (_needed(workload, axis) for axis in (0, 1))
    output = problem.batch * problem.all_co * problem.out_height * problem.out_width * parameters.out_element_bytes
    return (
        problem.batch * problem.all_ci * rows * columns * parameters.inp_element_bytes
        + problem.wgt_elements * parameters.wgt_element_bytes
        + problem.bias_elements * parameters.acc_element_bytes
        + output * (2 if workload.has_skip else 1)
    )


def _needed(workload: Conv2d, axis: int) -> int:
    """Return the number of input rows (columns) that some output depends on."""
    size = (workload.height, workload.width)[axis]
    out = (workload.out_height, workload.out_width)[axis]
    first = range(-workload.padding[axis], out * workload.stride[axis] - workload.padding[axis], workload.stride[axis])
    reach, gap = workload.reach[axis], workload.dilation[axis]
    return len({row for start in first for row in range(start, start + reach, gap) if 0 <= row < size})


def giga_operations_per_second(workload: Workload, microseconds: float) -> float:
    """Return GOP/s; a multiply-accumulate is two operations, and padding of channels is none."""
    return 2 * workload.macs / microseconds / 1e3
