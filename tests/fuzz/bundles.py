"""Mutated bundles against `hilt_runtime`: `python -m tests.fuzz bundles` feeds a hundred thousand.

A mutant is a bundle that hilt compiled, with instructions, micro-ops, relocations, places of buffers, steps, numbers of
the manifest or bytes of the zip file changed; the sums of its parts are right again. It is refused in one line
(NetworkError), or it runs.

What an accepted mutant does is decided by the golden model, which knows nothing of hilt_runtime's checks: its memory is
the network's own and nothing else, so any other address is a fault, as is an index past a buffer on chip, or a program
that never ends. Constants and instructions must stay.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import random
import time
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.compile import compile_network
from hilt.network.simulated import SimulatedVta
from hilt.network.target import CompileTarget
from hilt.vta.isa import EncodingError, MemoryType, Opcode, decode
from hilt_runtime import InferenceError, Network, NetworkError, read_bundle
from tests.unit.network_compile.graphs import (
    BATCHED,
    PYNQ,
    SMALL,
    Builder,
    banded,
    residual_network,
    target,
    without_table,
)

_WEIGHED_EVERY = 40
_SPARE_BYTES = 3 << 20
"""Memory that reading may take besides twice the file: the manifest as objects, and fields of instructions."""
MOST_TIMES_DECLARED = 2.0
"""Bytes that reading may take, in sizes of the file."""
_LONGEST_WORK = 2_000_000
"""Micro-ops and moved elements of a mutant that is run; longer ones are counted."""
_MANIFEST = "manifest.json"
_NASTY: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2, 63, 64, 1 << 16, 1 << 31, 1 << 32, 1 << 53, 1 << 70, -(1 << 63), 0.5, -0.0, 1e308),
    *(
        float("inf"),
        float("nan"),
        "",
        "a",
        "x" * 5000,
        "\x1b[2J",
        [],
        ["a"],
        [-1],
        [1 << 40] * 6,
        [[[[]]]],
        {},
        {"a": {}},
    ),
)


@dataclass(frozen=True)
class Seed:
    """A compiled bundle: its parts and the target."""

    target: CompileTarget
    parts: dict[str, bytes]
    input: NDArray[np.int8]


@dataclass
class BundleStatistics:
    """Counts of the mutants. `violations` has the seed of each that broke a rule."""

    bundles: int = 0
    refused: int = 0
    ran: int = 0
    failed_steps: int = 0
    long: int = 0
    slowest_seconds: float = 0.0
    most_times_declared: float = 0.0
    violations: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)


@cache
def seeds() -> tuple[Seed, ...]:
    """Return small bundles of three geometries.

    They have chains with skips, a folded first layer, steps of the processor, STOREs by way of a table, and bands.
    """
    made: list[tuple[Builder, str, CompileTarget]] = []
    for parameters in (PYNQ, SMALL, BATCHED):
        residual = residual_network()
        made.append((residual, residual.nodes[-1].outputs[0], target(parameters)))
    made += [(*_by_tables(), target(parameters)) for parameters in (PYNQ, BATCHED)]
    made.append((residual, residual.nodes[-1].outputs[0], banded(target(BATCHED))))
    builder = Builder((1, 16, 8, 8))
    first = builder.conv("x", 16)
    moved = builder.add_node("moved", "transpose", [first], (1, 16, 8, 8), {"perm": [0, 1, 3, 2]})
    made.append((builder, builder.conv(moved, 16, 1), target(PYNQ)))
    made.append((*_on_packed_tensors(), without_table(target(PYNQ))))
    result = []
    for made_builder, output, aim in made:
        data = compile_network(made_builder.graph(output), aim).data
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        result.append(Seed(aim, parts, made_builder.input()))
    return tuple(result)


def _by_tables() -> tuple[Builder, str]:
    """Return a network of two layers that store by way of a table each, and its output."""
    builder = Builder((1, 24, 10, 10))
    last = "x"
    for number in range(2):
        name = f"table{number}"
        builder.constants[f"{name}.entries"] = builder.random.integers(-128, 128, 256).astype(np.int8)
        sums = builder.conv(last, 32)
        last = builder.add_node(name, "table", [sums, f"{name}.entries"], (1, 32, 10, 10), {})
    return builder, builder.conv(last, 16, 1)


def _on_packed_tensors() -> tuple[Builder, str]:
    """Return a network whose processor steps work on VTA's buffers, and its output."""
    builder = Builder((1, 16, 8, 8))
    builder.constants["entries"] = np.arange(-128, 128)[::-1].astype(np.int8)
    table = builder.add_node("table", "table", [builder.conv("x", 32), "entries"], (1, 32, 8, 8), {})
    mean = {"divisor": 3, "shift": 2, "clip": [-128, 127]}
    gate = builder.conv(builder.add_node("mean", "global_average_pool", [table], (1, 32, 1, 1), mean), 32, 1)
    product = builder.add_node("product", "multiply", [table, gate], (1, 32, 8, 8), {"shift": 6, "clip": [-128, 127]})
    cut = {"starts": [0, 1], "ends": [16, 7], "axes": [1, 2], "steps": [1, 2]}
    half = builder.add_node("half", "slice", [product], (1, 16, 3, 8), cut)
    twice = builder.add_node("twice", "upsample", [half], (1, 16, 6, 8), {"factors": [2, 1]})
    both = builder.add_node("both", "concat", [twice, twice], (1, 32, 6, 8), {"axis": 1})
    around = {"pads": [0, 0, 1, 1, 0, 0, 1, 1], "value": 0}
    return builder, builder.conv(builder.add_node("around", "pad", [both], (1, 32, 8, 10), around), 16, 1)


