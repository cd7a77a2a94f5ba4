"""A manifest with every kind of part: each value is taken out, or gets another type or size, and must be refused.

Programs are not looked at here (test_hostile_bundle).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from hilt_runtime import manifest as module
from hilt_runtime.manifest import ManifestNotWholeError, check_manifest, check_parts

MANIFEST: dict[str, Any] = {
    "name": "net",
    "target": {
        "parameters": "1x16_i8w8a32_15_15_18_17", "isa": "A", "clock_hz": 100_000_000, "macs_per_cycle": 256,
        "dram_base_bit": 25, "board": "pynq", "bitstream": "ab", "bitstream_file": "f.bit",
        "register_base": 0x43C0_0000, "table": False, "window": False, "bands": False, "identity": [1, 2, 3],
    },
    "inputs": [{"name": "x", "shape": [1, 3, 4, 4], "dtype": "int8", "scale": 0.5}],
    "outputs": [{"name": "y", "shape": [1, 16, 4, 4], "dtype": "int8", "scale": None}],
    "memory": {"constants": 1024, "activations": 512, "separate": 768},
    "constants": {"w": {"part": "w", "offset": 256}, "v": {"part": "w", "offset": 512}},
    "buffers": {
        "a": {"shape": [1, 1, 4, 4, 1, 16], "bytes": 256, "offset": 256, "separate": 0},
        "b": {"shape": [1, 1, 4, 4, 1, 16], "bytes": 256, "offset": 0, "separate": 256},
        "c": {"shape": [1, 1, 2, 4, 1, 16], "bytes": 128, "offset": 128, "separate": 384, "within": "b"},
    },
    "packed": {"p": {"buffer": "a", "shape": [1, 16, 4, 4]}},
    "arrays": {"k": "k"},
    "programs": [
        {
            "instructions": "words", "count": 2, "cycles": 100, "limit_seconds": 0.5,
            "relocations": [{"buffer": "a", "part": "places", "element_bytes": 16}],
        }
    ],
    "steps": [
        {
            "kind": "pack", "name": "in", "tensor": "x", "buffer": "a", "channels_last": True,
            "fold": {"kernel": 3, "stride": 1, "left": 1, "rows": {"kernel": 5, "stride": 1, "top": 0, "count": 4}},
        },
        {"kind": "vta", "name": "run", "program": 0},
        {
            "kind": "cpu", "name": "sum", "op": "add", "inputs": ["p", "q"], "outputs": ["r"],
            "attributes": {"shift": 1, "text": "t", "none": None, "deep": [[1.5]]},
            "packed": {"p": "a", "q": "a", "r": "b"},
        },
        {"kind": "unpack", "name": "out", "tensor": "u", "buffer": "b", "shape": [1, 16, 4, 4]},
        {"kind": "cpu", "name": "relu", "op": "add", "inputs": ["u", "k", ""], "outputs": ["y"], "attributes": {}},
    ],
    "layers": [
        {
            "name": "conv", "program": 0, "op": "conv2d", "schedule": "tile_h=1", "macs": 10, "cycles": 9, "alone": 8,
            "bound": 7, "residual_cycles": -5,
        }
    ],
    "parts": {},
}  # fmt: skip
ARRAYS: dict[str, Any] = {
    "w": np.zeros(256, np.int8),
    "k": np.zeros(3, np.int8),
    "words": np.zeros((2, 2), "<u8"),
    "places": np.array([0, 1], "<u4"),
}
MISSING = object()
VALUES = (MISSING, None, True, -1, 1.5, 1 << 70, "other", [1], {"other": 1})
BOUNDS = [
    ("target/clock_hz", 1, 10_000_000_000),
    ("target/macs_per_cycle", 1, 1 << 20),
    ("target/register_base", 0, (1 << 40) - 1),
    ("target/identity/0", 0, (1 << 32) - 1),
    ("inputs/0/shape/0", 0, 1 << 32),
    ("inputs/0/scale", 0, 10**300),
    ("memory/constants", 768, 1 << 32),
    ("memory/activations", 512, 1 << 32),
    ("memory/separate", 512, 1 << 32),
    ("programs/0/cycles", 0, 1 << 53),
    ("programs/0/relocations/0/element_bytes", 1, 1 << 16),
    ("layers/0/macs", 0, 1 << 53),
    ("layers/0/residual_cycles", -(1 << 53), 1 << 53),
    ("layers/0/program", 0, 0),
    ("steps/1/program", 0, 0),
    ("steps/0/fold/kernel", 1, 3),
    ("steps/0/fold/stride", 1, 1 << 16),
    ("steps/0/fold/left", -(1 << 16), 1 << 16),
    ("steps/0/fold/rows/kernel", 1, 5),
    ("steps/0/fold/rows/stride", 1, 1 << 16),
    ("steps/0/fold/rows/top", -(1 << 16), 1 << 16),
    ("steps/0/fold/rows/count", 1, 4),
]
"""The path of a number, and the least and the largest that are taken."""


@pytest.fixture(autouse=True)
def without_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "check_programs", lambda *_: None)


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from paths(inner, (*path, place))


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """Return a manifest with another value at a path, or without one."""
    whole: dict[str, Any] = json.loads(json.dumps(MANIFEST))
    *outer, last = path
    inside: Any = whole
    for key in outer:
        inside = inside[key]
    if value is MISSING:
        del inside[last]
    else:
        inside[last] = value
    return whole


def answer(manifest: dict[str, Any], **arrays: Any) -> str:
    """Return why a manifest is refused; `ok` if it is not."""
    try:
        check_manifest(manifest, ARRAYS | arrays)
    except ManifestNotWholeError as error:
        return str(error)
    return "ok"


def test_it_is_whole() -> None:
    assert answer(MANIFEST) == "ok"


def test_each_value_is_looked_at(snapshot: SnapshotAssertion) -> None:
    """A line for each place, with its answers, alike ones together."""
    lines = []
    for path in paths(MANIFEST):
        lines.append("/".join(map(str, path)))
        answers: dict[str, list[str]] = {}
        for value in VALUES:
            word = "missing" if value is MISSING else "2^70" if value == 1 << 70 else json.dumps(value)
            text = re.sub("cannot be .*", "cannot be it", answer(changed(path, value)))
            answers.setdefault(text, []).append(word)
        lines += [f"    {', '.join(words)}: {text}" for text, words in answers.items()]
    assert "\n".join(lines) == snapshot


@pytest.mark.parametrize(("path", "least", "most"), BOUNDS)
def test_each_number_has_its_bounds(path: str, least: int, most: int) -> None:
    keys = tuple(int(key) if key.isdigit() else key for key in path.split("/"))
    for value, taken in ((least, True), (most, True), (least - 1, False), (most + max(1, most // 10**15), False)):
        assert (answer(changed(keys, value)) == "ok") is taken, value


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("name", "n" * 4097, "name of the manifest cannot be 'nnn"),
        ("name", "n" * 4096, "ok"),
        ("inputs/0/shape", [1] * 17, "shape of a tensor cannot be list"),
        ("inputs/0/shape", [1] * 16, "ok"),
        ("target/identity", [1, 2, 3, 4], "the target has no identity that can be"),
        ("programs/0/limit_seconds", 3600.5, "limit_seconds of a program cannot be 3600.5"),
        ("programs/0/limit_seconds", 3600.0, "ok"),
        ("programs/0/limit_seconds", 1e-9, "ok"),
        ("programs/0/limit_seconds", 1e-10, "limit_seconds of a program cannot be 1e-10"),
        ("inputs/0/scale", float("inf"), "tensor x has a scale that is no number"),
        ("inputs/0/scale", float("nan"), "tensor x has a scale that is no number"),
        ("steps/4/attributes/a", [[[[[[[[1]]]]]]]], "ok"),
        ("steps/4/attributes/a", [[[[[[[[[1]]]]]]]]], "attributes of a step cannot be dict"),
        ("constants/v/offset", 256, "buffers constant w and constant v overlap in memory while both are alive"),
        ("constants/v/offset", 768, "ok"),
        ("constants/v/offset", 1024, "constant v lies outside of its memory"),
        ("constants/v/offset", 520, "constant v is not at a multiple of 256 bytes"),
        ("buffers/a/separate", 256, "buffers buffer a and buffer b overlap in memory while both are alive"),
        ("buffers/a/offset", 0, "ok"),
        ("buffers/c/offset", 144, "buffer c is no part of the buffer that it lies within"),
        ("buffers/c/within", "a", "buffer c is no part of the buffer that it lies within"),
        ("buffers/c/within", "c", "buffer c is no part of the buffer that it lies within"),
        ("buffers/w", {}, "buffer w is a constant, too"),
        ("packed/p/shape", [1, 16, 4], "packed tensor p has shape [1, 16, 4], its buffer holds [1, 16, 4, 4]"),
        ("packed/p/shape", [1, 17, 4, 4], "packed tensor p has shape [1, 17, 4, 4], its buffer holds"),
        ("packed/p/shape", [2, 16, 4, 4], "packed tensor p has shape [2, 16, 4, 4], its buffer holds"),
        ("packed/p/shape", [1, 5, 4, 4], "ok"),
        ("packed/p/shape", [1, 5, 4, 4, 1], "packed tensor p has shape"),
        ("steps/2/packed/q", "b", "step sum writes the buffer that it reads"),
        ("steps/2/inputs", ["p", "q", "r"], "step sum reads its own output"),
        ("steps/2/outputs", ["r", "s"], "step sum has no buffer for its output"),
        ("steps/2/outputs", ["s"], "step sum has no buffer for its output"),
        ("steps/2/packed/z", "a", "step sum has no tensor z"),
        ("steps/2/op", "conv2d", "step sum cannot compute conv2d on packed tensors"),
        ("steps/4/op", "nothing", "operator nothing is not known here"),
        ("steps/4/inputs", ["r"], "step relu reads r, which no earlier step makes"),
        ("steps/4/outputs", ["z"], "no step makes the output y"),
        ("steps/3/kind", "vtb", "there is a step of kind vtb"),
        ("inputs", [MANIFEST["inputs"][0]] * 2, "two inputs have one name"),
        ("target/dram_base_bit", 26, "dram_base_bit is 26, that of ISA revision A is 25"),
        ("programs/0/count", 3, "a program's instructions are uint64 (2, 2), not uint64 (3, 2)"),
        ("programs/0/relocations/0/buffer", "w", "ok"),
    ],
)
def test_what_a_value_means_is_looked_at(path: str, value: Any, text: str) -> None:
    keys = tuple(int(key) if key.isdigit() else key for key in path.split("/"))
    assert answer(changed(keys, value)).startswith(text)


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ({"places": np.array([2], "<u4")}, "a relocation of an instruction that is not there"),
        ({"places": np.array([], "<u4")}, "ok"),
        ({"places": np.array([[0]], "<u4")}, "the places of a relocation are no uint32"),
        ({"places": np.array([0], "<i4")}, "the places of a relocation are no uint32"),
        ({"words": np.zeros((2, 2), "<i8")}, "a program's instructions are int64 (2, 2), not uint64 (2, 2)"),
        ({"w": np.zeros((16, 16), np.int8).T[:, ::2]}, "constant w is not in order"),
        ({"w": np.zeros(257, np.int8)}, "buffers constant w and constant v overlap in memory while both are alive"),
    ],
)
def test_what_an_array_holds_is_looked_at(arrays: dict[str, Any], text: str) -> None:
    assert answer(MANIFEST, **arrays).startswith(text)


def test_parts_have_bytes_and_a_sum() -> None:
    good = {"bytes": 5, "sha256": "ab"}
    check_parts({"w": good, "empty": {**good, "bytes": 0}})
    for parts, text in (
        ([good], "it has no table of parts"),
        ({"w": []}, "part w is no object"),
        ({"w": {"bytes": 5}}, "part w has no sha256"),
        ({"w": {**good, "bytes": -1}}, "bytes of part w cannot be -1"),
        ({"w": {**good, "bytes": (1 << 32) + 1}}, "bytes of part w cannot be 4294967297"),
    ):
        with pytest.raises(ManifestNotWholeError, match=text):
            check_parts(parts)
