"""Checks of a bundle's programs against its memory plan: each instruction in its buffer, no live buffers overlap."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Tuple

import numpy as np

from hilt_runtime import isa
from hilt_runtime.program_check import (
    InstructionSet,
    OnChip,
    ProgramCheckError,
    check_tokens,
    require_inside,
    transfers,
)

_AT_ONCE = 1 << 16
"""Instructions whose fields are in memory at once."""

_Time = Tuple[int, int]
"""A step, and an instruction of its program."""


class _Access(NamedTuple):
    """The first and the last instruction of a program that read and write a buffer; None where none does."""

    reads: Any
    writes: Any


class _Life:
    """A buffer from the first write to the last access."""

    def __init__(self, first: _Time) -> None:
        self.first = self.last = first


_Touch = Tuple[Callable[[Dict[str, _Life], str, _Time, _Time], None], str, Tuple[int, int]]
"""_write or _read, a buffer's name, and the first and the last instruction of a program that does so."""


def check_programs(manifest: Mapping[str, Any], arrays: Mapping[str, Any], machine: InstructionSet) -> None:
    """Check every program of a bundle, and the lives of its buffers. Raises ProgramCheckError.

    `manifest` is well formed, as hilt_runtime.manifest has found before.
    """
    accesses = []
    for number, program in enumerate(manifest["programs"]):
        try:
            accesses.append(_check_program(program, manifest, arrays, machine))
        except ProgramCheckError as error:
            raise ProgramCheckError("program {}: {}".format(number, error)) from None
    _check_lives(manifest, accesses)


def _check_program(
    program: Mapping[str, Any], manifest: Mapping[str, Any], arrays: Mapping[str, Any], machine: InstructionSet
) -> Dict[str, _Access]:
    """Check a program and return its accesses by buffer."""
    words = arrays[program["instructions"]]
    opcodes = (words[:, 0] & np.uint64(7)).astype(np.uint8)
    relocations = program["relocations"]
    owner = _owners(relocations, arrays, opcodes)
    check_tokens(words, machine)
    sizes = np.array([_bytes(manifest, arrays, each["buffer"]) for each in relocations] + [0], dtype=np.int64)
    elements = np.array([each["element_bytes"] for each in relocations] + [0], dtype=np.int64)
    constant = np.array([each["buffer"] in manifest["constants"] for each in relocations] + [True])
    on_chip = OnChip(machine, _micro_ops(words, owner, relocations, manifest, arrays, machine))
    for first in range(0, len(words), _AT_ONCE):
        chosen = words[first : first + _AT_ONCE]
        found = transfers(chosen, machine, first)
        whose = owner[found.number]
        aimless = (found.memory_type == isa.TABLE) & (whose >= 0)
        if aimless.any():
            name = found.name(int(np.argmax(aimless)))
            raise ProgramCheckError("a relocation changes {}, which touches no memory".format(name))
        known = ~found.moves | (whose >= 0)
        require_inside(found, known, "at an address of its own: no relocation gives it a buffer")
        alike = ~found.moves | (elements[whose] == found.size)
        require_inside(found, alike, "whose relocation counts elements of another size")
        require_inside(found, ~found.moves | (found.end * found.size <= sizes[whose]), "outside its buffer")
        require_inside(found, ~found.store | ~found.moves | ~constant[whose], "of a constant, which is only read")
        on_chip.check(chosen, found, first)
    most = program["limit_seconds"] * manifest["target"]["clock_hz"]
    if on_chip.micro_ops > most:
        text = "it issues {:.0f} micro-ops, which do not fit its limit of {:g} s"
        raise ProgramCheckError(text.format(on_chip.micro_ops, program["limit_seconds"]))
    return _accesses(relocations, arrays, opcodes)


def _owners(relocations: List[Dict[str, Any]], arrays: Mapping[str, Any], opcodes: Any) -> Any:
    """Return the relocation of each instruction, int32 (n,); -1 is none."""
    owner = np.full(len(opcodes), -1, dtype=np.int32)
    for number, relocation in enumerate(relocations):
        places = arrays[relocation["part"]]
        if (opcodes[places] > isa.STORE).any():
            raise ProgramCheckError("a relocation changes an instruction that is no LOAD or STORE")
        if (owner[places] >= 0).any() or len(np.unique(places)) != len(places):
            raise ProgramCheckError("an instruction is relocated twice")
        owner[places] = number
    return owner


def _bytes(manifest: Mapping[str, Any], arrays: Mapping[str, Any], name: str) -> int:
    if name in manifest["constants"]:
        return int(arrays[manifest["constants"][name]["part"]].nbytes)
    return int(manifest["buffers"][name]["bytes"])