def fuzz_bundles(count: int, seed: int) -> BundleStatistics:
    """Feed mutants number 0 to `count` of a seed. Nothing but NetworkError may be raised; it is a violation else."""
    statistics = BundleStatistics()
    bases = seeds()
    for number in range(count):
        fuzz_one(bases, seed, number, statistics)
    return statistics


def fuzz_one(bases: Sequence[Seed], seed: int, number: int, statistics: BundleStatistics) -> None:
    """Feed one mutant: the same numbers make the same mutant."""
    generator = random.Random(f"{seed}/{number}")
    base = generator.choice(bases)
    data = mutant(base, generator)
    statistics.bundles += 1
    began = time.thread_time()
    try:
        with _weighed(data, statistics) if number % _WEIGHED_EVERY == 0 else contextlib.nullcontext():
            bundle = read_bundle(data, "mutant")
        outcome = _run(bundle, base)
    except NetworkError as error:
        statistics.refused += 1
        statistics.reasons[type(error).__name__] += 1
        if "\n" in str(error):
            statistics.violations.append(f"{seed}/{number}: a message of several lines")
    except Exception as error:
        statistics.violations.append(f"{seed}/{number}: {type(error).__name__}: {error}")
    else:
        if outcome == "long":
            statistics.long += 1
        elif outcome == "step":
            statistics.failed_steps += 1
        elif outcome:
            statistics.violations.append(f"{seed}/{number}: {outcome}")
        else:
            statistics.ran += 1
    statistics.slowest_seconds = max(statistics.slowest_seconds, time.thread_time() - began)


@contextlib.contextmanager
def _weighed(data: bytes, statistics: BundleStatistics) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
    finally:
        most = tracemalloc.get_traced_memory()[1] - _SPARE_BYTES
        tracemalloc.stop()
        statistics.most_times_declared = max(statistics.most_times_declared, most / max(len(data), 1))


# --- the oracle ---


