"""Fixing a model: its open sizes, its constant parts, its branches, and passes that change nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from hilt.network import onnx_simplify
from hilt.network.calibration import Runner
from hilt.network.onnx_graph import OnnxError, OnnxGraph, graph_of
from hilt.network.onnx_simplify import fix, fixed_model

from .models import Array, model_of, run_float

SHAPE = (2, 3, 4)


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> Any:
    return helper.make_node(op, list(inputs), list(outputs), name=outputs[0], **attributes)


def graph(
    nodes: Sequence[Any],
    constants: Mapping[str, Array] | None = None,
    outputs: Sequence[str] = ("y",),
    inputs: Mapping[str, Sequence[int | str | None]] | None = None,
    types: Mapping[str, int] | None = None,
) -> tuple[Any, OnnxGraph]:
    """Return a model, and its graph, which is not yet fixed."""
    model = model_of(nodes, inputs or {"x": SHAPE}, constants, outputs, types=types)
    return model, graph_of(model, "net")


def operators(made: OnnxGraph) -> list[str]:
    return [each.op for each in made.nodes]


def assert_same(model: Any, made: OnnxGraph, feeds: Mapping[str, Array]) -> None:
    found = Runner(made, made.outputs).run({name: feeds[name] for name in made.inputs})
    for (name, value), wanted in zip(found.items(), run_float(model, feeds), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-6, err_msg=name)
        assert value.dtype == wanted.dtype and value.shape == wanted.shape


def data(*shape: int) -> Array:
    return np.random.default_rng(0).normal(0, 1, shape).astype(np.float32)


OPEN: dict[str, Sequence[int | str | None]] = {"x": ("n", 3, "rows", 4)}
NEG = [node("Neg", ["x"], ["y"])]


def test_a_batch_that_is_left_open_is_one_and_other_sizes_are_asked_for() -> None:
    _, made = graph(NEG, inputs={"x": ("n", 3, 4)})
    fix(made, {}, {})
    assert made.shape("x") == made.shape("y") == (1, 3, 4)
    _, made = graph(NEG, inputs=OPEN)
    with pytest.raises(OnnxError) as refused:
        fix(made, {}, {})
    assert str(refused.value) == (
        "input x of net has the open shape ?x3x?x4; give it with --shape x=1,3,?,4 and your sizes for ?"
    )
    _, made = graph(NEG, inputs={"x": ("length",)})
    fix(made, {}, {})
    assert made.shape("x") == (1,)


def test_an_input_of_unknown_rank_is_asked_for() -> None:
    _, made = graph(NEG)
    del made.shapes["x"]
    with pytest.raises(OnnxError, match=r"has the open shape of unknown rank; give it with --shape x=\? and"):
        fix(made, {}, {})
    fix(made, {"x": (3, 5)}, {})
    assert made.shape("y") == (3, 5)


def test_sizes_that_are_given_reach_every_tensor() -> None:
    _, made = graph(NEG, inputs=OPEN)
    made.shapes["y"] = (1, 1, 1, 1)  # what the file noted for another size
    fix(made, {"x": (2, 3, 7, 4)}, {})
    assert made.shape("x") == made.shape("y") == (2, 3, 7, 4)


@pytest.mark.parametrize("given", [(2, 3, 7), (2, 3, 7, 5), (2, 4, 7, 4), (0, 3, 7, 4), (2, 3, 0, 4), (2, 3, 7, 4, 1)])
def test_sizes_that_do_not_fit_are_refused(given: tuple[int, ...]) -> None:
    _, made = graph(NEG, inputs=OPEN)
    with pytest.raises(OnnxError) as refused:
        fix(made, {"x": given}, {})
    wanted = "x".join(map(str, given))
    assert str(refused.value) == f"input x is ?x3x?x4 in net, not {wanted}: give a shape that fits"


def test_an_input_that_there_is_not_is_named_with_those_that_are() -> None:
    _, made = graph([node("Add", ["x", "v"], ["y"])], inputs={"x": SHAPE, "v": SHAPE})
    for shapes, values in (({"u": SHAPE}, {}), ({}, {"u": 1.0})):
        with pytest.raises(OnnxError, match="^net has no input u; its inputs are x, v$"):
            fix(made, shapes, values)


def test_a_given_value_takes_the_place_of_an_input() -> None:
    nodes = [node("Mul", ["x", "factor"], ["m"]), node("Cast", ["count"], ["c"], to=1), node("Add", ["m", "c"], ["y"])]
    inputs: dict[str, Sequence[int]] = {"x": SHAPE, "factor": (1, 1), "count": ()}
    model, made = graph(nodes, inputs=inputs, types={"count": TensorProto.INT64})
    fix(made, {}, {"factor": 0.5, "count": 3})
    assert made.inputs == ["x"] and operators(made) == ["Mul", "Add"]
    feeds = {"x": data(*SHAPE), "factor": np.full((1, 1), 0.5, np.float32), "count": np.array(3)}
    assert_same(model, made, feeds)


def test_what_depends_on_constants_alone_is_computed() -> None:
    nodes = [
        node("Add", ["a", "b"], ["sum"]),
        node("Shape", ["x"], ["shape"]),
        node("Size", ["x"], ["size"]),
        node("Gather", ["shape", "last"], ["width"]),
        node("Cast", ["width"], ["w"], to=1),
        node("Cast", ["size"], ["s"], to=1),
        node("Mul", ["x", "sum"], ["m"]),
        node("Div", ["m", "w"], ["d"]),
        node("Add", ["d", "s"], ["y"]),
    ]
    model, made = graph(nodes, {"a": data(4), "b": data(1), "last": np.array(-1)})
    fix(made, {}, {})
    assert operators(made) == ["Mul", "Div", "Add"]
    assert_same(model, made, {"x": data(*SHAPE)})


@pytest.mark.parametrize("most", [63, 64])
def test_a_constant_that_is_very_large_is_made_when_it_is_needed(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(onnx_simplify, "_MAX_ELEMENTS", most)
    nodes = [node("Expand", ["one", "shape"], ["large"]), node("Add", ["x", "large"], ["y"])]
    model, made = graph(nodes, {"one": np.ones(1, np.float32), "shape": np.array([16, 4])}, inputs={"x": (4,)})
    fix(made, {}, {})
    assert operators(made) == (["Expand", "Add"] if most < 64 else ["Add"])
    assert_same(model, made, {"x": data(4)})


def test_random_numbers_are_not_drawn_ahead() -> None:
    nodes = [node("RandomNormal", [], ["r"], shape=[4]), node("Add", ["x", "r"], ["y"])]
    _, made = graph(nodes)
    fix(made, {}, {})
    assert operators(made) == ["RandomNormal", "Add"]


def test_a_constant_output_is_made_by_a_node() -> None:
    nodes = [node("Neg", ["x"], ["y"]), node("Add", ["a", "a"], ["twice"]), node("Mul", ["x", "twice"], ["z"])]
    model, made = graph(nodes, {"a": data(4)}, ("y", "twice", "z"))
    fix(made, {}, {})
    assert made.outputs == ["y", "twice", "z"] and sorted(operators(made)) == ["Identity", "Mul", "Neg"]
    assert_same(model, made, {"x": data(*SHAPE)})


def test_a_node_that_cannot_be_computed_from_its_constants_is_named() -> None:
    _, made = graph([node("Reshape", ["a", "shape"], ["r"]), node("Add", ["x", "r"], ["y"])],
                    {"a": data(6), "shape": np.array([4, 2])})  # fmt: skip
    with pytest.raises(OnnxError, match=r"^node .*\br\b.* cannot be computed from its constants: "):
        fix(made, {}, {})


SAME: dict[str, tuple[Any, dict[str, Array]]] = {
    "Identity": (node("Identity", ["n"], ["i"]), {}),
    "Dropout": (node("Dropout", ["n"], ["i", "mask"]), {}),
    "Reshape": (node("Reshape", ["n", "c"], ["i"]), {"c": np.array([0, -1, 4])}),
    "Expand": (node("Expand", ["n", "c"], ["i"]), {"c": np.array([3, 1])}),
    "Slice": (node("Slice", ["n", "c", "e"], ["i"]), {"c": np.array([0]), "e": np.array([99])}),
    "Slice forwards": (
        node("Slice", ["n", "c", "e", "a", "s"], ["i"]),
        {"c": np.array([0]), "e": np.array([99]), "a": np.array([1]), "s": np.array([1])},
    ),
    "Cast": (node("Cast", ["n"], ["i"], to=TensorProto.FLOAT), {}),
    "Concat": (node("Concat", ["n"], ["i"], axis=0), {}),
}
OTHER: dict[str, tuple[Any, dict[str, Array]]] = {
    "Reshape": (node("Reshape", ["n", "c"], ["i"]), {"c": np.array([3, 2, 4])}),
    "Flatten": (node("Flatten", ["n"], ["i"]), {}),
    "Slice": (node("Slice", ["n", "c", "e"], ["i"]), {"c": np.array([1]), "e": np.array([99])}),
    "Slice backwards": (
        node("Slice", ["n", "c", "e", "a", "s"], ["i"]),
        {"c": np.array([-1]), "e": np.array([-99]), "a": np.array([1]), "s": np.array([-1])},
    ),
    "Cast": (node("Cast", ["n"], ["i"], to=TensorProto.DOUBLE), {}),
    "Concat": (node("Concat", ["n", "n"], ["i"], axis=0), {}),
}


def between(middle: Any, constants: Mapping[str, Array]) -> tuple[Any, OnnxGraph]:
    nodes = [node("Neg", ["x"], ["n"]), middle, node("Cast", ["i"], ["d"], to=11), node("Exp", ["d"], ["y"])]
    model, made = graph(nodes, constants, types={"y": TensorProto.DOUBLE})
    fix(made, {}, {})
    return model, made


@pytest.mark.parametrize("name", SAME)
def test_a_node_that_changes_nothing_goes(name: str) -> None:
    model, made = between(*SAME[name])
    assert operators(made) == ["Neg", "Cast", "Exp"]
    assert_same(model, made, {"x": data(*SHAPE)})


@pytest.mark.parametrize("name", OTHER)
def test_a_node_that_changes_something_stays(name: str) -> None:
    model, made = between(*OTHER[name])
    middle = name.split()[0]
    assert operators(made) == (["Neg", middle, "Exp"] if name == "Cast" else ["Neg", middle, "Cast", "Exp"])
    assert_same(model, made, {"x": data(*SHAPE)})


def test_a_dropout_whose_mask_is_read_stays() -> None:
    nodes = [node("Dropout", ["x"], ["d", "mask"]), node("Cast", ["mask"], ["m"], to=1), node("Add", ["d", "m"], ["y"])]
    model, made = graph(nodes)
    fix(made, {}, {})
    assert operators(made) == ["Dropout", "Cast", "Add"]
    assert_same(model, made, {"x": data(*SHAPE)})


def test_outputs_keep_their_names() -> None:
    nodes = [
        node("Neg", ["x"], ["n"]),
        node("Identity", ["n"], ["y"]),  # the Neg makes the output itself
        node("Exp", ["n"], ["e"]),
        node("Identity", ["e"], ["z"]),  # e is an output too
        node("Identity", ["x"], ["same"]),  # of an input
    ]
    model, made = graph(nodes, outputs=("y", "z", "e", "same"))
    fix(made, {}, {})
    assert made.outputs == ["y", "z", "e", "same"]
    assert sorted(operators(made)) == ["Exp", "Identity", "Identity", "Neg"]
    assert_same(model, made, {"x": data(*SHAPE)})


def branch(name: str, op: str) -> Any:
    """Return a branch that reads the outer x, with a constant and a tensor that the other branch has too."""
    constant = numpy_helper.from_array(np.array(2.0 if op == "Mul" else 3.0, np.float32), "c")
    nodes = [helper.make_node(op, ["x", "c"], ["t"], name="inner"), helper.make_node("Neg", ["t"], ["r"], name="neg")]
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info("r", 1, None)], [constant])


@pytest.mark.parametrize("holds", [True, False])
def test_two_branches_of_known_conditions_are_inlined_apart(holds: bool) -> None:
    branches = {"then_branch": branch("then", "Mul"), "else_branch": branch("else", "Add")}
    nodes = [
        helper.make_node("If", ["condition"], ["a"], name="first", **branches),
        helper.make_node("If", ["other"], ["b"], name="second", **branches),
        node("Sub", ["a", "b"], ["y"]),
    ]
    model, made = graph(nodes, {"condition": np.array(holds), "other": np.array(not holds)})
    fix(made, {}, {})
    assert sorted(operators(made)) == ["Add", "Mul", "Neg", "Neg", "Sub"]
    names = [each.name for each in made.nodes]
    assert len(set(names)) == len(names) and {"first/inner", "second/inner"} <= set(names)
    assert_same(model, made, {"x": data(*SHAPE)})


def test_a_branch_of_a_computed_condition_stays() -> None:
    branches = {"then_branch": branch("then", "Mul"), "else_branch": branch("else", "Add")}
    nodes = [helper.make_node("If", ["condition"], ["y"], name="if", **branches)]
    inputs: dict[str, Sequence[int]] = {"x": SHAPE, "condition": ()}
    _, made = graph(nodes, inputs=inputs, types={"condition": TensorProto.BOOL})
    fix(made, {}, {})
    assert operators(made) == ["If"]


@pytest.mark.parametrize(("op", "becomes"), [("MatMul", "float32"), ("Add", "float64")])
def test_weights_of_doubles_make_a_float32_model_and_other_doubles_do_not(op: str, becomes: str) -> None:
    nodes = [node(op, ["x", "w"], ["y"])]
    types = {"x": TensorProto.DOUBLE, "y": TensorProto.DOUBLE}
    _, made = graph(nodes, {"w": data(4, 4).astype(np.float64)}, inputs={"x": (4, 4)}, types=types)
    fix(made, {}, {})
    assert str(made.constants["w"].dtype) == made.dtypes["x"] == made.dtypes["y"] == becomes


def test_casts_to_halves_become_casts_to_float32() -> None:
    nodes = [node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16), node("Mul", ["h", "w"], ["m"]),
             node("Cast", ["m"], ["y"], to=TensorProto.FLOAT)]  # fmt: skip
    _, made = graph(nodes, {"w": data(4).astype(np.float16)})
    fix(made, {}, {})
    assert operators(made) == ["Mul"] and made.dtypes["y"] == "float32"
    found = next(iter(Runner(made, made.outputs).run({"x": data(*SHAPE)}).values()))
    np.testing.assert_allclose(found, data(*SHAPE) * data(4), rtol=1e-3)


def test_a_model_is_fixed_once() -> None:
    model, made = graph([node("Neg", ["x"], ["y"])])
    fix(made, {}, {})
    assert operators(fixed_model(model, "net")) == operators(made) == ["Neg"]
