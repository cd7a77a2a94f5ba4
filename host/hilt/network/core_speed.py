"""The time of a step on a board's processor, from counted instructions and a stated model of its core.

`step_seconds(core_of("virtual:pynq"), "native", node_work(graph, node))` is the seconds of a node on a PYNQ-Z2's
Cortex-A9 in the runtime's native engine, `"numpy"` in numpy. `pack_work` and `unpack_work` are the steps that move a
tensor into VTA's layout and back, `START_SECONDS` one start of VTA. Nothing else is needed.

Seconds = calls + instructions / (instructions a cycle * clock * cores at work) + bytes / bytes a second. Bytes come
from the cache if the step's tensors fit the last level of it, else from memory; more cores do not read them faster.
Steps that run strip by strip (`chain_seconds`) keep the tensors between them in each core's first level.
The native engine cuts a large step in pieces for all cores (hilt_runtime.native.split).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from numpy.typing import NDArray

from hilt.network.graph import Graph, Node, Tensor
from hilt_runtime.native.library import MOST_THREADS
from hilt_runtime.native.split import LEAST

Engine = Literal["native", "numpy"]
Architecture = Literal["armhf", "arm64"]


@dataclass(frozen=True)
class Core:
    """A processor's core, as the model has it.

    Attributes:
        name: Its name and clock, in words.
        architecture: Debian's name of the instruction set.
        clock_hz: Cycles a second.
        instructions_per_cycle: Of the native kernels, whose loops are vectors of loads, integer operations and stores.
        cached_bytes: Of the last level of its cache.
        cached_bytes_per_second: Read and written bytes of tensors that fit it.
        memory_bytes_per_second: The same of tensors that do not, and of the contiguous memory, which is flushed.
        near_bytes_per_cycle: The same of tensors that fit the first level of the cache, 32 KiB in each core.
        python_call_seconds: One operator in numpy: Python, set-up, allocation.
        numpy_slower: How many times slower numpy is than on a current desktop processor: hilt's old factor.
        cores: That run the pieces of a large step.
        wake_seconds: From a step's begin to its first piece on another core, whose helper sleeps before.
        error: How many times too long or too short a time of the native engine may be.
    """

    name: str
    architecture: Architecture
    clock_hz: float
    instructions_per_cycle: float
    cached_bytes: int
    cached_bytes_per_second: float
    memory_bytes_per_second: float
    python_call_seconds: float
    numpy_slower: float
    cores: int
    wake_seconds: float
    near_bytes_per_cycle: float = 8.0
    error: float = 2.0


CORTEX_A9 = Core("Cortex-A9, 650 MHz", "armhf", 650e6, 0.8, 512 << 10, 1.6e9, 0.5e9, 100e-6, 20.0, 2, 40e-6)
"""PYNQ-Z1 and PYNQ-Z2: 32 bits, NEON of 64 bits a cycle, 512 KiB of second-level cache, 16 or 32 bits of DDR3."""
CORTEX_A53 = Core("Cortex-A53, 1.2 GHz", "arm64", 1.2e9, 1.0, 1 << 20, 4.0e9, 2.0e9, 40e-6, 8.0, 4, 20e-6)
"""Zynq UltraScale+: 64 bits, in order, two instructions a cycle at most, 1 MiB of second-level cache."""

CORES: Mapping[str, Core] = {"cortex-a9": CORTEX_A9, "cortex-a53": CORTEX_A53}
_CORES: Mapping[str, Core] = {"xc7": CORTEX_A9, "xczu": CORTEX_A53}
START_SECONDS: Mapping[Engine, float] = {"native": 5e-6, "numpy": 150e-6}
"""One start of VTA and the wait for it, besides its own time: registers written and read through a mapped page by the
native engine, through pynq's MMIO by Python on a Cortex-A9."""


@dataclass(frozen=True)
class StepWork:
    """A step's work.

    Attributes:
        op: A key of hilt.network.graph.OPERATORS, ONNX's name of an operator, or pack, unpack or fold. A recurrent
            operator of int8 weights has int8 behind its name.
        elements: Of its outputs; for a pool times the window.
        bytes: Read and written.
        macs: Multiply-accumulates; of a fold of floats, those that it quantises.
        contiguous_bytes: Written to or read from the memory that VTA reads.
        parts: That the step can be cut in, at most.
        shared_macs: Of the multiply-accumulates: those that all cores share, whatever `parts` is.
    """

    op: str
    elements: int
    bytes: int
    macs: int = 0
    contiguous_bytes: int = 0
    parts: int = MOST_THREADS
    shared_macs: int = 0


