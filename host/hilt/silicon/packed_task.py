"""One tuning task in TVM's packed shapes, as the published logs name it."""

from __future__ import annotations

from dataclasses import dataclass

from hilt.vta.parameters import VTAParameters

CONV2D = "conv2d_packed.vta"
GROUP_CONV2D = "group_conv2d_packed.vta"
CONV2D_TRANSPOSE = "conv2d_transpose_packed.vta"
DENSE = "dense_packed.vta"
TASKS = (CONV2D, GROUP_CONV2D, CONV2D_TRANSPOSE, DENSE)

SHIFT = 8
CLIP = (0, 127)
"""Every record's task ends in these: a right shift, a maximum and a minimum, without a bias."""


class TaskError(ValueError):
    """A task or configuration that TVM's VTA templates do not have; the message says which and why."""


@dataclass(frozen=True)
class PackedTask:
    """A convolution or a dense layer on blocks of channels.

    Attributes:
        kind: One of TASKS.
        batch: Blocks of images; rows of a dense layer.
        in_blocks: Blocks of input channels, all groups together.
        height: Rows of the input image.
        width: Columns of the input image.
        out_blocks: Blocks of output channels, all groups together.
        reduce_blocks: Blocks of input channels that one output sums over.
        kernel: Rows and columns of the kernel.
        strides: Rows and columns between two outputs; of a transposed convolution, those that its input is spread by.
        padding: Rows and columns of zeros on each side.
        images: Images of a block.
        block: Channels of a block.
    """

    kind: str
    batch: int
    in_blocks: int
    height: int
    width: int
    out_blocks: int
    reduce_blocks: int
    kernel: tuple[int, int]
    strides: tuple[int, int]
    padding: tuple[int, int]
    images: int
    block: int

    @property
    def groups(self) -> int:
        """Groups of whole blocks."""
        return self.in_blocks // self.reduce_blocks

    @property
    def input_size(self) -> tuple[int, int]:
        """Rows and columns that the kernel slides over, without padding: a transposed convolution's are spread."""
        if self.kind != CONV2D_TRANSPOSE:
            return self.height, self.width
        return (self.height - 1) * self.strides[0] + 1, (self.width - 1) * self.strides[1] + 1

    @property
    def slide(self) -> tuple[int, int]:
        """Rows and columns between two outputs on that input."""
        return (1, 1) if self.kind == CONV2D_TRANSPOSE else self.strides

    @property
    def pads(self) -> tuple[int, int]:
        """Rows and columns of zeros on each side of that input."""
        if self.kind != CONV2D_TRANSPOSE:
            return self.padding
        return self.kernel[0] - 1 - self.padding[0], self.kernel[1] - 1 - self.padding[1]

    @property
    def output_size(self) -> tuple[int, int]:
        """Rows and columns of the output."""
        rows, columns = (
            (self.input_size[axis] + 2 * self.pads[axis] - self.kernel[axis]) // self.slide[axis] + 1 for axis in (0, 1)
        )
        return rows, columns

    @property
    def micro_ops(self) -> int:
        """GEMM micro-ops, each of which a VTA needs a cycle for."""
        rows, columns = self.output_size
        taps = self.kernel[0] * self.kernel[1]
        return self.batch * self.out_blocks * rows * columns * self.reduce_blocks * taps

    @property
    def name(self) -> str:
        """The workload in one word."""
        if self.kind == DENSE:
            return f"dense_{self.batch}x{self.in_blocks}x{self.out_blocks}b{self.images}x{self.block}"
        prefix = {CONV2D: "conv2d", GROUP_CONV2D: "group_conv2d", CONV2D_TRANSPOSE: "conv2d_transpose"}[self.kind]
        shape = f"{self.in_blocks}x{self.height}x{self.width}_{self.out_blocks}_{self.kernel[0]}x{self.kernel[1]}"
        return f"{prefix}_{shape}_s{self.strides[0]}p{self.padding[0]}b{self.images}x{self.block}"

    def check_geometry(self, parameters: VTAParameters) -> None:
        """Raise TaskError where blocks are not of this accelerator's size."""
        if (self.images, self.block) != (parameters.batch, parameters.block):
            raise TaskError(
                f"task {self.name}: blocks of {self.images}x{self.block}, but the board's are "
                f"{parameters.batch}x{parameters.block}; take the board that the task was packed for"
            )


def packed_task(
    kind: str, data: tuple[int, ...], kernel: tuple[int, ...], strides: tuple[int, int], padding: tuple[int, int]
) -> PackedTask:
    """Return the task of these packed shapes.

    Args:
        kind: One of TASKS.
        data: (N, C, H, W, images, block), or (N, C, images, block) of a dense layer.
        kernel: (CO, CI, KH, KW, block, block), or (CO, CI, block, block) of a dense layer.
        strides: Rows and columns; (1, 1) of a dense layer.
        padding: Rows and columns on each side; (0, 0) of a dense layer.

    Raises:
        TaskError: The shapes do not make a task.
    """
    _check_shapes(kind, data, kernel)
    dense = kind == DENSE
    batch, in_blocks = data[:2]
    height, width = (1, 1) if dense else data[2:4]
    taps = (1, 1) if dense else (kernel[2], kernel[3])
    task = PackedTask(
        kind, batch, in_blocks, height, width, kernel[0], kernel[1], taps, strides, padding, data[-2], data[-1]
    )
    if min(strides) < 1 or min(task.pads) < 0 or min(task.output_size) < 1:
        raise TaskError(f"task {task.name}: strides {strides} and padding {padding} leave no output")
    return task


def _check_shapes(kind: str, data: tuple[int, ...], kernel: tuple[int, ...]) -> None:
    """Raise TaskError unless a kind's data and kernel are packed shapes that fit each other."""
    if kind not in TASKS:
        raise TaskError(f"task {kind!r}: hilt knows {', '.join(TASKS)}; leave the record out")
    if len(data) != (4 if kind == DENSE else 6) or len(kernel) != len(data) or min(*data, *kernel) < 1:
        raise TaskError(f"task {kind}: data {list(data)} and kernel {list(kernel)} are not packed shapes of it")
    if data[-1] != kernel[-1] or kernel[-2] != kernel[-1]:
        raise TaskError(
            f"task {kind}: blocks of {data[-1]} in the data and {kernel[-2]}x{kernel[-1]} in the kernel differ"
        )
    _check_blocks(kind, data[1], kernel)


def _check_blocks(kind: str, in_blocks: int, kernel: tuple[int, ...]) -> None:
    """Raise TaskError unless the blocks of input channels are those of the kernel, or its groups'."""
    if in_blocks % kernel[1] or kernel[0] % (in_blocks // kernel[1]):
        raise TaskError(f"task {kind}: {in_blocks} blocks of data are no multiple of the kernel's {kernel[1]}")
    if kind != GROUP_CONV2D and in_blocks != kernel[1]:
        raise TaskError(f"task {kind}: {in_blocks} blocks of data, {kernel[1]} of the kernel; they must be the same")
