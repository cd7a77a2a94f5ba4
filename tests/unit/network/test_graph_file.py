"""A graph as a file: nothing of it is lost, the same graph makes the same bytes, and one that is altered is refused."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hilt.network.graph import Graph, Node, Tensor
from hilt.network.graph_file import MEMBER, graph_bytes, graph_of, read_graph
from hilt_runtime import Bundle, BundleError
from hilt_runtime.arrays import decode_arrays, encode_arrays


def graph() -> Graph:
    random = np.random.default_rng(0)
    nodes = (
        Node("c", "conv2d", ("x", "w", "", "r"), ("y",), {"strides": [1, 2], "shift": [3]}, ("Conv_0", "Relu_1"), ""),
        Node("e", "Exp", ("y",), ("z", ""), {}, (), "VTA has no exponentials"),
    )
    tensors = {
        "x": Tensor("x", (1, 3, 8, 8), "int8", 0.5),
        "r": Tensor("r", (1, 4, 8, 4), "int8", 2.0**-7),
        "y": Tensor("y", (1, 4, 8, 4), "int8", 2.0),
        "z": Tensor("z", (), "float32"),
    }
    constants = {"w": random.integers(-128, 128, (4, 3, 1, 1)).astype(np.int8), "one": np.array(1.0, np.float32)}
    return Graph("net", ("x", "r"), ("y", "z"), nodes, tensors, constants, {"y": 31.5})


def bundle(reference: str) -> Bundle:
    """Return a bundle that is named m and names a reference by its SHA-256."""
    return Bundle("m", {"reference": reference}, {}, "")


def zipped(contents: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr(MEMBER, contents)
    return made.getvalue()


def assert_same(first: Graph, second: Graph) -> None:
    assert replace(first, constants={}) == replace(second, constants={})
    assert list(first.constants) == list(second.constants)
    for name, value in first.constants.items():
        np.testing.assert_array_equal(value, second.constants[name], strict=True)


@pytest.mark.parametrize("decibels", [{"y": 31.5}, {}])
def test_a_graph_is_read_as_it_was_written(decibels: dict[str, float]) -> None:
    given = replace(graph(), decibels=decibels)
    contents = graph_bytes(given)
    assert_same(read_graph(contents), given)
    assert contents == graph_bytes(replace(graph(), decibels=decibels))
    assert_same(graph_of(bundle(hashlib.sha256(contents).hexdigest()), zipped(contents)), given)


def test_a_graph_without_decibels_is_the_file_that_older_releases_wrote() -> None:
    _, facts = decode_arrays(graph_bytes(replace(graph(), decibels={})))
    assert set(facts) == {"name", "inputs", "outputs", "nodes", "tensors"}
    assert json.loads(json.dumps(facts)) == facts


def test_an_altered_graph_is_refused_with_both_sums() -> None:
    contents = graph_bytes(graph())
    wanted, actual = "0123456789abcdef" * 4, hashlib.sha256(contents).hexdigest()
    with pytest.raises(BundleError) as refused:
        graph_of(bundle(wanted), zipped(contents))
    assert str(refused.value) == (
        f"part reference.zip of m was altered: its SHA-256 is {actual[:12]}, "
        "the manifest says 0123456789ab: compile the network again"
    )


def test_a_file_without_its_graph_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.zip"
    with zipfile.ZipFile(empty, "w") as file:
        file.writestr("other", b"")
    with pytest.raises(
        BundleError, match=r"^part reference.zip of m cannot be read \(.+\): compile the network again$"
    ):
        graph_of(bundle(""), empty.read_bytes())


@pytest.mark.parametrize("lost", ["name", "inputs", "outputs", "nodes", "tensors"])
def test_a_graph_that_lacks_a_part_is_refused_by_its_name(lost: str) -> None:
    constants, facts = decode_arrays(graph_bytes(graph()))
    contents = encode_arrays(constants, {key: value for key, value in facts.items() if key != lost})
    with pytest.raises(BundleError, match=f"^part reference.zip of m cannot be read: it lacks '{lost}'$"):
        graph_of(bundle(hashlib.sha256(contents).hexdigest()), zipped(contents))
