"""A bundle that is damaged, altered or of another version is refused in one line; nothing in it is trusted unhashed."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hilt.network.compile import compile_network
from hilt.network.graph import Graph, Node, Tensor
from hilt.network.graph_file import graph_of
from hilt.network.simulated import SimulatedVta
from hilt_runtime import BundleError, DeviceError, Network, StepError, read_bundle
from hilt_runtime.arrays import ArraysError, decode_arrays, encode_arrays

from .graphs import Builder, target


@pytest.fixture(scope="module")
def data() -> bytes:
    builder = Builder((1, 16, 8, 8))
    return compile_network(builder.graph(builder.conv("x", 16)), target()).data


def edited(data: bytes, member: str, edit: Callable[[bytes], bytes | None]) -> bytes:
    """Return the same zip file with one member changed, or left out if `edit` returns None."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            contents = edit(old.read(name)) if name == member else old.read(name)
            if contents is not None:
                new.writestr(name, contents)
    return made.getvalue()


def test_a_bundle_is_read_whole(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.hilt"
    path.write_bytes(data)
    bundle = read_bundle(path)
    assert [tensor["name"] for tensor in bundle.inputs] == ["x"]
    assert graph_of(bundle, data).nodes[0].op == "conv2d"


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_truncated_bundle_is_refused(data: bytes, share: float) -> None:
    with pytest.raises(BundleError, match="m is no whole bundle .*copy the file again"):
        read_bundle(data[: int(len(data) * share)], "m")


def test_an_altered_part_is_refused_by_its_hash(data: bytes) -> None:
    other = edited(data, "memory/0.npy", lambda contents: contents[:-1] + bytes([contents[-1] ^ 1]))
    with pytest.raises(
        BundleError, match=r"\(part memory/0.npy was altered: its SHA-256 is \w{12}, the manifest says \w{12}\)"
    ):
        read_bundle(other, "m")


def test_an_altered_manifest_is_refused_by_its_hash(data: bytes) -> None:
    other = edited(data, "manifest.json", lambda contents: contents.replace(b"small", b"large"))
    with pytest.raises(BundleError, match="part manifest.json was altered"):
        read_bundle(other, "m")


def test_a_missing_part_is_named(data: bytes) -> None:
    with pytest.raises(BundleError, match="it has no part memory/0.npy"):
        read_bundle(edited(data, "memory/0.npy", lambda contents: None), "m")


def test_every_byte_that_is_flipped_is_noticed_or_means_nothing(data: bytes) -> None:
    whole = read_bundle(data, "m")
    generator = np.random.default_rng(0)
    for place in generator.integers(0, len(data), 60).tolist():
        other = bytearray(data)
        other[place] ^= 0x10
        try:
            bundle = read_bundle(bytes(other), "m")
            graph_of(bundle, bytes(other))
        except BundleError:
            continue
        assert bundle.manifest == whole.manifest
        assert all(np.array_equal(bundle.arrays[name], whole.arrays[name]) for name in whole.arrays)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda facts: facts.pop("steps"), "the manifest has no steps"),
        (lambda facts: facts.update(inputs={}), "inputs of the manifest cannot be dict"),
        (lambda facts: facts["target"].pop("parameters"), "the target has no parameters"),
        (lambda facts: facts["steps"][0].update(kind="odd"), "there is a step of kind odd"),
        (lambda facts: facts["steps"].append({"kind": "vta", "name": "v", "program": 7}), "there is no program 7"),
        (
            lambda facts: facts["constants"]["weights of conv0"].update(offset=-64),
            "offset of constant .* cannot be -64",
        ),
        (lambda facts: facts["memory"].update(activations=64), "buffer tensor .* lies outside of its memory"),
        (lambda facts: facts["programs"][0].update(count=9999), r"instructions are uint64 .*, not uint64 \(9999, 2\)"),
        (lambda facts: facts["programs"][0]["relocations"][0].update(buffer="odd"), "there is no buffer odd"),
        (lambda facts: facts.update(parts=[1]), "it has no table of parts"),
    ],
)
def test_a_manifest_that_is_not_whole_is_refused(
    data: bytes, edit: Callable[[dict[str, object]], object], message: str
) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        facts = json.loads(archive.read("manifest.json"))
    edit(facts)
    text = json.dumps(facts).encode()
    other = edited(data, "manifest.json", lambda contents: text)
    other = edited(other, "manifest.json.sha256", lambda contents: hashlib.sha256(text).hexdigest().encode())
    with pytest.raises(BundleError, match=message):
        read_bundle(other, "m")


def test_a_place_that_is_not_there_names_the_step() -> None:
    tensors = {"x": Tensor("x", (2,), "int64"), "y": Tensor("y", (2, 3), "float32")}
    node = Node("pick", "Gather", ("e", "x"), ("y",), {"axis": 0}, reason="it only moves data")
    graph = Graph("small", ("x",), ("y",), (node,), tensors, {"e": np.ones((4, 3), np.float32)})
    aim = target()
    with SimulatedVta(aim) as device:
        network = Network(read_bundle(compile_network(graph, aim).data, "m"), device)
        with pytest.raises(StepError, match=r"step pick \(Gather\) cannot be computed with these inputs: .*index 9"):
            network(np.array([0, 9]))


def test_a_machine_without_pynq_is_told_so(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynq", None)
    with pytest.raises(DeviceError, match=r"pynq cannot be imported \(.*\): run the network on a board with PYNQ"):
        Network(read_bundle(data, "m"))


def test_another_version_is_refused(data: bytes) -> None:
    import hashlib

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    text = json.dumps({**manifest, "version": 99}).encode()
    other = edited(data, "manifest.json", lambda _: text)
    other = edited(other, "manifest.json.sha256", lambda _: hashlib.sha256(text).hexdigest().encode())
    with pytest.raises(BundleError, match="m has version 99, this runtime reads 2"):
        read_bundle(other, "m")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"none.hilt cannot be read: No such file"):
        read_bundle(tmp_path / "none.hilt")


def test_arrays_travel_whole() -> None:
    arrays = {"a/b": np.arange(6, dtype=np.int8).reshape(2, 3), "c": np.float32(1.5)}
    decoded, facts = decode_arrays(encode_arrays(arrays, {"n": 1}))
    assert facts == {"n": 1} and np.array_equal(decoded["a/b"], arrays["a/b"]) and decoded["c"] == 1.5
    with pytest.raises(ArraysError):
        decode_arrays(b"no zip")


def test_pickles_are_never_read() -> None:
    with pytest.raises(ArraysError):
        part = io.BytesIO()
        np.save(part, np.array([object()]), allow_pickle=True)
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("index.json", json.dumps({"names": ["a"], "facts": {}}))
            archive.writestr("0.npy", part.getvalue())
        decode_arrays(file.getvalue())
