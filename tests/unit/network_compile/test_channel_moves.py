"""Channels that are cut, joined and shuffled: the same values, and one program of VTA."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from hilt.network.channel_map import ChannelMap, Widths, shuffled
from hilt.network.channel_moves import with_unmoved_channels
from hilt.network.compile import compile_network
from hilt.network.graph import Graph, Node, Tensor, check
from hilt.network.reference import evaluate
from hilt_runtime import read_bundle

from .graphs import target

pytestmark = pytest.mark.usefixtures("quick_search")

Array = np.ndarray[Any, Any]


@dataclass
class Net:
    """Adds nodes to a graph, and remembers its tensors."""

    seed: int
    channels: int = 16
    shifts: bool = False
    """Whether each channel may have a shift of its own."""
    nodes: list[Node] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.tensors["x"] = Tensor("x", (1, self.channels, 8, 8), "int8", 0.25)

    def add(self, op: str, inputs: tuple[str, ...], of: tuple[int, ...], **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(Node(name, op, inputs, (name,), attributes))
        self.tensors[name] = Tensor(name, of, "int8", 0.25)
        return name

    def of(self, name: str) -> tuple[int, ...]:
        return self.tensors[name].shape

    def convolution(self, source: str, channels: int, kernel: int = 1, group: int = 1, residual: str = "") -> str:
        images, count, height, width = self.of(source)
        weights, bias = f"w{len(self.nodes)}", f"b{len(self.nodes)}"
        self.constants[weights] = self.random.integers(-20, 21, (channels, count // group, kernel, kernel)).astype(
            np.int8
        )
        self.constants[bias] = self.random.integers(-999, 1000, channels).astype(np.int32)
        shift = [6] if not self.shifts or self.random.random() < 0.5 else self.random.integers(5, 8, channels).tolist()
        more = {"residual_shift": [2]} if residual else {}
        return self.add(
            "conv2d", (source, weights, bias, residual), (images, channels, height, width), strides=[1, 1],
            pads=[kernel // 2] * 4, groups=group, dilations=[1, 1], input_dilation=[1, 1], shift=shift,
            clip=[-128, 127], **more,
        )  # fmt: skip

    def cut(self, source: str, start: int, end: int, step: int = 1) -> str:
        images, _, *pixels = self.of(source)
        shape = (images, len(range(start, end, step)), *pixels)
        return self.add("slice", (source,), shape, starts=[start], ends=[end], axes=[1], steps=[step])

    def join(self, *sources: str) -> str:
        images, _, *pixels = self.of(sources[0])
        return self.add("concat", sources, (images, sum(self.of(name)[1] for name in sources), *pixels), axis=1)

    def shuffle(self, source: str, groups: int) -> str:
        images, count, height, width = self.of(source)
        shape = (images, groups, count // groups, height, width)
        apart = self.add("reshape", (source,), shape, shape=list(shape))
        turned = (images, count // groups, groups, height, width)
        apart = self.add("transpose", (apart,), turned, perm=[0, 2, 1, 3, 4])
        return self.add("reshape", (apart,), self.of(source), shape=list(self.of(source)))

    def parted(self, source: str) -> list[str]:
        """Return the even channels and the odd ones, as a Reshape, a Transpose and an index give them."""
        images, count, height, width = self.of(source)
        shape = (images * count // 2, 2, height * width)
        apart = self.add("reshape", (source,), shape, shape=list(shape))
        turned = (2, images * count // 2, height * width)
        apart = self.add("transpose", (apart,), turned, perm=[1, 0, 2])
        half = (images, count // 2, height, width)
        apart = self.add("reshape", (apart,), (2, *half), shape=[2, *half])
        parts = [
            self.add("slice", (apart,), (1, *half), starts=[place], ends=[place + 1], axes=[0], steps=[1])
            for place in range(2)
        ]
        return [self.add("reshape", (part,), half, shape=list(half)) for part in parts]

    def pool(self, source: str) -> str:
        images, count, height, width = self.of(source)
        shape = (images, count, height // 2, width // 2)
        return self.add("max_pool", (source,), shape, kernel=[2, 2], strides=[2, 2], pads=[0] * 4)

    def pad(self, source: str) -> str:
        images, count, height, width = self.of(source)
        return self.add("pad", (source,), (images, count, height + 1, width), pads=[0, 0, 1, 0, 0, 0, 0, 0], value=-3)

    def sum(self, one: str, other: str) -> str:
        return self.add("add", (one, other), self.of(one), left_shifts=[1, 0], shift=1, clip=[-128, 127])

    def dense(self, source: str, count: int) -> str:
        images, channels = self.of(source)[:2]
        mean = self.add(
            "global_average_pool", (source,), (images, channels, 1, 1), divisor=1, shift=4, clip=[-128, 127]
        )
        flat = self.add("reshape", (mean,), (images, channels), shape=[images, channels])
        self.constants["dense"] = self.random.integers(-20, 21, (count, channels)).astype(np.int8)
        return self.add("dense", (flat, "dense", ""), (images, count), shift=[6], clip=[-128, 127])

    def graph(self, *outputs: str) -> Graph:
        return Graph("g", ("x",), outputs, tuple(self.nodes), self.tensors, self.constants)


def same_values(graph: Graph) -> Graph:
    """Return the graph with unmoved channels, whose outputs were compared."""
    made = with_unmoved_channels(graph, 16)
    check(graph)
    check(made)
    data = {"x": np.random.default_rng(1).integers(-128, 128, graph.tensors["x"].shape).astype(np.int8)}
    wanted, found = evaluate(graph, data), evaluate(made, data)
    for name in graph.outputs:
        np.testing.assert_array_equal(found[name], wanted[name])
    assert max(np.abs(wanted[name]).max() for name in graph.outputs) > 10
    return made


def starts(graph: Graph) -> int:
    """Return the programs of VTA in an inference."""
    steps = read_bundle(compile_network(graph, target()).data, "g").manifest["steps"]
    return sum(step["kind"] == "vta" for step in steps)


def shuffle_net(half: int) -> Graph:
    """Return two units of ShuffleNet V2, and one of half the pixels."""
    net = Net(0)
    tensor = net.convolution("x", 2 * half)
    for _ in range(2):
        kept, read = net.cut(tensor, 0, half), net.cut(tensor, half, 2 * half)
        made = net.convolution(net.convolution(net.convolution(read, half), half, 3, half), half)
        tensor = net.shuffle(net.join(kept, made), 2)
    one = net.convolution(net.pool(net.convolution(tensor, 2 * half, 3, 2 * half)), half)
    other = net.convolution(net.pool(net.convolution(tensor, half)), half)
    return net.graph(net.dense(net.shuffle(net.join(one, other), 2), 10))


def parted_net(half: int) -> Graph:
    """Return a network that takes even and odd channels apart."""
    net = Net(5)
    tensor = net.convolution("x", 2 * half)
    for _ in range(3):
        kept, read = net.parted(tensor)
        tensor = net.join(kept, net.convolution(net.convolution(read, half, 3, half), half))
    return net.graph(net.dense(tensor, 10))


def dense_net(growth: int) -> Graph:
    net = Net(3)
    tensor = net.convolution("x", 24)
    for _ in range(3):
        tensor = net.join(tensor, net.convolution(net.convolution(tensor, 32), growth, 3))
    return net.graph(net.dense(net.pool(tensor), 10))


@pytest.mark.slow
@pytest.mark.parametrize("graph", [shuffle_net(12), shuffle_net(32), dense_net(7), parted_net(12)])
def test_networks_that_shuffle_and_join_are_one_program(graph: Graph) -> None:
    made = same_values(graph)
    assert starts(graph) == 1
    assert "transpose" not in {node.op for node in made.nodes}
    layers = {node.name for node in made.nodes if node.op == "conv2d" and "select" not in node.name}
    assert layers == {node.name for node in graph.nodes if node.op == "conv2d"}


def random_net(seed: int) -> Graph:
    """Return a network that cuts, joins, shuffles, pads, pools and adds whatever fits."""
    net = Net(seed, int(np.random.default_rng(seed).choice([16, 24, 5])), True)
    random, images = net.random, ["x", "t0"]
    net.convolution("x", int(random.choice([12, 16, 32, 48])))
    for _ in range(14):
        source = images[int(random.integers(max(0, len(images) - 4), len(images)))]
        count = net.of(source)[1]
        alike = [name for name in images if net.of(name)[2:] == net.of(source)[2:]]
        equal = [name for name in alike if net.of(name) == net.of(source)]
        choice = random.integers(9)
        if choice < 2:
            made = net.convolution(source, int(random.choice([8, 12, 16, 20, 32])), int(random.choice([1, 3])))
        elif choice == 2:
            made = net.convolution(source, count, 3, count)
        elif choice == 3 and count > 1:
            start = int(random.integers(count - 1))
            made = net.cut(source, start, int(random.integers(start + 1, count + 1)), int(random.choice([1, 1, 2])))
        elif choice < 6:
            made = net.join(*random.choice(alike, int(random.integers(2, 4))).tolist())
        elif choice == 6 and count % 2 == 0:
            made = net.shuffle(source, 2)
        elif choice == 7:
            made = net.sum(source, equal[int(random.integers(len(equal)))])
        elif random.random() < 0.5 and net.of(source)[2] % 2 == 0 and net.of(source)[3] % 2 == 0:
            made = net.pool(source)
        else:
            made = net.pad(source)
        images.append(made)
    last = [name for name in images[-3:] if name != "x"]
    outputs = [net.convolution(last[-1], 16, residual=""), *last[:-1], net.dense(images[-1], 9)]
    return net.graph(*dict.fromkeys(outputs))


@pytest.mark.parametrize("seed", range(150))
def test_random_moves_keep_every_value(seed: int) -> None:
    same_values(random_net(seed))


def test_a_residual_of_moved_channels_is_selected() -> None:
    net = Net(0, 32)
    moved = net.shuffle(net.convolution("x", 32), 2)
    made = same_values(net.graph(net.convolution("x", 32, residual=moved)))
    assert [node.op for node in made.nodes] == ["conv2d"] * 3


@pytest.mark.parametrize("sizes", [(12, 12), (20, 16, 9, 3), (5, 32, 12)])
def test_rests_of_blocks_that_are_added_are_selected_one_by_one(sizes: tuple[int, ...]) -> None:
    """The first is read by another addition too, so that it gets no kernels of zeros."""
    net = Net(2, sum(sizes))
    parts = [net.convolution("x", size) for size in sizes]
    other = net.sum(parts[0], parts[0])
    graph = net.graph(net.sum("x", net.join(*parts)), other)
    made = same_values(graph)
    rests = sum(size % 16 != 0 for size in sizes)
    whole = any(size % 16 == 0 for size in sizes)
    assert sum("select" in node.name for node in made.nodes) == rests + whole
    assert "concat" not in {node.op for node in made.nodes}


def test_what_the_processor_makes_is_not_selected_one_by_one() -> None:
    """Each would be packed to blocks of its own; joined by the processor they are packed once."""
    net = Net(2, 12)
    parts = [net.cut(net.shuffle("x", 2), place, place + 5) for place in range(3)]
    graph = net.graph(net.convolution(net.join(*parts), 8), net.sum(net.join("x", "x"), net.join("x", "x")))
    made = same_values(graph)
    assert not any("select" in node.name for node in made.nodes)


def test_channels_read_twice_stay_where_their_sum_is_no_byte() -> None:
    net = Net(0, 12)
    graph = net.graph(net.convolution(net.join("x", "x", *["x"] * 9), 8))
    net.constants["w1"][:] = 100
    assert with_unmoved_channels(graph, 16) is graph


@pytest.mark.parametrize("sizes", [(16, 32), (16, 12)])
def test_whole_blocks_stay(sizes: tuple[int, int]) -> None:
    net = Net(0)
    joined = net.join(*(net.convolution("x", size) for size in sizes))
    graph = net.graph(net.convolution(joined, 8), net.convolution(net.cut(joined, 16, 16 + sizes[1]), 8))
    assert with_unmoved_channels(graph, 16) is graph


@pytest.mark.parametrize(
    ("count", "shift", "follows"),
    [(20, [6], True), (20, [6] * 20, True), (20, [6] * 10 + [7] * 10, False), (16, [6], True), (15, [6], False)],
)
def test_a_depthwise_layer_of_half_the_channels_and_one_shift_is_of_all_of_them(
    count: int, shift: list[int], follows: bool
) -> None:
    """Else the channels that it reads are selected first."""
    net = Net(0)
    part = net.cut(net.convolution("x", 32), 5, 5 + count)
    made = net.convolution(part, count, 3, count)
    net.nodes[-1].attributes["shift"] = shift
    found = same_values(net.graph(net.convolution(made, 8)))
    assert [found.tensors[node.outputs[0]].shape[1] for node in found.nodes] == (
        [32, 32, 8] if follows else [32, count, count, 8]
    )


def test_few_channels_of_many_stay_with_the_processor() -> None:
    """A convolution of many kernels would compute for 640 channels, and reads 3."""
    net = Net(0, 640)
    graph = net.graph(net.convolution(net.cut("x", 5, 8), 64, 3))
    assert with_unmoved_channels(graph, 16) is graph


@pytest.mark.parametrize(("kernel", "read"), [(1, 32), (7, 2)])
def test_a_large_kernel_reads_single_channels_joined(kernel: int, read: int) -> None:
    """Apart, each takes a whole block for each of its 49 taps; joined, the taps of both share blocks."""
    net = Net(0)
    joined = net.join(net.convolution("x", 1), net.convolution("x", 1))
    made = same_values(net.graph(net.convolution(joined, 1, kernel)))
    assert made.tensors[made.nodes[-1].inputs[0]].shape[1] == read


def test_a_map_takes_the_channels_of_its_sources() -> None:
    widths = Widths({n: Tensor(n, (1, c, 2, 2), "int8") for n, c in zip("abc", (12, 32, 16), strict=True)}, 16)
    joined = ChannelMap.joined([ChannelMap.whole(name, widths.of(name)) for name in "abc"], widths)
    assert joined.sources == ("b", "c", "a") and joined.width(widths) == len(joined) == 60
    assert joined.places(widths)[[0, 11, 12, 43, 44]].tolist() == [48, 59, 0, 31, 32]
    part = joined.taken(np.arange(40, 48))
    assert part.sources == ("b", "c") and part.channels.tolist() == [[0, n] for n in range(28, 32)] + [
        [1, n] for n in range(4)
    ]
    weights = np.arange(1, 9, dtype=np.int8).reshape(1, 8)
    columns = part.columns(weights, widths)
    assert columns is not None and np.flatnonzero(columns).tolist() == [*range(28, 32), *range(32, 36)]
    assert part.columns(np.full((1, 8), -128, np.int8), widths) is not None


def test_a_shuffle_is_known_by_its_elements() -> None:
    order = np.arange(2 * 6 * 3 * 5).reshape(2, 6, 3, 5)
    turned = order.reshape(2, 2, 3, 3, 5).transpose(0, 2, 1, 3, 4).reshape(order.shape)
    found = shuffled(turned, order.shape)
    assert found is not None and found.tolist() == [0, 3, 1, 4, 2, 5]
    assert shuffled(order.reshape(2, 6, 5, 3).transpose(0, 1, 3, 2), order.shape) is None
    assert shuffled(order.reshape(2, 18, 1, 5), order.shape) is None
    half = shuffled(order[:, 1::2], order.shape)
    assert half is not None and half.tolist() == [1, 3, 5]
    flat = shuffled(np.arange(12)[None, ::-1], (1, 12, 1, 1))
    assert flat is not None and flat.tolist() == [*range(11, -1, -1)]
    assert shuffled(np.arange(12)[None], (1, 4, 3, 1)) is None
