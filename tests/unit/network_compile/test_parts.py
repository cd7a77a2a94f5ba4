"""Parts of a network on each side, and the schedules that neighbours choose together, by hand-made layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from hilt.network import together
from hilt.network.graph import Graph, Node, Tensor
from hilt.network.partition import Part, Placement, _mostly_packed, form_of, parts, single_layer
from hilt.network.together import chosen_together

from .graphs import Builder


def graph_of(**reads: str) -> Graph:
    """Return a graph of nodes, each with the tensors that it reads, words apart: `a="x", b="a x"`."""
    tensors = {name: Tensor(name, (1, 16, 4, 4), "int8", 1.0) for name in ("x", *reads)}
    nodes = tuple(Node(name, "add", tuple(names.split()), (name,), {}) for name, names in reads.items())
    return Graph("net", ("x",), (list(reads)[-1],), nodes, tensors, {})


def sides(graph: Graph, vta: str, views: str = "") -> list[tuple[str, bool]]:
    """Return the names of each part's nodes, and whether it is on VTA, where these nodes run there."""
    placements = [
        Placement(node, None, None, "", view=node.name in views, epilogue=node.name in vta) for node in graph.nodes
    ]
    return [("".join(each.node.name for each in part.placements), part.on_vta) for part in parts(graph, placements)]


def test_nodes_of_one_side_that_are_ready_come_together() -> None:
    graph = graph_of(a="x", b="a", c="x", d="c", e="b d")
    assert sides(graph, "") == [("abcde", False)]
    assert sides(graph, "ac") == [("ac", True), ("bde", False)], "c is ready beside a"
    assert sides(graph, "bd") == [("ac", False), ("bd", True), ("e", False)]
    assert sides(graph, "abcde") == [("abcde", True)]


def test_a_view_is_of_the_side_that_it_comes_to() -> None:
    graph = graph_of(a="x", b="a", c="b", d="c")
    assert sides(graph, "ac", views="b") == [("abc", True), ("d", False)]
    assert sides(graph, "cd", views="b") == [("ab", False), ("cd", True)]


def test_what_is_read_lies_in_vtas_layout_if_more_than_half_of_it_does() -> None:
    graph = graph_of(a="x", b="x", c="a b", d="a b x")
    c, d = graph.nodes[2:]
    assert not _mostly_packed(graph, c, set()) and not _mostly_packed(graph, c, {"a"}), "half is not more"
    assert _mostly_packed(graph, c, {"a", "b"})
    assert _mostly_packed(graph, d, {"a", "x"}) and not _mostly_packed(graph, d, {"x"})


def test_a_layer_alone_has_its_tensors_and_constants_and_no_others() -> None:
    builder = Builder((1, 16, 6, 6))
    first = builder.conv("x", 16)
    graph = builder.graph(builder.conv(first, 16, residual="x"))
    alone = single_layer(graph, graph.nodes[1])
    assert (alone.inputs, alone.outputs, alone.nodes) == ((first, "x"), graph.outputs, graph.nodes[1:])
    assert set(alone.tensors) == {first, "x", *graph.outputs}
    assert set(alone.constants) == {"conv1.w", "conv1.b"}
    assert form_of(Placement(graph.nodes[0], None, None, "")) is None


@dataclass(frozen=True)
class Layer:
    """A layer in place of a real one."""

    name: str


def chain(*options: int) -> Part:
    """Return a chain of layers with so many schedules each, numbered from 0; None stands for a node without a layer."""
    made = []
    for place, count in enumerate(options):
        node = Node(f"n{place}", "conv2d", (), (), {})
        schedules: list[Any] = list(range(count))
        layer: Any = Layer(node.name) if count else None
        made.append(Placement(node, layer, schedules[0] if count else None, "", alternatives=tuple(schedules[1:])))
    return Part(tuple(made), True)


def chosen(
    part: Part,
    cycles: Callable[[list[int]], float],
    monkeypatch: pytest.MonkeyPatch,
    whole: Callable[[Any, int, int], float] | None = None,
) -> list[Any]:
    """Return the schedules that are chosen where a layer's cycles beside its neighbours are a function of all of them.

    Without `whole` the chain has too many instructions to be timed as a whole.
    """
    tried: list[list[int]] = []

    def counted(self: Any, number: int, choice: int) -> float:
        tried.append([*self._choice[:number], choice, *self._choice[number + 1 :]])
        return cycles(tried[-1])

    monkeypatch.setattr(together._Chain, "_cycles", counted)
    monkeypatch.setattr(together._Chain, "_whole", whole or (lambda self, number, choice: float("inf")))
    made = chosen_together(part, None, None)  # type: ignore[arg-type]
    assert [each.node for each in made.placements] == [each.node for each in part.placements]
    asked.append(len(tried))
    return [each.schedule for each in made.placements]


asked: list[int] = []


def test_each_layer_takes_the_schedule_that_is_fastest_beside_its_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {(0, 0): 100, (0, 1): 90, (1, 0): 95, (1, 1): 80}
    part = chain(2, 0, 2)
    assert chosen(part, lambda now: table[now[0], now[1]], monkeypatch) == [1, None, 1]
    assert asked[-1] == 8, "a second round finds nothing better"


def test_of_equal_ones_the_schedule_that_it_has_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(chain(3, 3), lambda now: 10.0, monkeypatch) == [0, 0]
    assert asked[-1] == 6, "one round, in which nothing changes"
    assert chosen(chain(3, 2), lambda now: 10.0 - (now[0] > 0), monkeypatch) == [1, 0], "of better ones the first"


def test_there_are_two_rounds_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours one schedule apart suit each other, and later ones are faster: each turn finds the next."""

    def cycles(now: list[int]) -> float:
        return 100.0 - sum(now) if abs(now[0] - now[1]) <= 1 else 200.0

    assert chosen(chain(9, 9), cycles, monkeypatch) == [3, 4]
    assert asked[-1] == 36, "two rounds of two layers of nine schedules"


def test_a_layer_alone_and_one_without_a_choice_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(chain(5), lambda now: -float(now[0]), monkeypatch) == [0]
    assert asked[-1] == 0
    assert chosen(chain(1, 2), lambda now: -float(now[1]), monkeypatch) == [0, 1]
    assert asked[-1] == 4, "two rounds of the second's two"


def test_the_whole_chain_decides_between_those_that_are_nearly_as_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    beside = [1000.0, 1100.0, 1101.0]
    alike = {(0, 0): 500.0, (0, 1): 400.0, (0, 2): 300.0, (1, 0): 500.0, (1, 1): 500.0, (1, 2): 200.0}

    def whole(self: Any, number: int, choice: int) -> float:
        return alike[number, choice]

    part = chain(3, 3)
    assert chosen(part, lambda now: beside[now[0]] + beside[now[1]], monkeypatch, whole) == [1, 0], "100 cycles at most"
