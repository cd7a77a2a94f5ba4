"""Checks of a bundle's manifest: a board's steps rely on it afterwards, so every part of it is looked at."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import numpy as np

from hilt_runtime import isa, operators
from hilt_runtime.layout import bands
from hilt_runtime.memory_check import check_apart, check_programs
from hilt_runtime.program_check import InstructionSet, ProgramCheckError

_LONGEST_NAME = 4096
_MOST_AXES = 16
_MOST_BYTES = 1 << 32
"""VTA's addresses have 32 bits."""
_MOST_PROGRAM_BYTES = 1 << 25
_MOST_CYCLES = 1 << 53
_FASTEST_HZ = 10_000_000_000
_LONGEST_SECONDS = 3600.0
_DEEPEST_ATTRIBUTE = 8
PACKED = frozenset(
    (
        "add",
        "average_pool",
        "concat",
        "depth_to_space",
        "global_average_pool",
        "max_pool",
        "multiply",
        "normalization",
        "pad",
        "prelu",
        "slice",
        "table",
        "upsample",
    )
)
"""The operators that compute on VTA's buffers."""
_DTYPES: Tuple[str, ...] = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_DTYPES += ("float16", "float32", "float64")

_Check = Callable[[Any], bool]


class ManifestNotWholeError(ValueError):
    """A manifest that lacks something, has a value that cannot be, or names something that is not there."""


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_NAME


def _is_integer(low: int, high: int) -> _Check:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_number(low: float, high: float) -> _Check:
    def check(value: Any) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high

    return check


def _is_list(item: _Check, most: int = 1 << 20) -> _Check:
    return lambda value: isinstance(value, list) and len(value) <= most and all(item(each) for each in value)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_text(key) for key in value)


def _is_scale(value: Any) -> bool:
    return value is None or (_is_number(0, 1e300)(value) and math.isfinite(value))


def _is_attribute(value: Any, depth: int = 0) -> bool:
    if isinstance(value, list):
        return depth < _DEEPEST_ATTRIBUTE and all(_is_attribute(each, depth + 1) for each in value)
    return value is None or isinstance(value, (int, float)) or _is_text(value)


def _are_attributes(value: Any) -> bool:
    return _is_mapping(value) and all(_is_attribute(each) for each in value.values())


_size = _is_integer(0, _MOST_BYTES)
_count = _is_integer(0, _MOST_CYCLES)
_signed = _is_integer(-_MOST_CYCLES, _MOST_CYCLES)
_shape = _is_list(_is_integer(0, _MOST_BYTES), _MOST_AXES)
_names = _is_list(_is_text)

_MEMBERS: Dict[str, _Check] = {
    "name": _is_text,
    "target": _is_mapping,
    "inputs": _is_list(_is_mapping),
    "outputs": _is_list(_is_mapping),
    "memory": _is_mapping,
    "constants": _is_mapping,
    "buffers": _is_mapping,
    "packed": _is_mapping,
    "arrays": _is_mapping,
    "programs": _is_list(_is_mapping),
    "steps": _is_list(_is_mapping),
    "layers": _is_list(_is_mapping),
    "parts": _is_mapping,
}
_TARGET: Dict[str, _Check] = {
    "parameters": _is_text,
    "isa": lambda value: value in isa.REVISIONS,
    "clock_hz": _is_integer(1, _FASTEST_HZ),
    "macs_per_cycle": _is_integer(1, 1 << 20),
    "dram_base_bit": _is_integer(0, 63),
}
_TARGET_OPTIONS: Dict[str, _Check] = {
    "board": _is_text,
    "bitstream": _is_text,
    "bitstream_file": _is_text,
    "register_base": _is_integer(0, (1 << 40) - 1),
    "table": lambda value: isinstance(value, bool),
    "window": lambda value: isinstance(value, bool),
    "bands": lambda value: isinstance(value, bool),
    "identity": _is_list(_is_integer(0, (1 << 32) - 1), 3),
}
_TENSOR: Dict[str, _Check] = {"name": _is_text, "shape": _shape, "dtype": lambda value: value in _DTYPES}
_PROGRAM: Dict[str, _Check] = {
    "instructions": _is_text,
    "count": _is_integer(1, _MOST_PROGRAM_BYTES),
    "relocations": _is_list(_is_mapping),
    "cycles": _count,
    "limit_seconds": _is_number(1e-9, _LONGEST_SECONDS),
}
_RELOCATION: Dict[str, _Check] = {"buffer": _is_text, "part": _is_text, "element_bytes": _is_integer(1, 1 << 16)}
_BUFFER: Dict[str, _Check] = {"shape": _shape, "bytes": _size, "offset": _size, "separate": _size}
_LAYER: Dict[str, _Check] = {"name": _is_text, "program": _count, "op": _is_text, "schedule": _is_text}
_LAYER.update(dict.fromkeys(("macs", "cycles", "alone", "bound"), _count))
_FOLD: Dict[str, _Check] = {
    "kernel": _is_integer(1, 1 << 16),
    "stride": _is_integer(1, 1 << 16),
    "left": _is_integer(-(1 << 16), 1 << 16),
}
_FOLD_ROWS: Dict[str, _Check] = {
    "kernel": _is_integer(1, 1 << 12),
    "stride": _is_integer(1, 1 << 16),
    "top": _is_integer(-(1 << 16), 1 << 16),
    "count": _is_integer(1, 1 << 16),
}
_STEPS: Dict[str, Dict[str, _Check]] = {
    "pack": {"name": _is_text, "tensor": _is_text, "buffer": _is_text},
    "unpack": {"name": _is_text, "tensor": _is_text, "buffer": _is_text, "shape": _shape},
    "vta": {"name": _is_text, "program": _count},
    "cpu": {"name": _is_text, "op": _is_text, "inputs": _names, "outputs": _names, "attributes": _are_attributes},
}