def _micro_ops(
    words: Any,
    owner: Any,
    relocations: List[Dict[str, Any]],
    manifest: Mapping[str, Any],
    arrays: Mapping[str, Any],
    machine: InstructionSet,
) -> Any:
    """Return the micro-ops that a program loads, uint64 (m,): one constant, or none."""
    memory_type = isa.field_of(machine.formats.memory, "memory_type")
    kind = (words[:, 0] >> np.uint64(memory_type.bit)) & np.uint64((1 << memory_type.width) - 1)
    loads = ((words[:, 0] & np.uint64(7)) == isa.LOAD) & (kind == isa.UOP)
    whose = np.unique(owner[loads])
    if not whose.size:
        return np.zeros(0, dtype=np.uint64)
    name = relocations[int(whose[0])]["buffer"] if whose[0] >= 0 else ""
    if whose.size != 1 or name not in manifest["constants"]:
        raise ProgramCheckError("its micro-ops are not one constant: a program is checked with the micro-ops it runs")
    data = arrays[manifest["constants"][name]["part"]].reshape(-1).view(np.uint8)
    item = "<u{}".format(isa.uop_bytes(machine.revision))
    return data[: len(data) - len(data) % np.dtype(item).itemsize].view(item).astype(np.uint64)


def _accesses(relocations: List[Dict[str, Any]], arrays: Mapping[str, Any], opcodes: Any) -> Dict[str, _Access]:
    spans: Dict[str, List[Any]] = {}
    for relocation in relocations:
        places = arrays[relocation["part"]]
        known = spans.setdefault(relocation["buffer"], [None, None])
        for which, opcode in enumerate((isa.LOAD, isa.STORE)):
            chosen = places[opcodes[places] == opcode]
            if chosen.size:
                low, high = int(chosen.min()), int(chosen.max())
                known[which] = (
                    (low, high) if known[which] is None else (min(low, known[which][0]), max(high, known[which][1]))
                )
    return {name: _Access(*known) for name, known in spans.items()}


def _check_lives(manifest: Mapping[str, Any], accesses: List[Dict[str, _Access]]) -> None:
    """Check that a buffer is written before it is read, and that no two that are alive at once overlap.

    A tensor within another buffer is a part of that one's life.
    """
    buffers = manifest["buffers"]
    lives: Dict[str, _Life] = {}
    for time, step in enumerate(manifest["steps"]):
        for touch, name, (first, last) in _touches(step, accesses):
            if name in buffers:
                touch(lives, buffers[name].get("within", name), (time, first), (time, last))
    alive = [name for name in buffers if name in lives]
    times = {name: (lives[name].first, lives[name].last) for name in alive}
    check_apart([(name, buffers[name]["offset"], buffers[name]["bytes"]) for name in alive], times)


def _touches(step: Mapping[str, Any], accesses: List[Dict[str, _Access]]) -> Iterator[_Touch]:
    """Yield each buffer or constant that a step writes or reads, with its first and last instruction that does so."""
    whole = (0, 0)
    if step["kind"] == "pack":
        yield _write, step["buffer"], whole
    elif step["kind"] == "unpack":
        yield _read, step["buffer"], whole
    elif step["kind"] == "vta":
        for name, access in accesses[step["program"]].items():
            yield from _touches_of_program(name, access)
    elif "packed" in step:
        for tensor in step["inputs"]:
            if tensor in step["packed"]:
                yield _read, step["packed"][tensor], whole
        yield _write, step["packed"][step["outputs"][0]], whole


def _touches_of_program(name: str, access: _Access) -> Iterator[_Touch]:
    if access.writes is not None:
        yield _write, name, access.writes
    if access.reads is not None:
        yield _read, name, access.reads


def _write(lives: Dict[str, _Life], name: str, first: _Time, last: _Time) -> None:
    life = lives.setdefault(name, _Life(first))
    life.last = max(life.last, last)


def _read(lives: Dict[str, _Life], name: str, first: _Time, last: _Time) -> None:
    if name not in lives or lives[name].first > first:
        raise ProgramCheckError("buffer {} is read before it is written".format(name[:200]))
    lives[name].last = max(lives[name].last, last)


def check_apart(spans: List[Tuple[str, int, int]], times: Mapping[str, Tuple[_Time, _Time]]) -> None:
    """Check that no two spans (name, first byte, bytes) overlap that are alive at one time."""
    spans = sorted(spans, key=lambda span: span[1])
    moments = sorted({moment for pair in times.values() for moment in pair})
    rank = {moment: number for number, moment in enumerate(moments)}
    begins = np.array([offset for _, offset, _ in spans], dtype=np.int64)
    births = np.array([rank[times[name][0]] for name, _, _ in spans], dtype=np.int64)
    deaths = np.array([rank[times[name][1]] for name, _, _ in spans], dtype=np.int64)
    for number, (name, offset, size) in enumerate(spans):
        end = int(np.searchsorted(begins, offset + size))
        others = slice(number + 1, end)
        clash = (births[others] <= deaths[number]) & (births[number] <= deaths[others])
        if clash.any():
            other = spans[number + 1 + int(np.argmax(clash))][0]
            text = "buffers {} and {} overlap in memory while both are alive"
            raise ProgramCheckError(text.format(name[:200], other[:200]))
