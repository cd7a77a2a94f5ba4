"""Checks that a bundle's manifest is whole and fits its arrays: what runs on a board relies on it afterwards."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from hilt_runtime import operators

_MEMBERS = {
    "name": str,
    "target": dict,
    "inputs": list,
    "outputs": list,
    "memory": dict,
    "constants": dict,
    "buffers": dict,
    "packed": dict,
    "arrays": dict,
    "programs": list,
    "steps": list,
    "layers": list,
    "parts": dict,
}
_TARGET = {"parameters": str, "isa": str, "clock_hz": int, "macs_per_cycle": int, "dram_base_bit": int}
_TENSOR = {"name": str, "shape": list, "dtype": str}
_PROGRAM = {"instructions": str, "count": int, "relocations": list, "cycles": int, "limit_seconds": (int, float)}
_RELOCATION = {"buffer": str, "part": str, "element_bytes": int}
_BUFFER = {"shape": list, "bytes": int, "offset": int, "separate": int}
_STEPS: Dict[str, Dict[str, Any]] = {
    "pack": {"name": str, "tensor": str, "buffer": str},
    "unpack": {"name": str, "tensor": str, "buffer": str, "shape": list},
    "vta": {"name": str, "program": int},
    "cpu": {"name": str, "op": str, "inputs": list, "outputs": list, "attributes": dict},
}


class ManifestNotWholeError(ValueError):
    """A manifest that lacks something, or names something that is not there."""


def check_manifest(manifest: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Check a manifest against the arrays of its bundle. Raises ManifestNotWholeError."""
    _has(manifest, _MEMBERS, "the manifest")
    _has(manifest["target"], _TARGET, "the target")
    memory = manifest["memory"]
    _has(memory, {"constants": int, "activations": int, "separate": int}, "the memory")
    for tensor in manifest["inputs"] + manifest["outputs"]:
        _has(tensor, _TENSOR, "a tensor")
    for name, constant in manifest["constants"].items():
        _has(constant, {"part": str, "offset": int}, "constant " + name)
        size = _array(arrays, constant["part"]).nbytes
        _within(constant["offset"], size, memory["constants"], "constant " + name)
    for name, buffer in manifest["buffers"].items():
        _has(buffer, _BUFFER, "buffer " + name)
        _within(buffer["offset"], buffer["bytes"], memory["activations"], "buffer " + name)
        _within(buffer["separate"], buffer["bytes"], memory["separate"], "buffer " + name)
    for part in manifest["arrays"].values():
        _array(arrays, part)
    for program in manifest["programs"]:
        _check_program(manifest, program, arrays)
    for step in manifest["steps"]:
        _check_step(manifest, step)


def _check_program(manifest: Mapping[str, Any], program: Dict[str, Any], arrays: Mapping[str, Any]) -> None:
    _has(program, _PROGRAM, "a program")
    words = _array(arrays, program["instructions"])
    _require(words.ndim == 2 and len(words) == program["count"], "a program has another count than instructions")
    for relocation in program["relocations"]:
        _has(relocation, _RELOCATION, "a relocation")
        name, places = relocation["buffer"], _array(arrays, relocation["part"])
        _require(name in manifest["buffers"] or name in manifest["constants"], "there is no buffer " + name)
        _require(relocation["element_bytes"] > 0, "a relocation has elements of no bytes")
        _require(places.dtype.kind == "u" and (not places.size or int(places.max()) < len(words)), "a place too far")


def _check_step(manifest: Mapping[str, Any], step: Any) -> None:
    kind = str(step.get("kind")) if isinstance(step, dict) else "none"
    _require(kind in _STEPS, "there is a step of kind {}".format(kind))
    _has(step, _STEPS[kind], "a step")
    if kind == "vta":
        _require(0 <= step["program"] < len(manifest["programs"]), "there is no program {}".format(step["program"]))
    elif kind == "cpu":
        _require(step["op"] in operators.OPERATORS, "operator {} is not known here".format(step["op"]))
    else:
        _require(step["buffer"] in manifest["buffers"], "there is no buffer " + step["buffer"])


def _has(value: Any, members: Mapping[str, Any], name: str) -> None:
    _require(isinstance(value, dict), name + " is no object")
    for key, kind in members.items():
        there = value.get(key)
        _require(isinstance(there, kind) and not isinstance(there, bool), "{} has no {}".format(name, key))


def _array(arrays: Mapping[str, Any], part: Any) -> Any:
    _require(isinstance(part, str) and part in arrays, "there is no part {}".format(part))
    return arrays[part]


def _within(offset: int, size: int, most: int, name: str) -> None:
    _require(min(offset, size) >= 0 and offset + size <= most, name + " lies outside of its memory")


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise ManifestNotWholeError(text)