def check_parts(parts: Any) -> None:
    """Check the table of parts, before any is read. Raises ManifestNotWholeError."""
    _require(_is_mapping(parts), "it has no table of parts")
    for name, facts in parts.items():
        _has(facts, {"bytes": _size, "sha256": _is_text}, "part " + name)


def check_manifest(manifest: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Check a manifest against the arrays of its bundle. Raises ManifestNotWholeError."""
    _has(manifest, _MEMBERS, "the manifest")
    machine = _machine(manifest["target"])
    memory = manifest["memory"]
    _has(memory, dict.fromkeys(("constants", "activations", "separate"), _size), "the memory")
    for tensor in manifest["inputs"] + manifest["outputs"]:
        _has(tensor, _TENSOR, "a tensor")
        _require(_is_scale(tensor.get("scale")), "tensor {} has a scale that is no number".format(tensor["name"]))
    _check_memory(manifest, arrays, machine)
    for part in manifest["arrays"].values():
        _array(arrays, part)
    for program in manifest["programs"]:
        _check_program(manifest, program, arrays, machine)
    _check_layers(manifest)
    for step in manifest["steps"]:
        _check_step(manifest, step)
    _check_flow(manifest)
    try:
        check_programs(manifest, arrays, machine)
    except ProgramCheckError as error:
        raise ManifestNotWholeError(str(error)) from None


def _machine(target: Mapping[str, Any]) -> InstructionSet:
    """Return the accelerator that a bundle is for."""
    _has(target, _TARGET, "the target")
    for name, check in _TARGET_OPTIONS.items():
        _require(name not in target or check(target[name]), "the target has no {} that can be".format(name))
    try:
        features = [target.get(name, False) for name in ("table", "window", "bands")]
        machine = InstructionSet(isa.geometry(target["parameters"]), target["isa"], *features)
        bit = machine.dram_base_bit
    except (isa.ParametersError, isa.FieldOverflowError) as error:
        raise ManifestNotWholeError(str(error)) from None
    text = "dram_base_bit is {}, that of ISA revision {} is {}"
    _require(target["dram_base_bit"] == bit, text.format(target["dram_base_bit"], target["isa"], bit))
    return machine


def _check_memory(manifest: Mapping[str, Any], arrays: Mapping[str, Any], machine: InstructionSet) -> None:
    """Check that constants and buffers lie in their memory, each whole, and constants apart from each other."""
    memory, sizes = manifest["memory"], machine.sizes
    largest = max(machine.sizes.element_bytes(machine.revision))
    spans = []
    for key, constant in manifest["constants"].items():
        name = "constant " + key
        _has(constant, {"part": _is_text, "offset": _size}, name)
        array = _array(arrays, constant["part"])
        _require(array.flags.c_contiguous, name + " is not in order")
        _within(constant["offset"], array.nbytes, memory["constants"], largest, name)
        spans.append((name, constant["offset"], array.nbytes))
    _require_apart(spans)
    separate = []
    for key, buffer in manifest["buffers"].items():
        name = "buffer " + key
        _require(key not in manifest["constants"], name + " is a constant, too")
        _has(buffer, _BUFFER, name)
        shape = buffer["shape"]
        whole = len(shape) == 6 and shape[4:] == [sizes.batch, sizes.block] and math.prod(shape) == buffer["bytes"]
        _require(whole and buffer["bytes"] > 0, "{} has shape {} and {} bytes".format(name, shape, buffer["bytes"]))
        if "within" in buffer:
            _check_within(manifest["buffers"], buffer, sizes.batch * sizes.block, name)
            continue
        _within(buffer["offset"], buffer["bytes"], memory["activations"], largest, name)
        _within(buffer["separate"], buffer["bytes"], memory["separate"], largest, name)
        separate.append((name, buffer["separate"], buffer["bytes"]))
    _require_apart(separate)
    for name, facts in manifest["packed"].items():
        _has(facts, {"buffer": _is_text, "shape": _shape}, "packed tensor " + name)
        _check_packed(manifest, facts["buffer"], facts["shape"], "packed tensor " + name)


def _check_within(buffers: Mapping[str, Any], buffer: Mapping[str, Any], element: int, name: str) -> None:
    """Check that a tensor lies within a buffer that lies in no other, at one place of it in both plans of memory.

    The place is a multiple of `element` bytes.
    """
    _require(_is_text(buffer["within"]) and buffer["within"] in buffers, name + " lies within no buffer")
    whole = buffers[buffer["within"]]
    _has(whole, _BUFFER, "buffer " + buffer["within"])
    offset = buffer["offset"] - whole["offset"]
    alike = offset == buffer["separate"] - whole["separate"]
    inside = offset >= 0 and offset + buffer["bytes"] <= whole["bytes"] and offset % element == 0
    _require("within" not in whole and alike and inside, name + " is no part of the buffer that it lies within")


def _require_apart(spans: List[Tuple[str, int, int]]) -> None:
    try:
        check_apart(spans, {name: ((0, 0), (0, 0)) for name, _, _ in spans})
    except ProgramCheckError as error:
        raise ManifestNotWholeError(str(error)) from None


def _check_packed(manifest: Mapping[str, Any], buffer: str, shape: List[int], name: str) -> None:
    """Check that a tensor of `shape` fits its buffer's blocks."""
    _require(buffer in manifest["buffers"], "there is no buffer " + buffer)
    outer, inner, height, width, batch, block = manifest["buffers"][buffer]["shape"]
    there = [outer * batch, inner * block, height, width]
    text = "{} has shape {}, its buffer holds {}"
    _require(2 <= len(shape) <= 4, text.format(name, shape, there))
    given = [*shape, 1, 1][:4]
    if given[0] == 1 and height == bands(given[2], batch):  # of one image in bands
        there[2] = given[2]
    fits = given[2:] == there[2:] and given[0] <= there[0] and given[1] <= there[1]
    _require(fits, text.format(name, shape, there))


def _check_program(
    manifest: Mapping[str, Any], program: Dict[str, Any], arrays: Mapping[str, Any], machine: InstructionSet
) -> None:
    _has(program, _PROGRAM, "a program")
    words = _array(arrays, program["instructions"])
    wanted = (program["count"], machine.formats.words)
    text = "a program's instructions are {} {}, not uint64 {}"
    alike = words.dtype == np.dtype("<u8") and words.shape == wanted
    _require(alike, text.format(words.dtype, words.shape, wanted))
    _require(words.nbytes <= _MOST_PROGRAM_BYTES, "a program is longer than an instruction buffer")
    for relocation in program["relocations"]:
        _has(relocation, _RELOCATION, "a relocation")
        name, places = relocation["buffer"], _array(arrays, relocation["part"])
        _require(name in manifest["buffers"] or name in manifest["constants"], "there is no buffer " + name)
        _require(places.dtype == np.dtype("<u4") and places.ndim == 1, "the places of a relocation are no uint32")
        _require(not places.size or int(places.max()) < len(words), "a relocation of an instruction that is not there")


def _check_layers(manifest: Mapping[str, Any]) -> None:
    for layer in manifest["layers"]:
        _has(layer, _LAYER, "a layer")
        _require(layer["program"] < len(manifest["programs"]), "there is no program {}".format(layer["program"]))
        _require(_signed(layer.get("residual_cycles", 0)), "a layer has residual_cycles that cannot be")


def _check_step(manifest: Mapping[str, Any], step: Dict[str, Any]) -> None:
    kind = str(step.get("kind"))[:80]
    _require(kind in _STEPS, "there is a step of kind {}".format(kind))
    _has(step, _STEPS[kind], "a step")
    if kind == "vta":
        _require(step["program"] < len(manifest["programs"]), "there is no program {}".format(step["program"]))
    elif kind == "cpu":
        _require(step["op"] in operators.OPERATORS, "operator {} is not known here".format(step["op"][:80]))
        if "packed" in step:
            _check_packed_step(manifest, step)
    elif kind == "unpack":
        _check_packed(manifest, step["buffer"], step["shape"], "step " + step["name"])
    else:
        _require(step["buffer"] in manifest["buffers"], "there is no buffer " + step["buffer"])
        _require(step.get("channels_last", True) is True, "a pack has channels_last that cannot be")
        if "fold" in step:
            _check_fold(manifest["buffers"][step["buffer"]]["shape"], step["fold"])


def _check_fold(shape: Sequence[int], fold: Any) -> None:
    """Check a fold into a buffer of this shape."""
    _has(fold, _FOLD, "a fold")
    _require(set(fold) - {"rows"} == set(_FOLD), "a fold has more than kernel, stride, left and rows")
    if "rows" in fold:
        rows = fold["rows"]
        _has(rows, _FOLD_ROWS, "a fold's rows")
        _require(set(rows) == set(_FOLD_ROWS), "a fold's rows have more than kernel, stride, top and count")
        _require(len(shape) == 6, "a fold's buffer has not six axes")
        lanes, most = shape[1] * shape[5], shape[2] * shape[4]
        _require(fold["kernel"] * rows["kernel"] <= lanes, "a fold has more taps than its buffer has channels")
        _require(rows["count"] <= most, "a fold has more rows than its buffer")


def _check_packed_step(manifest: Mapping[str, Any], step: Dict[str, Any]) -> None:
    """Check a step of the processor that reads and writes VTA's buffers."""
    name, packed = "step " + step["name"], step["packed"]
    _require(_is_mapping(packed), name + " has no buffers by tensor")
    _require(step["op"] in PACKED, "{} cannot compute {} on packed tensors".format(name, step["op"][:80]))
    _require(len(step["outputs"]) == 1 and step["outputs"][0] in packed, name + " has no buffer for its output")
    for tensor, buffer in packed.items():
        _require(_is_text(buffer) and buffer in manifest["buffers"], "{} has no buffer {}".format(name, _shown(buffer)))
        _require(tensor in step["inputs"] or tensor in step["outputs"], "{} has no tensor {}".format(name, tensor[:80]))
    _require(step["outputs"][0] not in step["inputs"], name + " reads its own output")
    spans = {tensor: _span(manifest["buffers"][buffer]) for tensor, buffer in packed.items()}
    begin, end = spans[step["outputs"][0]]
    reads = [spans[tensor] for tensor in step["inputs"] if tensor in spans]
    _require(
        not any(begin < high and low < end for low, high in reads),
        name + " writes the buffer that it reads",
    )


def _span(buffer: Mapping[str, Any]) -> Tuple[int, int]:
    """Return the first byte of a buffer, and the one behind its last, where each has memory of its own."""
    return buffer["separate"], buffer["separate"] + buffer["bytes"]


def _check_flow(manifest: Mapping[str, Any]) -> None:
    """Check that each step reads tensors that are there: inputs, constants, or outputs of earlier steps."""
    names = [each["name"] for each in manifest["inputs"]]
    _require(len(set(names)) == len(names), "two inputs have one name")
    there = {*names, *manifest["arrays"]}
    for step in manifest["steps"]:
        reads, makes = _tensors_of(step)
        for name in filter(None, reads):
            _require(name in there, "step {} reads {}, which no earlier step makes".format(step["name"], name))
        there.update(makes)
    for output in manifest["outputs"]:
        _require(output["name"] in there, "no step makes the output {}".format(output["name"]))


def _tensors_of(step: Mapping[str, Any]) -> Tuple[List[str], List[str]]:
    """Return the tensors that a step reads and makes, without those that are in VTA's buffers."""
    if step["kind"] == "pack":
        return [step["tensor"]], []
    if step["kind"] == "unpack":
        return [], [step["tensor"]]
    if step["kind"] != "cpu":
        return [], []
    in_buffers = step.get("packed", {})
    reads = [name for name in step.get("inputs", []) if name not in in_buffers]
    return reads, [name for name in step["outputs"] if name not in in_buffers]


def _has(value: Any, members: Mapping[str, _Check], name: str) -> None:
    name = name[:200]
    _require(isinstance(value, dict), name + " is no object")
    for key, check in members.items():
        _require(key in value, "{} has no {}".format(name, key))
        _require(check(value[key]), "{} of {} cannot be {}".format(key, name, _shown(value[key])))


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."


def _array(arrays: Mapping[str, Any], part: Any) -> Any:
    _require(isinstance(part, str) and part in arrays, "there is no part {}".format(_shown(part)))
    return arrays[part]


def _within(offset: int, size: int, most: int, multiple: int, name: str) -> None:
    _require(offset + size <= most, name + " lies outside of its memory")
    _require(offset % multiple == 0, "{} is not at a multiple of {} bytes".format(name, multiple))


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise ManifestNotWholeError(text[:1000])