def _run(bundle: Any, base: Seed) -> str:
    """Run an accepted mutant where there is no memory but its own. Return its fault, "" if nothing."""
    if any(
        _work(bundle.arrays[program["instructions"]], base) > _LONGEST_WORK for program in bundle.manifest["programs"]
    ):
        return "long"
    sizes = bundle.manifest["memory"]
    programs = [bundle.arrays[program["instructions"]].nbytes for program in bundle.manifest["programs"]]
    wanted = sum(-(-max(size, 4096) // 4096) * 4096 for size in (sizes["constants"], sizes["activations"], *programs))
    if wanted > 64 << 20:
        return "long"
    with SimulatedVta(base.target, memory_bytes=wanted) as device:
        network = Network(bundle, device)
        kept = [np.array(buffer) for buffer in network.fixed_memory]
        try:
            network.run({tensor["name"]: _input(tensor, base) for tensor in bundle.inputs})
        except InferenceError as error:
            return f"VTA: {error}"
        except NetworkError:
            return "step"
        for before, after in zip(kept, network.fixed_memory, strict=True):
            if not np.array_equal(before, after):
                return "a constant or an instruction was overwritten"
    return ""


def _input(tensor: dict[str, Any], base: Seed) -> NDArray[Any]:
    if tensor["shape"] == list(base.input.shape) and tensor["dtype"] == "int8":
        return base.input
    if np.prod(tensor["shape"], dtype=np.float64) > 1 << 20:
        raise NetworkError("an input that is too large to try")
    return np.zeros(tensor["shape"], tensor["dtype"])


def _work(words: NDArray[np.uint64], base: Seed) -> float:
    """Return a program's micro-ops and elements, by the host's own decoder."""
    try:
        records = decode(np.array(words), base.target.accelerator)
    except EncodingError:  # a target that was changed to another ISA: the device refuses it
        return 0.0
    loops = np.isin(records["opcode"], (Opcode.GEMM, Opcode.ALU))
    turns = records["iter_out"].astype(float) * records["iter_in"]
    spans = np.maximum(records["uop_end"].astype(float) - records["uop_bgn"], 0)
    moved = (records["y_size"].astype(float) + 30) * (records["x_size"] + 30.0)
    return float((turns * spans * loops).sum() + (moved * ~loops).sum() / 8)


# --- mutation ---


def mutant(base: Seed, generator: random.Random) -> bytes:
    """Return the bytes of a mutated bundle."""
    parts = dict(base.parts)
    manifest = json.loads(parts[_MANIFEST])
    change = _Change(base, parts, manifest, generator)
    for _ in range(generator.choice((1, 1, 1, 2, 3))):
        with contextlib.suppress(Exception):  # a part that an earlier change has made unreadable
            generator.choice(change.all())()
    for name in manifest.get("parts", {}) if isinstance(manifest.get("parts"), dict) else ():
        facts = manifest["parts"][name]
        if isinstance(facts, dict) and name in parts and name not in change.sums_kept:
            facts["bytes"], facts["sha256"] = len(parts[name]), sha256(parts[name]).hexdigest()
    text = json.dumps(manifest).encode() if change.text is None else change.text
    parts[_MANIFEST], parts[_MANIFEST + ".sha256"] = text, sha256(text).hexdigest().encode()
    data = _zipped(parts)
    return _damaged(data, generator) if generator.randrange(12) == 0 else data


def _zipped(parts: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in parts.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    return file.getvalue()


def _damaged(data: bytes, generator: random.Random) -> bytes:
    """Return a zip file with bytes of its headers, or any, changed, or cut."""
    kind = generator.randrange(4)
    if kind == 0:
        return data[: generator.randrange(len(data))]
    changed = bytearray(data)
    if kind == 1:
        changed[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        return bytes(changed)
    signature = generator.choice((b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"))
    places = (
        [place for place in range(len(data) - 4) if data.startswith(signature, place)]
        if kind == 2
        else [len(data) - 22]
    )
    place = generator.choice(places) + generator.randrange(4, 22)
    value = generator.choice((0, 1, 8, 12, 14, 99, 255))  # flags, methods, sizes
    changed[min(place, len(changed) - 1)] = value
    return bytes(changed)


class _Change:
    """Changes of a bundle's parts and manifest, in place."""

    def __init__(self, base: Seed, parts: dict[str, bytes], manifest: dict[str, Any], generator: random.Random) -> None:
        self.base, self.parts, self.manifest, self.random = base, parts, manifest, generator
        self.sums_kept: set[str] = set()
        self.text: bytes | None = None

    def all(self) -> list[Callable[[], None]]:
        """Return the changes; those that reach furthest are there more than once."""
        return [
            *([self.instruction_field] * 8),
            *([self.instruction_bits] * 2),
            *([self.instruction_order] * 2),
            *([self.kind_of_store] * 2),
            self.table_of_target,
            *([self.micro_op] * 3),
            *([self.relocated_places] * 2),
            *([self.relocation] * 2),
            *([self.place_of_buffer] * 3),
            *([self.step] * 3),
            *([self.value] * 4),
            self.header,
            self.sum,
            self.deep,
        ]

    def _array(self, name: str) -> NDArray[Any]:
        array: NDArray[Any] = np.load(io.BytesIO(self.parts[name]))
        return array.copy()

    def _put(self, name: str, array: NDArray[Any]) -> None:
        file = io.BytesIO()
        np.save(file, array)
        self.parts[name] = file.getvalue()

    def _program(self) -> str:
        return self.random.choice([name for name in self.parts if name.endswith("/instructions.npy")])

    def instruction_field(self) -> None:
        """Set one field of one instruction to a value of its range: the ends of it, near the old one, or any."""
        name = self._program()
        try:
            words = self._array(name)
            place = self.random.randrange(len(words))
        except ValueError:
            return
        formats = self.base.target.accelerator.formats
        form = {0: formats.memory, 1: formats.memory, 4: formats.alu}.get(int(words[place, 0]) & 7, formats.gemm)
        bits = self.random.choice(form.fields)
        old = int(words[place, bits.word]) >> bits.bit & bits.mask
        near = (old + self.random.choice((-2, -1, 1, 2, 16, 64))) & bits.mask
        value = self.random.choice(
            (0, 1, bits.mask, bits.mask - 1, near, near, near, self.random.randint(0, bits.mask))
        )
        whole = int(words[place, bits.word]) & ~(bits.mask << bits.bit) | value << bits.bit
        words[place, bits.word] = np.uint64(whole & (1 << 64) - 1)
        self._put(name, words)

    def instruction_bits(self) -> None:
        name = self._program()
        words = self._array(name)
        if words.ndim == 2 and words.size and words.dtype == np.uint64:
            place = self.random.randrange(len(words)), self.random.randrange(words.shape[1])
            words[place] ^= np.uint64(1 << self.random.randrange(64))
            self._put(name, words)

    def instruction_order(self) -> None:
        """Swap two instructions, repeat one in another's place, or take one out, with or without its relocation."""
        name = self._program()
        words = self._array(name)
        if len(words) < 2:
            return
        first, second = (self.random.randrange(len(words)) for _ in range(2))
        kind = self.random.randrange(3)
        if kind == 0:
            words[[first, second]] = words[[second, first]]
        elif kind == 1:
            words[first] = words[second]
        else:
            words = np.delete(words, first, axis=0)
            with contextlib.suppress(KeyError, IndexError, TypeError):
                self.manifest["programs"][0]["count"] -= 1
        self._put(name, words)

    def kind_of_store(self) -> None:
        """Let a STORE go by way of the table, to it, or past it; one to the table may get another size or place."""
        name = self._program()
        words = self._array(name)
        if words.ndim != 2 or words.dtype != np.uint64 or not words.size:
            return
        stores = np.flatnonzero((words[:, 0] & np.uint64(7)) == int(Opcode.STORE))
        if not stores.size:
            return
        place = int(self.random.choice(stores.tolist()))
        kinds = (MemoryType.OUT, MemoryType.OUT_BY_TABLE, MemoryType.TABLE, MemoryType.UOP)
        self._set(words, place, "memory_type", int(self.random.choice(kinds)))
        for field_name in ("x_size", "y_size", "sram_base"):
            if self.random.randrange(4) == 0:
                self._set(words, place, field_name, self.random.choice((0, 1, 4, 16, 17, 2047, 1 << 15)))
        self._put(name, words)

    def _set(self, words: NDArray[Any], place: int, field_name: str, value: int) -> None:
        fields = self.base.target.accelerator.formats.memory.fields
        bits = next(each for each in fields if each.name == field_name)
        whole = int(words[place, bits.word]) & ~(bits.mask << bits.bit) | (value & bits.mask) << bits.bit
        words[place, bits.word] = np.uint64(whole & (1 << 64) - 1)

    def table_of_target(self) -> None:
        """Change whether the bundle names the table."""
        with contextlib.suppress(KeyError, TypeError):
            target_of_bundle = self.manifest["target"]
            target_of_bundle["table"] = self.random.choice((not target_of_bundle.get("table", False), None, 1))

    def micro_op(self) -> None:
        """Change a word of a constant: weights, biases, micro-ops."""
        name = self.random.choice([name for name in self.parts if name.startswith("memory/")])
        array = self._array(name)
        flat = array.reshape(-1).view(np.uint8)
        if flat.size:
            for _ in range(self.random.choice((1, 4))):
                flat[self.random.randrange(flat.size)] = self.random.choice((0, 255, self.random.randrange(256)))
            self._put(name, array)

    def relocated_places(self) -> None:
        name = self.random.choice([name for name in self.parts if "/relocations/" in name])
        places = self._array(name)
        kind = self.random.randrange(4)
        if kind == 0 and places.size:
            places[self.random.randrange(places.size)] = self.random.choice((0, 1, 5, 1 << 31, len(places)))
        elif kind == 1:
            places = places[: self.random.randrange(places.size + 1)]
        elif kind == 2:
            places = np.append(places, places[-1:])
        else:
            places = places.astype(self.random.choice(("<i4", "<f8", "<u8", "|u1")))
        self._put(name, places)

    def relocation(self) -> None:
        """Exchange the buffers of two relocations, or change one."""
        with contextlib.suppress(KeyError, IndexError, TypeError, AttributeError):
            relocations = self.manifest["programs"][0]["relocations"]
            first, second = (self.random.choice(relocations) for _ in range(2))
            kind = self.random.randrange(4)
            if kind == 0:
                first["buffer"], second["buffer"] = second["buffer"], first["buffer"]
            elif kind == 1:
                first["buffer"] = self.random.choice([*self.manifest["buffers"], *self.manifest["constants"]])
            elif kind == 2:
                first["element_bytes"] = self.random.choice((0, 1, 4, 8, 16, 64, 256, -16))
            else:
                relocations.remove(first)

    def place_of_buffer(self) -> None:
        """Move a buffer or a constant, often onto another one, or change a memory's size."""
        with contextlib.suppress(KeyError, IndexError, TypeError, AttributeError):
            kind = self.random.choice(("buffers", "buffers", "constants", "memory"))
            if kind == "memory":
                name = self.random.choice(sorted(self.manifest["memory"]))
                self.manifest["memory"][name] = self.random.choice((0, 4096, 1 << 20, 1 << 33, -1))
                return
            table = self.manifest[kind]
            chosen, other = (table[self.random.choice(sorted(table))] for _ in range(2))
            where = self.random.choice(("offset", "separate", "bytes")) if kind == "buffers" else "offset"
            chosen[where] = self.random.choice((0, 1, 64, 4096, other[where], other["offset"], chosen[where] + 4096))

    def step(self) -> None:
        with contextlib.suppress(KeyError, IndexError, TypeError, AttributeError, ValueError):
            steps = self.manifest["steps"]
            first, second = (self.random.randrange(len(steps)) for _ in range(2))
            kind = self.random.randrange(5)
            if kind == 0:
                steps[first], steps[second] = steps[second], steps[first]
            elif kind == 1:
                steps.insert(first, copy.deepcopy(steps[second]))
            elif kind == 2:
                del steps[first]
            elif kind == 3:
                steps[first]["buffer"] = self.random.choice(sorted(self.manifest["buffers"]))
            else:
                key = self.random.choice(sorted(steps[first]))
                steps[first][key] = copy.deepcopy(self.random.choice((*_NASTY, steps[second].get(key))))

    def value(self) -> None:
        """Put something nasty anywhere in the manifest, or take a member away."""
        there: Any = self.manifest
        for _ in range(self.random.randint(0, 5)):
            keys = (
                sorted(there) if isinstance(there, dict) else list(range(len(there))) if isinstance(there, list) else []
            )
            inner = [key for key in keys if isinstance(there[key], (dict, list)) and there[key]]
            if not inner:
                break
            there = there[self.random.choice(inner)]
        keys = sorted(there) if isinstance(there, dict) else list(range(len(there)))
        if not keys:
            return
        key = self.random.choice(keys)
        if self.random.randrange(5) == 0:
            del there[key]
        else:
            there[key] = copy.deepcopy(self.random.choice(_NASTY))

    def header(self) -> None:
        """Change the header of an array: its dtype, its shape, its length."""
        name = self.random.choice([name for name in self.parts if name.endswith(".npy")])
        old, new = self.random.choice(
            (
                (b"'<u8'", b"'|O8'"), (b"'<u8'", b"'<i8'"), (b"'|i1'", b"'|b1'"), (b"(", b"(1099511627776, "),
                (b"(", b"(0, 1152921504606846976, "), (b"(", b"(" * 90), (b"False", b"True "), (b"}", b""),
                (b"'<u4'", b"[('a', '<u4')]"), (b"\x01\x00", b"\x02\x00"), (b"NUMPY", b"numpy"),
            )
        )  # fmt: skip
        self.parts[name] = self.parts[name].replace(old, new, 1)

    def sum(self) -> None:
        """Change a part without its sum, or its sum or its size alone."""
        names = [name for name in self.parts if name.endswith(".npy")]
        name = self.random.choice(names)
        self.sums_kept.add(name)
        kind = self.random.randrange(3)
        with contextlib.suppress(KeyError, TypeError):
            if kind == 0:
                self.parts[name] += b"\x00"
            else:
                key, value = (("bytes", 1 << 30), ("sha256", "0" * 64))[kind - 1]
                self.manifest["parts"][name][key] = value

    def deep(self) -> None:
        """A manifest that is nested, long, or no JSON."""
        self.text = self.random.choice(
            (
                b"[" * 100_000,
                b'{"a":' * 50_000,
                b"9" * 200_000,
                b"[" + b"{}," * 300_000 + b"{}]",
                b"\xff\xfe",
                b"",
                b"null",
            )
        )
