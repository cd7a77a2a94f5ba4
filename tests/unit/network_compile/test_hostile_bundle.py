"""A bundle whose sums are right and whose contents are not: each fault is named in one line before it is placed."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilt.network.compile import compile_network
from hilt.network.graph_file import graph_of
from hilt.network.simulated import SimulatedVta
from hilt_runtime import BundleError, DeviceError, Network, StepError, read_bundle

from .graphs import Builder, residual_network, target, without_table

pytestmark = pytest.mark.usefixtures("quick_search")

INSTRUCTIONS = "programs/0/instructions.npy"
Edit = Callable[["Parts"], object]


class Parts:
    """A bundle's manifest, and its other members as bytes."""

    def __init__(self, data: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            self.members = {name: archive.read(name) for name in archive.namelist()}
        self.manifest: dict[str, Any] = json.loads(self.members["manifest.json"])

    def array(self, name: str) -> Any:
        return np.load(io.BytesIO(self.members[name])).copy()

    def put(self, name: str, array: Any) -> None:
        file = io.BytesIO()
        np.save(file, array)
        self.members[name] = file.getvalue()

    def words(self, change: Callable[[Any], Any]) -> None:
        """Change the instructions of program 0 in place."""
        words = self.array(INSTRUCTIONS)
        changed = change(words)
        self.put(INSTRUCTIONS, words if changed is None else changed)

    def file(self, text: bytes | None = None) -> bytes:
        """Return the bundle with all sums right."""
        for name, facts in self.manifest["parts"].items():
            data = self.members[name]
            facts["bytes"], facts["sha256"] = len(data), hashlib.sha256(data).hexdigest()
        text = json.dumps(self.manifest).encode() if text is None else text
        self.members["manifest.json"] = text
        self.members["manifest.json.sha256"] = hashlib.sha256(text).hexdigest().encode()
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for name, data in self.members.items():
                archive.writestr(name, data)
        return file.getvalue()


@pytest.fixture(scope="module")
def data(quick_search: None) -> bytes:
    builder = residual_network()
    return compile_network(builder.graph(builder.nodes[-1].outputs[0]), target()).data


def first(words: Any, opcode: int, where: Callable[[Any], Any] = lambda words: True) -> int:
    """Return the first instruction of an opcode."""
    return int(np.flatnonzero(((words[:, 0] & np.uint64(7)) == opcode) & where(words))[0])


def add(words: Any, place: int, word: int, bit: int, value: int) -> None:
    words[place, word] += np.uint64(value << bit)


DRAM_BASE, SRAM_BASE, MEMORY_TYPE, UOP_END, ITER_IN, Y_SIZE = 25, 9, 7, 21, 49, 0
LOAD, STORE, GEMM = 0, 1, 2


def unrelocated(parts: Parts) -> None:
    """A STORE at an absolute address, 1 MiB: what Linux keeps there would be overwritten."""
    words = parts.array(INSTRUCTIONS)
    place = first(words, STORE)
    words[place, 0] &= ~np.uint64(0xFFFFFFFF << DRAM_BASE)
    add(words, place, 0, DRAM_BASE, 0x0010_0000 // 16)
    parts.put(INSTRUCTIONS, words)
    for relocation in parts.manifest["programs"][0]["relocations"]:
        places = parts.array(relocation["part"])
        parts.put(relocation["part"], places[places != place])


def onto_a_constant(parts: Parts) -> None:
    words = parts.array(INSTRUCTIONS)
    place = first(words, STORE)
    for relocation in parts.manifest["programs"][0]["relocations"]:
        places = parts.array(relocation["part"])
        if place in places:
            # The identity block has the elements of an input: nothing else is wrong with it.
            relocation["buffer"] = "constants"
    parts.manifest["constants"]["constants"] = {
        "part": "memory/big.npy",
        "offset": parts.manifest["memory"]["constants"],
    }
    parts.manifest["memory"]["constants"] += 1 << 16
    parts.put("memory/big.npy", np.zeros(1 << 16, np.int8))
    parts.manifest["parts"]["memory/big.npy"] = {}


def all_at_the_start(parts: Parts) -> None:
    for buffer in parts.manifest["buffers"].values():
        buffer["offset"] = 0


def jumbled(parts: Parts) -> None:
    """Take the token away that the first LOAD pushes."""
    words = parts.array(INSTRUCTIONS)
    place = first(words, LOAD, lambda words: (words[:, 0] >> np.uint64(6)) & np.uint64(1) == 1)
    words[place, 0] &= ~np.uint64(1 << 6)
    parts.put(INSTRUCTIONS, words)


def by_table(memory_type: int, x_size: int | None = None) -> Edit:
    """Name the table, and make the first STORE one of its two, of one row; 2 and 3 are revision A's bits of them."""

    def edit(parts: Parts) -> None:
        words = parts.array(INSTRUCTIONS)
        place = first(words, STORE)
        add(words, place, 0, MEMORY_TYPE, memory_type)
        if x_size is not None:
            words[place, 1] = 1 | x_size << 16
        parts.put(INSTRUCTIONS, words)
        parts.manifest["target"]["table"] = True

    return edit


def window(iter_in: int | None = None) -> Edit:
    """Make the first GEMM a window GEMM, with so many columns, and name windows if it has any."""

    def edit(parts: Parts) -> None:
        words = parts.array(INSTRUCTIONS)
        place = first(words, GEMM)
        if iter_in is not None:
            words[place, 0] &= np.uint64((1 << ITER_IN) - 1)
            words[place, 0] |= np.uint64(iter_in << ITER_IN)
            parts.manifest["target"]["window"] = True
        words[place, 0] |= np.uint64(1 << 63)
        parts.put(INSTRUCTIONS, words)

    return edit


def field(opcode: int, word: int, bit: int, value: int) -> Edit:
    """Add to a field of the first instruction of an opcode."""
    return lambda parts: parts.words(lambda words: add(words, first(words, opcode), word, bit, value))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edit", "message"),
    [
        pytest.param(
            field(STORE, 0, DRAM_BASE, (64 << 20) // 16),
            r"program 0: instruction \d+ \(STORE of OUT\) covers bytes 0x40\w+ to 0x40\w+, outside its buffer",
            id="64 MiB away",
        ),
        pytest.param(field(LOAD, 1, Y_SIZE, 1000), r"\(LOAD of \w+\) .*(outside its|ends at)", id="tall"),
        pytest.param(
            unrelocated,
            r"\(STORE of OUT\) .* at an address of its own: no relocation gives it a buffer",
            id="absolute",
        ),
        pytest.param(onto_a_constant, r"\(STORE of OUT\) covers .* of a constant, which is only read", id="constant"),
        pytest.param(all_at_the_start, "overlap in memory while both are alive", id="overlap"),
        pytest.param(field(GEMM, 0, UOP_END, 9000), "reads micro-ops past their buffer|that no LOAD", id="micro-ops"),
        pytest.param(field(LOAD, 0, SRAM_BASE, 60_000), "ends at element .* of a buffer of", id="sram"),
        pytest.param(
            field(STORE, 0, MEMORY_TYPE, 2),
            "by way of the table, which the accelerator has not, or the bundle does not",
            id="unnamed table",
        ),
        pytest.param(by_table(2), "goes by way of a table that no STORE before it has written", id="no table"),
        pytest.param(by_table(3, 15), "to the table of anything but one row of 16 elements", id="part of a table"),
        pytest.param(by_table(3, 16), r"changes instruction \d+ \(STORE of OUT to the table\)", id="relocated table"),
        pytest.param(window(), "is a window GEMM, which the accelerator has not, or the bundle", id="unnamed window"),
        pytest.param(window(1), "window GEMM of anything but one micro-op and 2 to 128 columns", id="one column"),
        pytest.param(window(129), "window GEMM of anything but one micro-op and 2 to 128 columns", id="long row"),
        pytest.param(jumbled, r"tokens from load to compute are pushed and \d+ popped", id="tokens"),
        pytest.param(
            lambda p: p.words(lambda w: w.__setitem__(len(w) - 1, w[first(w, GEMM)])),
            "a program ends with its one FINISH",
            id="finish",
        ),
        pytest.param(
            lambda p: p.manifest["programs"][0].update(limit_seconds=1e-7), "which do not fit its limit", id="limit"
        ),
        pytest.param(
            lambda p: p.manifest["steps"].reverse(), "read before it is written|which no earlier step", id="steps"
        ),
        pytest.param(lambda p: p.words(lambda w: np.concatenate((w[:1], w))), "instructions are uint64", id="count"),
    ],
)
def test_a_program_that_would_leave_its_memory_or_never_end_is_refused(data: bytes, edit: Edit, message: str) -> None:
    parts = Parts(data)
    edit(parts)
    with pytest.raises(BundleError, match=message) as refused:
        read_bundle(parts.file(), "m")
    assert "\n" not in str(refused.value)


def target_is(**facts: object) -> Edit:
    return lambda parts: parts.manifest["target"].update(facts)


def program_is(**facts: object) -> Edit:
    return lambda parts: parts.manifest["programs"][0].update(facts)


def input_is(**facts: object) -> Edit:
    return lambda parts: parts.manifest["inputs"][0].update(facts)


def buffer_is(**facts: object) -> Edit:
    return lambda parts: next(iter(parts.manifest["buffers"].values())).update(facts)


def unpacked_shape_is(*shape: int) -> Edit:
    return lambda p: next(step for step in p.manifest["steps"] if step["kind"] == "unpack").update(shape=[*shape])


def words_are(kind: str) -> Edit:
    return lambda parts: parts.words(lambda words: words.astype(kind))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (target_is(dram_base_bit=1 << 62), "dram_base_bit of the target cannot be 4611686018427387904"),
        (target_is(dram_base_bit=-1), "dram_base_bit of the target cannot be -1"),
        (target_is(dram_base_bit=26), "dram_base_bit is 26, that of ISA revision A is 25"),
        (target_is(clock_hz=0), "clock_hz of the target cannot be 0"),
        (target_is(isa="C"), "isa of the target cannot be 'C'"),
        (target_is(parameters="3x16_i8w8a32_15_15_18_17"), "names parameters that no VTA has"),
        (program_is(limit_seconds=float("inf")), "limit_seconds of a program cannot be inf"),
        (program_is(limit_seconds=float("nan")), "limit_seconds of a program cannot be nan"),
        (program_is(limit_seconds=-1), "limit_seconds of a program cannot be -1"),
        (program_is(cycles=True), "cycles of a program cannot be True"),
        (words_are("i1"), "instructions are int8"),
        (words_are("f8"), "instructions are float64"),
        (lambda p: p.words(lambda w: w[:, :1]), r"instructions are uint64 \(\d+, 1\)"),
        (buffer_is(shape=["a"]), "shape of buffer .* cannot be list"),
        (buffer_is(shape=[1, 1, 2, 2, 1, 16]), "has shape .* and .* bytes"),
        (buffer_is(bytes=1 << 40), "bytes of buffer .* cannot be 1099511627776"),
        (lambda p: p.manifest["memory"].update(activations=1 << 62), "activations of the memory cannot be"),
        (lambda p: p.manifest["outputs"][0].update(name="odd"), "no step makes the output odd"),
        (unpacked_shape_is(), r"has shape \[\], its buffer holds"),
        (unpacked_shape_is(1), r"has shape \[1\], its buffer holds"),
        (input_is(dtype="object"), "dtype of a tensor cannot be 'object'"),
        (input_is(shape=[-1]), "shape of a tensor cannot be list"),
        (input_is(scale="a"), "tensor x has a scale that is no number"),
        (lambda p: p.manifest["parts"].update({"memory/0.npy": 3}), "part memory/0.npy is no object"),
    ],
)  # fmt: skip
def test_a_manifest_with_a_value_that_cannot_be_is_refused(data: bytes, edit: Edit, message: str) -> None:
    parts = Parts(data)
    edit(parts)
    if message.startswith("part memory"):
        text = json.dumps(parts.manifest).encode()
        parts.manifest["parts"].pop("memory/0.npy")
        file = parts.file(text)
    else:
        file = parts.file()
    with pytest.raises(BundleError, match=message):
        read_bundle(file, "m")


