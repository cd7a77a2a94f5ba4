"""Chains of steps that run strip by strip: one pass over memory, with the tensors between them in the cache.

A tensor of a chain has as many rows as all others: its first axes together. Each step computes a row from the same row
of its inputs, and from tensors that are the same for all rows. The engine plans such steps for the rows of one strip;
the host's model of a core counts the same chains.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from hilt_runtime.operators_reduce import reduced_axes

STRIP_BYTES = 16 << 10
"""Bytes that the live tensors of a strip take: half of the first-level cache of each board's core."""
VIEWS = frozenset(("reshape", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"))
_PAIRS = frozenset(("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum"))
_FUNCTIONS = frozenset(
    (
        *("Abs", "Neg", "Relu", "Ceil", "Floor", "Round", "Sign", "Sqrt", "Reciprocal", "Exp", "Log", "Sigmoid"),
        *("Tanh", "HardSigmoid", "HardSwish", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign", "Mish", "Erf"),
        *("Gelu", "ThresholdedRelu", "Shrink", "Clip", "Pow", "quantize", "dequantize", "table"),
    )
)
_REDUCTIONS = frozenset(("ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceMax", "ReduceMin"))
_SOFTMAX = frozenset(("Softmax", "LogSoftmax"))

Step = Mapping[str, Any]
Shape = Tuple[int, ...]


class KnownTensors(NamedTuple):
    """The facts of a network's tensors that chains follow from.

    Attributes:
        shape: Of a tensor or constant by its name; None if it is not known.
        item: Its bytes an element.
        constant: Returns a constant's array by its name; None if it is none.
    """

    shape: Callable[[str], Optional[Shape]]
    item: Callable[[str], int]
    constant: Callable[[str], Any]


class StripChain(NamedTuple):
    """Steps of a network from `first` to before `last`, in strips of `height` of their `rows`.

    Attributes:
        rowed: The tensors that are cut in strips, whichever step makes them.
        inside: Those that no other step reads: they have no memory of their own.
        moved: Those that the chain reads first or others read, without views of them: they move from and to memory.
    """

    first: int
    last: int
    rows: int
    height: int
    rowed: FrozenSet[str]
    inside: FrozenSet[str]
    moved: FrozenSet[str]


def prefix(shape: Shape, rows: int) -> Optional[int]:
    """Return how many of the first axes have so many rows together; None if none do."""
    product = 1
    for axis, size in enumerate(shape):
        product *= size
        if product == rows:
            return axis + 1
    return None


def strip_shape(shape: Shape, rows: int, height: int) -> Shape:
    """Return the shape of a tensor's strip."""
    axes = prefix(shape, rows)
    assert axes is not None
    return (1,) * (axes - 1) + (height,) + tuple(shape[axes:])


def chains(
    steps: Sequence[Step], tensors: KnownTensors, native: Callable[[Step], bool], kept: Set[str]
) -> List[StripChain]:
    """Return the chains of a network's steps, in order; none overlap.

    Args:
        steps: The manifest's.
        tensors: Their tensors.
        native: Tells whether the engine computes a step.
        kept: Tensors that are read behind the last step.
    """
    found: List[StripChain] = []
    first = 0
    while first < len(steps):
        chain = _chain_from(steps, first, tensors, native, kept)
        if chain is None:
            first += 1
        else:
            found.append(chain)
            first = chain.last
    return found


def _chain_from(
    steps: Sequence[Step], first: int, tensors: KnownTensors, native: Callable[[Step], bool], kept: Set[str]
) -> Optional[StripChain]:
    """Return the longest chain that begins with a step; None if it serves nothing."""
    best: Optional[StripChain] = None
    for rows in _row_counts(steps[first], tensors):
        last = _end(steps, first, rows, tensors, native)
        while last > first and steps[last - 1]["op"] in VIEWS:
            last -= 1
        if best is None or last > best.last:
            chain = _measured(steps, first, last, rows, tensors, kept)
            best = best if chain is None else chain
    return best


def _end(steps: Sequence[Step], first: int, rows: int, tensors: KnownTensors, native: Callable[[Step], bool]) -> int:
    """Return the place behind the last step that can follow in a chain of so many rows."""
    rowed: Set[str] = set()
    whole: Set[str] = set()
    for last in range(first, len(steps)):
        step = steps[last]
        more = _rowed_by(step, rows, tensors, rowed) if native(step) else None
        if more is None or more & whole:
            return last
        rowed |= more
        whole |= set(step["inputs"]) - rowed if more else set()
    return len(steps)


def _row_counts(step: Step, tensors: KnownTensors) -> List[int]:
    """Return the rows that a chain from a step on may have, the most first."""
    if step["kind"] != "cpu" or "packed" in step or step["op"] in VIEWS or not step["outputs"]:
        return []
    shape = tensors.shape(step["outputs"][0])
    if shape is None:
        return []
    products, product = [], 1
    for size in shape:
        product *= size
        products.append(product)
    return sorted({product for product in products if product > 1}, reverse=True)


def _rowed_by(step: Step, rows: int, tensors: KnownTensors, rowed: Set[str]) -> Optional[Set[str]]:
    """Return the tensors of a step that are cut in strips; None if the step cannot follow those before."""
    if step["kind"] != "cpu" or "packed" in step or len(step["outputs"]) != 1:
        return None
    if step["op"] in VIEWS and step["inputs"][0] not in rowed:
        return set()  # of a tensor that is there as a whole
    shapes = [tensors.shape(name) if name else None for name in (*step["inputs"], step["outputs"][0])]
    if shapes[0] is None or shapes[-1] is None or prefix(shapes[-1], rows) is None:
        return None
    if step["op"] in _PAIRS:
        return _rowed_by_pairs(step, shapes, rows, rowed)
    return (_rowed_by_look_up if step["op"] == "Gather" else _rowed_by_data)(step, shapes, rows, tensors)


def _rowed_by_data(step: Step, shapes: Sequence[Any], rows: int, tensors: KnownTensors) -> Optional[Set[str]]:
    """Return the first input and the output of a step; None if its rows depend on each other, or on computed inputs."""
    op, data, made = step["op"], step["inputs"][0], step["outputs"][0]
    axes = prefix(shapes[0], rows)
    if axes is None or not all(tensors.constant(name) is not None for name in step["inputs"][1:] if name):
        return None
    if op in VIEWS or (op in _FUNCTIONS and shapes[0] == shapes[-1]):
        return {data, made}
    reduced = _axes(step, tensors, len(shapes[0]))
    return {data, made} if reduced and min(reduced) >= axes else None


def _rowed_by_look_up(step: Step, shapes: Sequence[Any], rows: int, tensors: KnownTensors) -> Optional[Set[str]]:
    """Return the places and the output of a look-up of a constant's rows; None of another."""
    table, places = step["inputs"][:2]
    known = tensors.constant(table) is not None and tensors.constant(places) is None and shapes[1] is not None
    if not known or step["attributes"].get("axis", 0) != 0 or prefix(shapes[1], rows) is None:
        return None
    return {places, step["outputs"][0]}


def _rowed_by_pairs(step: Step, shapes: Sequence[Any], rows: int, rowed: Set[str]) -> Optional[Set[str]]:
    """Return the output, and the inputs that have its rows; each other is the same for all rows, from before the chain.

    Return None if one is neither.
    """
    whole = shapes[-1]
    axes = prefix(whole, rows)
    assert axes is not None
    found = {step["outputs"][0]}
    for name, shape in zip(step["inputs"], shapes):
        if not name or shape is None or len(shape) > len(whole):
            return None
        aligned = (1,) * (len(whole) - len(shape)) + tuple(shape)
        if aligned[:axes] == tuple(whole[:axes]) and prefix(tuple(shape), rows) is not None:
            found.add(name)
        elif name in rowed or any(size != 1 for size in aligned[:axes]):
            return None
    return found


def _axes(step: Step, tensors: KnownTensors, rank: int) -> Sequence[int]:
    """Return the axes that a step computes across; empty of one that is not known to."""
    if step["op"] in _SOFTMAX:
        return [int(step["attributes"].get("axis", -1)) % rank]
    if step["op"] == "LayerNormalization":
        return list(range(int(step["attributes"].get("axis", -1)) % rank, rank))
    if step["op"] not in _REDUCTIONS:
        return []
    inputs = [None, *(tensors.constant(name) if name else None for name in step["inputs"][1:])]
    axes = reduced_axes(inputs, step["attributes"])
    return list(range(rank)) if axes is None else [axis % rank for axis in axes]


def _measured(
    steps: Sequence[Step], first: int, last: int, rows: int, tensors: KnownTensors, kept: Set[str]
) -> Optional[StripChain]:
    """Return a chain with the height of its strips; None if it has one step, or fits the cache as it is."""
    own = steps[first:last]
    if sum(step["op"] not in VIEWS for step in own) < 2:
        return None
    rowed: Set[str] = set()
    for step in own:
        rowed |= _rowed_by(step, rows, tensors, rowed) or set()
    made = {step["outputs"][0] for step in own} & rowed
    roots = _roots(own, made)
    width = {name: _bytes_of(name, tensors) // rows for name in rowed if name not in roots}
    alive = max(_alive(own, roots, width))
    if alive * rows <= 2 * STRIP_BYTES:
        return None
    read = {name for place, step in enumerate(steps) if not first <= place < last for name in names_read(step)} | kept
    out = {roots.get(name, name) for name in made & read}
    inside = frozenset(name for name in made if roots.get(name, name) in made - out)
    moved = frozenset(width) - inside
    return StripChain(
        first, last, rows, max(1, min(rows, STRIP_BYTES // max(alive, 1))), frozenset(rowed), inside, moved
    )


def names_read(step: Step) -> Sequence[str]:
    """Return the tensors that a step reads."""
    return step["inputs"] if step["kind"] == "cpu" else [step["tensor"]] if step["kind"] == "pack" else ()


def _roots(steps: Sequence[Step], made: Set[str]) -> Dict[str, str]:
    """Return for each view of a tensor that a chain makes that tensor."""
    roots: Dict[str, str] = {}
    for step in steps:
        if step["op"] in VIEWS and step["inputs"][0] in made:
            data = step["inputs"][0]
            roots[step["outputs"][0]] = roots.get(data, data)
    return roots


def _bytes_of(name: str, tensors: KnownTensors) -> int:
    size = tensors.item(name)
    for length in tensors.shape(name) or ():
        size *= length
    return size


def _alive(steps: Sequence[Step], roots: Mapping[str, str], width: Mapping[str, int]) -> List[int]:
    """Return for each step the bytes of a row of the tensors that it or a later one needs."""
    last: Dict[str, int] = {}
    for place, step in enumerate(steps):
        for name in (*step["inputs"], *step["outputs"]):
            if name:
                last[roots.get(name, name)] = place
    found, there = [], set()  # type: List[int], Set[str]
    for place, step in enumerate(steps):
        there |= {roots.get(name, name) for name in (*step["inputs"], *step["outputs"]) if name}
        found.append(sum(width.get(name, 0) for name in there))
        there = {name for name in there if last[name] > place}
    return found