_SMALLEST_CACHE = min(core.cached_bytes for core in CORES.values())
_CALL_SECONDS = 2e-6
"""A native step besides its elements, on a Cortex-A9: parameters, two readings of the clock."""
_TURN_SECONDS = 2e-6
"""From a step's begin to its first piece on another core, whose helper watches, and from its last piece to the step's
end, on a Cortex-A9: lines of the cache change hands."""
_STRIP_INSTRUCTIONS = (172.0, 114.0)
"""Instructions of one step for each strip, on armhf and arm64: the buffers move on, the kernel is called."""

_PER_ELEMENT: Mapping[str, tuple[float, float]] = {
    "quantize": (1.82, 1.38),
    "dequantize": (2.9, 1.1),
    "pack": (1.35, 0.51),
    "pack last": (0.63, 0.33),
    "unpack": (1.5, 0.62),
    "fold": (0.74, 0.69),
    "fold last": (0.58, 0.64),
    "fold floats": (0.95, 0.84),
    "fold floats last": (0.56, 0.61),
    "table": (3.44, 0.88),
    "pixel_table": (5.0, 1.06),
    "prelu": (1.35, 1.27),
    "prelu packed": (1.2, 1.13),
    "normalization": (4.15, 3.21),
    "normalization packed": (4.67, 3.69),
    "normalization of pixels": (7.06, 5.6),
    "normalization of pixels packed": (8.42, 7.1),
    "add": (2.01, 1.75),
    "multiply": (1.4, 1.21),
    "max_pool": (12.4, 10.1),
    "average_pool": (13.3, 10.7),
    "global_average_pool": (0.64, 0.53),
    "average_pool packed": (1.33, 1.11),
    "global_average_pool packed": (1.82, 0.68),
    "max_pool packed": (1.33, 1.18),
    "multiply packed": (1.13, 0.94),
    "upsample": (4.1, 2.16),
    "upsample of pairs": (1.37, 0.91),
    "interpolate": (18.5, 12.1),
    "upsample packed": (1.91, 1.22),
    "concat of lanes": (1.18, 0.37),
    "depth_to_space of lanes": (1.88, 0.73),
    "pad of lanes": (0.8, 0.26),
    "softmax": (9.52, 8.77),
    "concat": (0.25, 0.14),
    "slice": (1.5, 1.0),
    "pad": (1.4, 0.75),
    "pad of own elements": (1.76, 0.97),
    "pad of own elements packed": (0.83, 0.54),
    "transpose": (1.35, 0.51),
    "depth_to_space": (10.2, 4.3),
    "depth_to_space of pairs": (1.22, 0.87),
    "reshape": (0.0, 0.0),
    "fixed_matmul": (4.1, 3.1),
    "LSTM": (362.0, 198.0),
    "GRU": (282.0, 169.0),
    "RNN": (104.0, 80.0),
    "LSTM int8": (250.0, 192.0),
    "GRU int8": (203.0, 157.0),
    "RNN int8": (71.0, 57.0),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Relu", "Abs", "Neg"), (2.02, 1.26)),
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceSumSquare"), (3.64, 2.83)),
    **dict.fromkeys(("ReduceMax", "ReduceMin"), (5.12, 4.29)),
    "LayerNormalization": (14.6, 7.55),
    "InstanceNormalization": (14.1, 6.74),
    "LeakyRelu": (8.02, 1.51),
    "Clip": (18.1, 10.1),
    "Where": (13.7, 10.2),
    "Where by one": (1.91, 1.88),
    "Exp": (43.1, 17.8),
    "Log": (56.1, 44.1),
    "Sigmoid": (51.1, 22.1),
    "Tanh": (47.7, 28.1),
    "Gelu": (82.1, 42.6),
    "Softmax": (11.2, 10.5),
    "LogSoftmax": (24.2, 21.0),
}
"""Instructions an element of the output (a pool: of each tap) on armhf and on arm64, as `make native` counts them.

An element of a recurrent operator takes its gates' functions, and what its rows take beside products: the difference
of two sizes. A fixed_matmul rounds its data: an element counts as two, a result as three, in int8 as four.
"""
_VIEWS = frozenset(("reshape", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"))
_MOVES = frozenset(("Concat", "Slice", "Split", "Pad", "Gather", "Expand", "Tile", "Resize"))
_TRANSCENDENTAL = frozenset(("Erf", "Softplus", "Mish", "Elu", "Pow", "Selu"))
_RECURRENT = ("LSTM", "GRU", "RNN")
_PRODUCTS = ("MatMul", "Gemm", "fixed_matmul")
_WHOLE_IMAGE = ("global_average_pool", "GlobalAveragePool", "GlobalMaxPool")
_ON_ONE_CORE = frozenset(
    ("dense", "ArgMax", "ArgMin", "Gather", "GatherElements", "ScatterND", "Tile", "Expand", "Where")
)
_OTHERS = (6.5, 1.3)
_MOVED = (1.5, 1.0)
_TRANSPOSED = (3.2, 3.0)
_SCATTERED = (10.2, 4.3)
_COMPUTED = (120.0, 60.0)
_PER_MAC: Mapping[str, tuple[float, float]] = {
    "conv2d": (12.4, 6.1),
    "dense": (0.81, 0.62),
    **dict.fromkeys(("MatMul", "Gemm"), (2.62, 1.23)),
    **dict.fromkeys(("MatMul of a row", "Gemm of a row"), (3.6, 1.6)),
    "counted_sum": (3.59, 1.48),
    "fixed_matmul": (0.43, 0.41),
    **dict.fromkeys(("fold floats", "fold floats last"), (1.82, 1.38)),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), (3.46, 1.54)),
    **dict.fromkeys(("LSTM int8", "GRU int8", "RNN int8"), (0.50, 0.45)),
}
_PER_FLOAT_MAC = (7.2, 2.7)
_NUMPY_MACS_PER_SECOND = 60e6
_NUMPY_BYTES_PER_SECOND = 100e6
"""Of a Cortex-A9; a core that is `numpy_slower` by less has as many times more."""