@pytest.fixture(scope="module")
def packed_data() -> bytes:
    """A table of no products between two convolutions, looked up in VTA's buffers."""
    builder = Builder((1, 16, 8, 8))
    builder.constants["entries"] = np.roll(np.arange(-128, 128), 3).astype(np.int8)
    changed = builder.add_node("n", "table", [builder.conv("x", 16), "entries"], (1, 16, 8, 8), {})
    return compile_network(builder.graph(builder.conv(changed, 16)), without_table(target())).data


def _on_packed(parts: Parts) -> dict[str, Any]:
    (step,) = (step for step in parts.manifest["steps"] if "packed" in step)
    assert isinstance(step, dict)
    return step


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        pytest.param(lambda step: step.update(packed=[1]), "has no buffers by tensor", id="no mapping"),
        pytest.param(lambda step: step.update(op="reshape"), "cannot compute reshape on packed", id="operator"),
        pytest.param(lambda step: step["packed"].update({"n.y": "b"}), "has no buffer 'b'", id="unknown buffer"),
        pytest.param(lambda step: step["packed"].update({"n.y": 7}), "has no buffer 7", id="no name"),
        pytest.param(lambda step: step["packed"].pop("n.y"), "no buffer for its output", id="no output"),
        pytest.param(lambda step: step["packed"].update(z="tensor n.y"), "has no tensor z", id="other tensor"),
        pytest.param(
            lambda step: step["packed"].update({"n.y": step["packed"]["conv0.y"]}), "the buffer that it reads", id="own"
        ),
        pytest.param(
            lambda step: step["packed"].update({"conv0.y": "tensor conv2.y"}), "read before it is written", id="early"
        ),
    ],
)
def test_a_step_on_buffers_that_are_not_its_own_is_refused(
    packed_data: bytes, edit: Callable[[dict[str, Any]], object], message: str
) -> None:
    parts = Parts(packed_data)
    edit(_on_packed(parts))
    with pytest.raises(BundleError, match=message):
        read_bundle(parts.file(), "m.hilt")


