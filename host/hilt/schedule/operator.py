"""The operators that hilt tunes: each is one object with its shapes, space, checks, lowering and reference.

A new operator is one module with a `Workload` and an `Operator`, and its line in `_PLACES`. Everything that tunes,
stores, measures and reports goes through the functions here, which `hilt.schedule` exports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from numpy.typing import ArrayLike

from hilt.run_choices import CheckLevel, SpaceName
from hilt.schedule.checks import Checks
from hilt.schedule.reasons import Rejected
from hilt.schedule.segments import IntArray
from hilt.schedule.space import Orders, Space, SpaceKind
from hilt.schedule.tensors import Tensors
from hilt.schedule.workload import Conv2d, WorkloadError
from hilt.vta.accelerator import Accelerator
from hilt.vta.layout import blocks
from hilt.vta.parameters import VTAParameters
from hilt.vta.program import Program

_PLACES = {
    "conv2d": "hilt.schedule.conv2d:CONV2D",
}
"""`module:object` of every operator by its name, imported when it is used."""


class Workload(Protocol):
    """An operator with its shapes. A frozen dataclass: workloads are compared, hashed and stored."""

    @property
    def name(self) -> str:
        """The text that a user calls it by."""

    @property
    def operator(self) -> str:
        """The name of its Operator."""

    @property
    def macs(self) -> int:
        """Multiply-accumulates, or the operations that count as such; 0 for an operator without any."""

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        """Batch, channels, height and width."""

    def to_dict(self) -> dict[str, object]:
        """Return plain values, for JSON, with `operator`."""

    def __hash__(self) -> int: ...


class Operator(Protocol):
    """The compiler's view of an operator. Every `workload` is one of its own."""

    def parse(self, text: str, arguments: str) -> Workload:
        """Return the workload of `text`, which is `operator:arguments`. Raises WorkloadError."""

    def from_dict(self, values: Mapping[str, object]) -> Workload:
        """Return the workload of `to_dict`'s values. Raises WorkloadError."""

    def format(self, workload: Any) -> str:
        """Return the text that `parse` reads."""

    def space(self, workload: Any, accelerator: Accelerator, orders: Orders, kind: SpaceKind) -> Space:
        """Return the space of configurations."""

    def verdicts(
        self, workload: Any, accelerator: Accelerator, columns: Mapping[str, ArrayLike], checks: Checks
    ) -> IntArray:
        """Return the Reason numbers (n,) of configurations as knob values (n,) by name; 0 is accepted."""

    def lower_many(
        self, workload: Any, accelerator: Accelerator, columns: Mapping[str, ArrayLike], checks: Checks
    ) -> Iterator[Program | Rejected]:
        """Yield the program, or the rejection, of each configuration."""

    def tensors(self, workload: Any, accelerator: Accelerator, seed: int) -> Tensors:
        """Return inputs, and the exact output by a reference in numpy; deterministic in its arguments."""

    def bound_cycles(self, workload: Any, accelerator: Accelerator, bytes_per_cycle: float | None) -> int:
        """Return a lower bound of the cycles of any program. `bytes_per_cycle`: the memory's; None: the bus's."""


@cache
def operator_named(name: str) -> Operator:
    """Return an operator. Raises WorkloadError for a name that is none."""
    if name not in _PLACES:
        raise WorkloadError(f"operator {name!r} is not one of hilt's: {', '.join(_PLACES)}")
    module, _, attribute = _PLACES[name].partition(":")
    operator: Operator = getattr(import_module(module), attribute)
    return operator


def operator_names() -> list[str]:
    """Return the names of all operators."""
    return list(_PLACES)


def workload_of(values: Mapping[str, object]) -> Workload:
    """Return the workload of stored values. Raises WorkloadError."""
    return operator_named(str(values.get("operator", "conv2d"))).from_dict(values)


def output_elements(workload: Workload, parameters: VTAParameters) -> int:
    """Return the elements of the output as the accelerator lays it out: batch and channels in whole blocks."""
    batch, channels, height, width = workload.output_shape
    images = blocks(batch, parameters.batch) * parameters.batch
    return images * blocks(channels, parameters.block) * parameters.block * height * width


def convolution(workload: Workload) -> Conv2d:
    """Return the workload as a convolution. Raises WorkloadError, for parts of hilt that know no other operator."""
    if not isinstance(workload, Conv2d):
        raise WorkloadError(f"workload {workload.name}: this needs a conv2d, not a {workload.operator}")
    return workload


def space_for(
    workload: Workload, accelerator: Accelerator, *, orders: Orders = 1, kind: SpaceKind = SpaceName.AUTOTVM
) -> Space:
    """Return the space of a workload (hilt.schedule.space describes that of a convolution)."""
    return operator_named(workload.operator).space(workload, accelerator, orders, kind)


def verdicts(
    workload: Workload, accelerator: Accelerator, columns: Mapping[str, ArrayLike], checks: Checks = CheckLevel.COMPILER
) -> IntArray:
    """Return the Reason numbers (n,) of configurations as knob values by name (Space.columns); 0 is accepted."""
    return operator_named(workload.operator).verdicts(workload, accelerator, columns, checks)


def lower_many(
    workload: Workload, columns: Mapping[str, ArrayLike], accelerator: Accelerator, checks: Checks = CheckLevel.COMPILER
) -> Iterator[Program | Rejected]:
    """Yield the result of `lower` for each of these configurations, in order; faster than one by one.

    Raises:
        ConfigurationError: The knobs are no configurations.
    """
    return operator_named(workload.operator).lower_many(workload, accelerator, columns, checks)


def lower(
    workload: Workload, knobs: Mapping[str, int], accelerator: Accelerator, checks: Checks = CheckLevel.COMPILER
) -> Program:
    """Return the program of a configuration, with buffers `uop`, `out` and the operator's inputs.

    Raises:
        Rejected: `checks` refuses the configuration; it holds the reason.
        ConfigurationError: The knobs are no configuration.
    """
    columns = {name: [value] for name, value in knobs.items()}
    (lowered,) = lower_many(workload, columns, accelerator, checks)
    if isinstance(lowered, Rejected):
        raise lowered
    return lowered


def make_tensors(workload: Workload, accelerator: Accelerator, seed: int) -> Tensors:
    """Return the tensors that programs of a workload are verified with; deterministic in the arguments."""
    return operator_named(workload.operator).tensors(workload, accelerator, seed)


def bound_cycles(workload: Workload, accelerator: Accelerator, bytes_per_cycle: float | None = None) -> int:
    """Return a lower bound of the cycles. `bytes_per_cycle`: the memory's; the bus's unless given."""
    return operator_named(workload.operator).bound_cycles(workload, accelerator, bytes_per_cycle)