_FORMS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], bool]]] = {
    "depth_to_space": ("of pairs", lambda attributes: bool(attributes["block"][1] == 2)),
    "normalization": ("of pixels", lambda attributes: not attributes["groups"]),
    "pad": ("of own elements", lambda attributes: "mode" in attributes),
    "upsample": ("of pairs", lambda attributes: bool(attributes["factors"][1] == 2)),
}
"""Forms of operators that have other costs, and the attributes that they are told by."""


def core_of(board: str) -> Core:
    """Return the core of a board by its name. A real board that names no part is taken to be a PYNQ-Z2.

    Raises UnknownBoardModelError or BoardNameError of a virtual board that there is none of.
    """
    from hilt.virtual.names import PREFIX, parse_virtual_name

    part = parse_virtual_name(board)[0].part if board.startswith(PREFIX) else _real_part(board)
    return next((core for family, core in _CORES.items() if part.startswith(family)), CORTEX_A9)


def _real_part(board: str) -> str:
    words = board.lower()
    return "xczu" if any(name in words for name in ("ultra96", "zcu", "kv260", "kria")) else "xc7"


def node_work(graph: Graph, node: Node) -> StepWork:
    """Return the work of a node of a graph."""
    inputs, outputs = _tensors(graph, node.inputs), _tensors(graph, node.outputs)
    constants = [graph.constants[name] for name in node.inputs if name in graph.constants]
    moved, shapes = _moved_bytes((*inputs, *outputs), constants), [tuple(tensor.shape) for tensor in inputs]
    if node.op in _RECURRENT and len(constants) > 1:
        return _recurrent_work(node, shapes, constants, moved)
    op, elements = _form(graph, node, shapes), _elements(node, inputs, outputs)
    macs = graph.macs(node) or _float_macs(node, shapes, constants, elements)
    if op == "fixed_matmul":
        elements = 2 * inputs[0].size + (4 if "step" in node.attributes else 3) * elements
    return StepWork(op, elements * _window(node), moved, macs, parts=_parts(node, shapes))