def test_a_step_on_buffers_of_other_shapes_is_refused_when_it_runs(packed_data: bytes) -> None:
    parts = Parts(packed_data)
    step = _on_packed(parts)
    step["op"], step["attributes"] = "upsample", {"factors": [2, 1]}
    with SimulatedVta(target()) as device, pytest.raises(StepError, match=r"step n \(upsample\) cannot be computed"):
        Network(read_bundle(parts.file(), "m.hilt"), device).run({"x": np.zeros((1, 16, 8, 8), np.int8)})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[" * 20_000, "nested too deeply"),
        (b'{"a":' * 20_000, "nested too deeply"),
        (b"9" * 100_000, "a number of 100000 digits"),
        (b"[" + b"0," * (1 << 21) + b"0]", "larger than any of hilt's"),
        (b"\xff\xfe", "cannot be read"),
        (b"null", "its manifest names another format"),
    ],
    ids=["lists", "objects", "digits", "values", "bytes", "null"],
)
def test_a_manifest_that_is_no_json_of_ours_is_refused(data: bytes, text: bytes, message: str) -> None:
    with pytest.raises(BundleError, match=message):
        read_bundle(Parts(data).file(text), "m")


def rezipped(data: bytes, method: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w", method) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    return file.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_compressed_bundle_is_refused(data: bytes, method: int) -> None:
    with pytest.raises(BundleError, match=r"part manifest.json is compressed; hilt's parts are stored"):
        read_bundle(rezipped(data, method), "m")


def marked(data: bytes, offset: int, value: int) -> bytes:
    """Return a zip file whose directory entries have `value` at `offset`."""
    changed = bytearray(data)
    place = changed.find(b"PK\x01\x02")
    while place >= 0:
        changed[place + offset] = value
        place = changed.find(b"PK\x01\x02", place + 4)
    return bytes(changed)


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [(8, 1, "is encrypted"), (10, 99, "is compressed"), (24, 255, "is compressed|more bytes than the file")],
)
def test_an_encrypted_or_swollen_directory_is_refused(data: bytes, offset: int, value: int, message: str) -> None:
    with pytest.raises(BundleError, match=message):
        read_bundle(marked(data, offset, value), "m")


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"'<u8'", b"'|O8'"), (b"(", b"(1099511627776, "), (b"(", b"(" * 60), (b"}", b""), (b"\x01\x00", b"\x02\x00")],
)
def test_a_header_of_an_array_that_numpy_does_not_write_is_refused(data: bytes, old: bytes, new: bytes) -> None:
    parts = Parts(data)
    parts.members[INSTRUCTIONS] = parts.members[INSTRUCTIONS].replace(old, new, 1)
    with pytest.raises(BundleError, match=r"m is no whole bundle \(part programs/0/instructions.npy (is no array|has)"):
        read_bundle(parts.file(), "m")


