"""The operator conv2d: convolutions, and all that a convolution computes (hilt.schedule.operator)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from numpy.typing import ArrayLike

from hilt.schedule import bounds, catalogue, checks, fused, lowering, space, tensors, workload_syntax
from hilt.schedule.segments import IntArray
from hilt.schedule.workload import Conv2d
from hilt.vta.accelerator import Accelerator
from hilt.vta.program import Program


class Conv2dOperator:
    """Hold together the modules that know the convolution."""

    def parse(self, text: str, arguments: str) -> Conv2d:
        """See Operator."""
        return Conv2d.from_dict(catalogue.conv2d_fields(text, arguments))

    def from_dict(self, values: Mapping[str, object]) -> Conv2d:
        """See Operator."""
        return Conv2d.from_dict(values)

    def format(self, workload: Conv2d) -> str:
        """See Operator."""
        return workload_syntax.format_conv2d(workload)

    def space(
        self, workload: Conv2d, accelerator: Accelerator, orders: space.Orders, kind: space.SpaceKind
    ) -> space.Space:
        """See Operator."""
        return space.conv2d_space(workload, accelerator, orders=orders, kind=kind)

    def verdicts(
        self, workload: Conv2d, accelerator: Accelerator, columns: Mapping[str, ArrayLike], level: checks.Checks
    ) -> IntArray:
        """See Operator."""
        return checks.verdicts(workload, accelerator, columns, level)

    def lower_many(
        self, workload: Conv2d, accelerator: Accelerator, columns: Mapping[str, ArrayLike], level: checks.Checks
    ) -> Iterator[Program | checks.Rejected]:
        """See Operator."""
        return fused.in_form(workload, accelerator, lowering.lower_many(workload, columns, accelerator, level))

    def tensors(self, workload: Conv2d, accelerator: Accelerator, seed: int) -> tensors.Tensors:
        """See Operator."""
        return tensors.make_tensors(workload, accelerator, seed)

    def bound_cycles(self, workload: Conv2d, accelerator: Accelerator, bytes_per_cycle: float | None) -> int:
        """See Operator."""
        return bounds.bound_cycles(workload, accelerator, bytes_per_cycle)


CONV2D = Conv2dOperator()