def _form(graph: Graph, node: Node, shapes: Sequence[tuple[int, ...]]) -> str:
    """Return a node's operator, or the name of a form of it that has other costs; `shapes` are of computed inputs."""
    if node.op == "Where" and _is_of_one(graph, node.inputs[0]):
        return "Where by one"
    if node.op in ("MatMul", "Gemm") and shapes and shapes[0][-2:-1] in ((), (1,)):
        return f"{node.op} of a row"
    form = _FORMS.get(node.op)
    return f"{node.op} {form[0]}" if form and form[1](node.attributes) else node.op


def _elements(node: Node, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
    """Return the elements of a node's outputs; of a reduction those of its largest input."""
    made = sum(tensor.size for tensor in outputs)
    reduces = node.op in _WHOLE_IMAGE or node.op.startswith("Reduce")
    return max((tensor.size for tensor in inputs), default=made) if reduces else made


def _recurrent_work(
    node: Node, shapes: Sequence[tuple[int, ...]], constants: Sequence[NDArray[Any]], moved: int
) -> StepWork:
    """Return the work of a recurrent operator; `moved` are its bytes, read and written once."""
    op, elements, again = _recurrence(node.op, shapes[0], constants[1])
    int8, rows = op.endswith(" int8"), math.prod(shapes[0][:2])
    shared = int(constants[0].size) * rows if rows > 1 or int8 else 0
    macs = _float_macs(node, shapes, constants, elements)
    return StepWork(op, elements, moved + again, macs, parts=_parts(node, shapes, int8), shared_macs=shared)


def _recurrence(op: str, shape: Sequence[int], weights: NDArray[Any]) -> tuple[str, int, int]:
    """Return a recurrent operator's name in the table, its elements, and the bytes that its later steps read again.

    Args:
        op: The operator.
        shape: Of its data: steps, batch, inputs.
        weights: Of the state: (directions, gates * hidden, hidden).
    """
    elements = math.prod(shape[:2]) * weights.shape[0] * weights.shape[2]
    again = int(weights.nbytes) * (int(shape[0]) - 1) if weights.nbytes > _SMALLEST_CACHE else 0
    return f"{op} int8" if weights.dtype == "int8" else op, elements, again


def _is_of_one(graph: Graph, name: str) -> bool:
    """Tell whether a tensor or constant has one element."""
    return (graph.constants[name].size if name in graph.constants else graph.tensors[name].size) == 1


def _tensors(graph: Graph, names: Sequence[str]) -> list[Tensor]:
    return [graph.tensors[name] for name in names if name in graph.tensors]


def _moved_bytes(tensors: Sequence[Tensor], constants: Sequence[NDArray[Any]]) -> int:
    moved = sum(tensor.size * item_bytes(tensor.dtype) for tensor in tensors)
    return moved + sum(int(constant.nbytes) for constant in constants)


def _window(node: Node) -> int:
    """Return the taps of an element of a pool; 1 of others."""
    if node.op in _WHOLE_IMAGE or not node.op.lower().endswith("pool"):
        return 1
    return math.prod(int(size) for size in node.attributes.get("kernel", node.attributes.get("kernel_shape", ())))


def _parts(node: Node, shapes: Sequence[tuple[int, ...]], int8: bool = False) -> int:
    """Return how many pieces the native engine can cut a node in, at most; `int8`: its weights are."""
    outer = MOST_THREADS
    if node.op in _ON_ONE_CORE or not shapes:
        return 1
    if node.op in _RECURRENT:
        outer = _recurrent_parts(node, shapes[0], int8)
    elif node.op in ("MatMul", "Gemm"):
        outer = next((size for size in shapes[0][:-1] if size > 1), 1)
    elif node.op == "pixel_table":
        outer = math.prod(shapes[0][: int(node.attributes["axis"])])
    elif node.op in ("conv2d", "Conv") and int(node.attributes.get("groups", node.attributes.get("group", 1))) > 1:
        outer = 1
    return min(max(outer, 1), MOST_THREADS)


def _recurrent_parts(node: Node, shape: Sequence[int], int8: bool) -> int:
    if node.attributes.get("direction") == "bidirectional":
        return 2
    only_step = shape[0] * shape[1] == 1
    return MOST_THREADS if node.op == "LSTM" and int8 and only_step else 1  # the units of the only step


def _float_macs(node: Node, shapes: Sequence[tuple[int, ...]], constants: Sequence[NDArray[Any]], elements: int) -> int:
    if node.op == "counted_sum":
        return elements * len(constants[0])
    if node.op in _RECURRENT:
        return _recurrent_macs(shapes, constants)
    if node.op in ("Conv", "ConvTranspose"):
        return elements * (math.prod(constants[0].shape[1:]) if constants else 1)
    return elements * shapes[0][-1] if node.op in _PRODUCTS and shapes and shapes[0] else 0


def _recurrent_macs(shapes: Sequence[tuple[int, ...]], constants: Sequence[NDArray[Any]]) -> int:
    steps = math.prod(shapes[0][:2]) if shapes else 1
    return sum(int(constant.size) for constant in constants[:2]) * steps


def pack_work(
    shape: Sequence[int], packed_bytes: int, fold: bool = False, last: bool = False, copied: int = 0
) -> StepWork:
    """Return the work of packing (or folding) an int8 tensor of `shape` into `packed_bytes` of VTA's memory.

    `last`: the tensor's channels are last. `copied`: bytes of the tensor whose channels are a kernel's rows. Their
    copying counts a quarter of a fold's instructions, the steps that it takes included.
    """
    op = ("fold" if fold else "pack") + (" last" if last else "")
    moved = math.prod(shape) + 2 * copied + packed_bytes
    parts = 1 if op == "pack last" else MOST_THREADS
    return StepWork(op, packed_bytes + copied // 4, moved, 0, packed_bytes, parts)


def fold_of_floats_work(shape: Sequence[int], packed_bytes: int, last: bool = False) -> StepWork:
    """Return the work of a fold that quantises its image of floats itself (hilt_runtime.native.folds)."""
    size = math.prod(shape)
    return StepWork(
        "fold floats last" if last else "fold floats", packed_bytes, 4 * size + packed_bytes, size, packed_bytes
    )


def unpack_work(shape: Sequence[int], packed_bytes: int) -> StepWork:
    """Return the work of reading an int8 tensor of `shape` back from `packed_bytes` of VTA's memory."""
    size = math.prod(shape)
    return StepWork("unpack", size, size + packed_bytes, 0, packed_bytes)


_REDUCED = ("average_pool", "global_average_pool", "max_pool")


def packed_work(work: StepWork, elements: int, packed_bytes: int) -> StepWork:
    """Return the work of a step on packed tensors, which all lie in the memory that VTA reads.

    Args:
        work: The step's on plain tensors.
        elements: Of its packed output, empty lanes included.
        packed_bytes: Of its packed inputs and output.
    """
    if work.op in _REDUCED:
        return replace(work, op=f"{work.op} packed", bytes=0, contiguous_bytes=packed_bytes)
    op = work.op.removesuffix(" of pairs")
    op = f"{op} packed" if f"{op} packed" in _PER_ELEMENT else op
    return replace(work, op=op, elements=elements, bytes=0, contiguous_bytes=packed_bytes)


def step_seconds(core: Core, engine: Engine, work: StepWork, awake: bool = False, quiet: bool = False) -> float:
    """Return the seconds of a step on a core by an engine; `core.error` says how far off they may be.

    `awake`: the helpers on the other cores watch for its pieces, and need not be woken. `quiet`: the clock is not read
    behind it (hilt_runtime.native.readings).
    """
    return _native_seconds(core, work, awake, quiet) if engine == "native" else _numpy_seconds(core, work)


def chain_seconds(
    core: Core, works: Sequence[StepWork], strips: int, moved_bytes: int, awake: bool = False
) -> list[float]:
    """Return the seconds of each step of a chain that the native engine runs strip by strip.

    What lies between the steps, and what is read again, stays in the first level of the cache. The first step has what
    the chain moves between its tensors and the cache, once, and what waking the other cores takes.

    Args:
        core: The core.
        works: The steps'.
        strips: Of the chain.
        moved_bytes: Of the tensors that it reads and of those that others read.
        awake: The helpers on the other cores watch for its pieces, and need not be woken.
    """
    pieces = pieces_of(core, works)
    near = core.near_bytes_per_cycle * core.clock_hz * pieces
    first = moved_bytes / _outer_rate(core, moved_bytes) + _joining(core, pieces, awake)
    seconds = []
    for work in works:
        instructions = _instructions_of(work)[_place(core)] + strips * _STRIP_INSTRUCTIONS[_place(core)]
        rate = core.cached_bytes_per_second if work.op == "Gather" else near  # its table is in the cache
        taken = _computing(core, instructions, pieces) + work.bytes / rate + _call_seconds(core)
        seconds.append(0.0 if work.op in _VIEWS else taken + first)
        first = first if work.op in _VIEWS else 0.0
    return seconds


def pieces_of(core: Core, works: Sequence[StepWork]) -> int:
    """Return how many pieces a core's native engine cuts a step in, or the steps of a chain together."""
    own = [work for work in works if work.op not in _VIEWS]
    instructions = int(sum(_instructions_of(work)[0] for work in own))
    return max(1, min(core.cores, instructions // LEAST, *(work.parts for work in own if len(own) == 1)))


def _joining(core: Core, pieces: int, awake: bool) -> float:
    """Return the seconds until another core begins with its piece."""
    joining = _TURN_SECONDS * CORTEX_A9.clock_hz / core.clock_hz if awake else core.wake_seconds
    return joining if pieces > 1 else 0.0


def _native_seconds(core: Core, work: StepWork, awake: bool, quiet: bool) -> float:
    if work.op in _VIEWS:
        return 0.0
    pieces, shared = pieces_of(core, [work]), work.shared_macs * _per_mac(work)[_place(core)]
    sharing = max(pieces, min(core.cores, work.shared_macs // LEAST))
    computing = _computing(core, _instructions_of(work)[_place(core)] - shared, pieces)
    computing += _computing(core, shared, sharing) + _joining(core, sharing, awake)
    fits = work.bytes <= core.cached_bytes
    moving = work.bytes / _outer_rate(core, work.bytes)
    moving += work.contiguous_bytes / core.memory_bytes_per_second if fits else 0.0
    calling = _computing(core, _STRIP_INSTRUCTIONS[_place(core)], 1) if quiet else _call_seconds(core)
    return calling + computing + moving


def _place(core: Core) -> int:
    return 0 if core.architecture == "armhf" else 1


def _call_seconds(core: Core) -> float:
    return _CALL_SECONDS * CORTEX_A9.clock_hz / core.clock_hz


def _computing(core: Core, instructions: float, pieces: int) -> float:
    return instructions / (core.clock_hz * core.instructions_per_cycle * pieces)


def _outer_rate(core: Core, moved_bytes: int) -> float:
    """Return the bytes a second of so many bytes behind the first level of the cache."""
    return core.cached_bytes_per_second if moved_bytes <= core.cached_bytes else core.memory_bytes_per_second


def _instructions_of(work: StepWork) -> tuple[float, float]:
    """Return the instructions of a step on armhf and on arm64."""
    each, product = _instructions(work.op), _per_mac(work)
    first, second = (work.elements * each[place] + work.macs * product[place] for place in (0, 1))
    return first, second


def _per_mac(work: StepWork) -> tuple[float, float]:
    return _PER_MAC.get(work.op, _PER_FLOAT_MAC)


def _instructions(op: str) -> tuple[float, float]:
    if op in _PER_ELEMENT:
        return _PER_ELEMENT[op]
    if op in _TRANSCENDENTAL:
        return _COMPUTED
    if op in ("DepthToSpace", "SpaceToDepth"):
        return _SCATTERED
    if op == "Transpose":
        return _TRANSPOSED
    return _MOVED if op in _MOVES else _OTHERS


def _numpy_seconds(core: Core, work: StepWork) -> float:
    faster = CORTEX_A9.numpy_slower / core.numpy_slower
    computing = work.macs / _NUMPY_MACS_PER_SECOND + (work.bytes + work.elements) / _NUMPY_BYTES_PER_SECOND
    return core.python_call_seconds + (0.0 if work.op in _VIEWS else computing / faster)


def item_bytes(dtype: str) -> int:
    """Return the bytes of an element of numpy's type."""
    return {"int8": 1, "uint8": 1, "bool": 1, "int16": 2, "float16": 2, "int64": 8, "float64": 8}.get(dtype, 4)