def test_reading_takes_no_more_than_twice_the_file(data: bytes, tmp_path: Path) -> None:
    """Parts that overlap in the file, 64 times 4 MB of it: each was read, and took its size again."""
    parts = Parts(data)
    names = [f"memory/big{number}.npy" for number in range(64)]
    parts.put("memory/big.npy", np.zeros(4 << 20, np.int8))
    whole = parts.members["memory/big.npy"]
    for name in names:
        parts.members[name] = b""
        parts.manifest["parts"][name] = {}
    file = bytearray(parts.file())
    for name in names:
        entry = file.rfind(b"PK\x01\x02", 0, file.rfind(name.encode()))
        file[entry + 20 : entry + 28] = len(whole).to_bytes(4, "little") * 2
    path = tmp_path / "bomb.hilt"
    path.write_bytes(bytes(file))
    with pytest.raises(BundleError, match="its parts have more bytes than the file"):
        read_bundle(path)


def test_a_manifest_of_very_many_values_is_refused_before_they_are_made(data: bytes) -> None:
    parts = Parts(data)
    parts.manifest["more"] = [{} for _ in range(1 << 19)]
    file = parts.file()
    tracemalloc.start()
    try:
        with pytest.raises(BundleError, match="is larger than any of hilt's"):
            read_bundle(file)
        assert tracemalloc.get_traced_memory()[1] < 2 * len(file)
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_bundle_that_is_larger_than_the_memory_is_named(data: bytes, tmp_path: Path) -> None:
    parts = Parts(data)
    parts.put("memory/big.npy", np.zeros(300 << 20, np.int8))
    parts.manifest["parts"]["memory/big.npy"] = {}
    path = tmp_path / "large.hilt"
    path.write_bytes(parts.file())
    code = (
        "import resource, sys; from hilt_runtime import BundleError, read_bundle\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({700 << 20}, {700 << 20}))\n"
        "keep = bytearray(300 << 20)\n"
        "try: read_bundle(sys.argv[1])\n"
        "except BundleError as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert ran.stdout == f"bundle {path} needs more memory than there is\n"


def test_a_step_that_wants_more_memory_than_there_is_is_named() -> None:
    builder = Builder((1, 16, 4, 4))
    pads = {"pads": [0, 0, 0, 0, 0, 0, 0, 0], "value": 0}
    wide = builder.add_node("wide", "pad", [builder.conv("x", 16)], (1, 16, 4, 4), pads)
    parts = Parts(compile_network(builder.graph(wide), target()).data)
    for step in parts.manifest["steps"]:
        step.get("attributes", {}).update(pads=[0, 0, 0, 1 << 40] * 2)
    with SimulatedVta(target()) as device:
        network = Network(read_bundle(parts.file(), "m"), device)
        with pytest.raises(StepError, match=r"step wide \(pad\) cannot be computed"):
            network(builder.input())


def test_memory_beyond_the_address_registers_is_refused(data: bytes) -> None:
    with SimulatedVta(target()) as device:
        device._base = 0xFFFF_F000
        with pytest.raises(DeviceError, match="beyond VTA's 32-bit addresses"):
            Network(read_bundle(data, "m"), device)


@pytest.mark.parametrize("facts", [b"{}", b'{"names": [], "facts": {"name": "a"}}', b"[" * 5000])
def test_a_reference_that_is_no_graph_is_refused(data: bytes, facts: bytes) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("index.json", facts)
    parts = Parts(data)
    parts.members["reference.zip"] = file.getvalue()
    parts.manifest["reference"] = hashlib.sha256(file.getvalue()).hexdigest()
    whole = parts.file()
    with pytest.raises(BundleError, match=r"part reference.zip of m cannot be read"):
        graph_of(read_bundle(whole, "m"), whole)
