"""A workload: an operator with its shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

_MOST_ELEMENTS = 1 << 31
"""Largest tensor in elements: half of the range of a VTA's 32-bit addresses."""


EPILOGUES = ("bias", "low_bias", "product_bias", "skip", "shifted_skip", "product_skip", "product_shifted_skip")
"""The forms in which a compiled network runs a convolution (hilt.schedule.fused)."""

_OLDER_FIELDS = {"padding_behind": "padding_end", "stretch": "input_dilation"}
"""Names of fields in records of hilt 0.1."""


class WorkloadError(ValueError):
    """A workload that is not known, cannot be read, or that hilt cannot run; the message says which and why."""


@dataclass(frozen=True)
class Conv2d:
    """int8 NCHW convolution; then (sum + bias) >> shift, clipped to `clip` (both limits included), as int8.

    Pairs are (height, width). `input_dilation` is XLA's lhs_dilation: only every so many-th row and column of the
    input holds data and the others are zeros, as in a transposed convolution. A dense layer is a 1 x 1 convolution of
    1 x 1 images. `kernel` counts taps; `dilation` leaves rows and columns without a tap between them. `name` is how
    the user calls it and does not make two workloads different.
    Raises WorkloadError if the shapes make no convolution.
    """

    name: str
    batch: int
    in_channels: int
    height: int
    width: int
    out_channels: int
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    groups: int = 1
    bias: bool = False
    shift: int = 8
    clip: tuple[int, int] = (0, 127)
    input_dilation: tuple[int, int] = (1, 1)
    padding_end: tuple[int, int] | None = None
    """Below and to the right, if that is not as above and to the left."""
    epilogue: str | None = None
    """The form of a compiled network, one of EPILOGUES; None: the plain form.

    `bias` adds the bias behind the sums. `low_bias` begins each tile with a bias below the clip. `product_bias` adds
    products that are the bias. `skip` and `shifted_skip` also add a tensor like the output, multiplied by a power of
    two up to 2^6, or a higher one; `product_skip` and `product_shifted_skip` are the same with products.
    """
    dilation: tuple[int, int] = (1, 1)
    """Rows and columns of the input from one tap of the kernel to the next."""

    def __post_init__(self) -> None:
        for field in ("batch", "in_channels", "height", "width", "out_channels", "groups"):
            self._require(getattr(self, field) >= 1, f"{field} is {getattr(self, field)}; it must be at least 1")
        self._check_axis(0, "height", self.height)
        self._check_axis(1, "width", self.width)
        if self.padding_end == self.padding:
            object.__setattr__(self, "padding_end", None)
        if 1 in self.kernel:  # one tap has no next one
            apart = (1 if taps == 1 else gap for taps, gap in zip(self.kernel, self.dilation, strict=True))
            object.__setattr__(self, "dilation", tuple(apart))
        self._require(
            self.in_channels % self.groups == 0 and self.out_channels % self.groups == 0,
            f"{self.groups} groups do not divide {self.in_channels} and {self.out_channels} channels",
        )
        for tensor, elements in self._elements().items():
            self._require(
                elements <= _MOST_ELEMENTS,
                f"its {tensor} has {elements:,} elements; a VTA can address {_MOST_ELEMENTS:,} of a tensor",
            )
        self._require(0 <= self.shift <= 15, f"shift is {self.shift}; VTA shifts right by 0 to 15")
        low, high = self.clip
        self._require(-128 <= low <= high <= 127, f"clip is {low}:{high}; it must be an interval of int8")
        if self.epilogue is not None:
            self._require(self.epilogue in EPILOGUES, f"epilogue {self.epilogue!r} is none of {', '.join(EPILOGUES)}")
            self._require(self.bias, f"epilogue {self.epilogue} needs bias=1")
            self._require(
                self.shift > 0 or self.epilogue != "low_bias", "epilogue low_bias needs a shift of at least 1"
            )

    def _check_axis(self, axis: int, side: str, size: int) -> None:
        """Raise WorkloadError for windows that do not fit along an axis."""
        kernel, stride, padding = self.kernel[axis], self.stride[axis], self.padding[axis]
        self._require(kernel >= 1 and stride >= 1, f"kernel and stride of {side} must be at least 1")
        for name, gaps in (("input dilation", self.input_dilation), ("dilation", self.dilation)):
            self._require(gaps[axis] >= 1, f"{name} of {side} is {gaps[axis]}; it must be at least 1")
        pad_end, reach = self.pad_end[axis], self.reach[axis]
        self._require(min(padding, pad_end) >= 0, f"padding of {side} is {padding}; it must be at least 0")
        self._require(reach <= size + padding + pad_end, f"the kernel's {side} {reach} exceeds the padded input's")

    def _elements(self) -> dict[str, int]:
        """Return the elements of each tensor. Weights count as without groups, as they are computed together."""
        return {
            "input": self.batch * self.in_channels * self.height * self.width,
            "weight": self.out_channels * self.in_channels * self.kernel[0] * self.kernel[1],
            "output": self.batch * self.out_channels * self.out_height * self.out_width,
        }

    def _require(self, holds: bool, message: str) -> None:
        if not holds:
            raise WorkloadError(f"workload {self.name}: {message}")

    @property
    def operator(self) -> str:
        """The name of its operator (hilt.schedule.operator)."""
        return "conv2d"

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        """Batch, channels, height and width."""
        return self.batch, self.out_channels, self.out_height, self.out_width

    @property
    def pad_end(self) -> tuple[int, int]:
        """Padding below and to the right."""
        return self.padding if self.padding_end is None else self.padding_end

    @property
    def reach(self) -> tuple[int, int]:
        """Rows and columns of the input from a window's first tap to its last, both included."""
        high, wide = self.kernel
        return (high - 1) * self.dilation[0] + 1, (wide - 1) * self.dilation[1] + 1

    @property
    def out_height(self) -> int:
        return (self.height + self.padding[0] + self.pad_end[0] - self.reach[0]) // self.stride[0] + 1

    @property
    def out_width(self) -> int:
        return (self.width + self.padding[1] + self.pad_end[1] - self.reach[1]) // self.stride[1] + 1

    @property
    def macs(self) -> int:
        """Multiply-accumulates; two operations each."""
        taps = self.in_channels // self.groups * self.kernel[0] * self.kernel[1]
        return self.batch * self.out_channels * self.out_height * self.out_width * taps

    def block_groups(self, block: int) -> int:
        """Groups that an accelerator of this block computes apart: as many as have whole blocks of channels.

        Groups with less are computed together, with zeros for the weights between them.
        """
        return max(
            groups
            for groups in range(1, self.groups + 1)
            if self.groups % groups == 0
            and (groups == 1 or (self.in_channels // groups % block == 0 and self.out_channels // groups % block == 0))
        )

    @property
    def has_skip(self) -> bool:
        """Whether a tensor like the output is added to the sums."""
        return self.epilogue is not None and self.epilogue.endswith("skip")

    @property
    def multiplies_bias(self) -> bool:
        """Whether the bias is made of products."""
        return self.epilogue is not None and self.epilogue.startswith("product")

    @property
    def plain(self) -> Conv2d:
        """This workload in the plain form."""
        return self if self.epilogue is None else replace(self, epilogue=None)

    @property
    def schedule_shape(self) -> Conv2d:
        """This workload without the fields that affect no schedule: its name, bias, shift and clip."""
        return replace(self, name="", bias=True, shift=8, clip=(0, 127))

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON; from_dict makes the same workload of them.

        A dilation of one is left out, as in the records of hilt without dilations.
        """
        return {"operator": "conv2d"} | {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
            if value is not None and (key, value) != ("dilation", (1, 1))
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Conv2d:
        """Return the workload of plain values.

        Raises WorkloadError for an operator or a field that hilt does not have.
        """
        arguments = {_OLDER_FIELDS.get(field, field): value for field, value in values.items()}
        operator = arguments.pop("operator", "conv2d")
        if operator != "conv2d":
            raise WorkloadError(f"operator {operator!r} is not one of hilt's: conv2d")
        for key, value in arguments.items():
            if isinstance(value, list):
                arguments[key] = tuple(value)
        try:
            return cls(**arguments)  # type: ignore[arg-type]  # __post_init__ and TypeError check the values
        except TypeError as error:
            raise WorkloadError(f"not a workload: {error}") from error


def is_dense(workload: Conv2d) -> bool:
    """Return whether this is a convolution of images of one pixel by a kernel of one."""
    one = (1, 1)
    pixel = (workload.height, workload.width) == workload.kernel == workload.stride == workload.input_dilation == one
    return pixel and workload.padding == workload.pad_end == (0, 0)
