"""Runs instructions that were made elsewhere: files placed at physical addresses, pieces of memory taken out after."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from hilt.atomic_write import atomic_path
from hilt.simulator.device import MEMORY_ALIGNMENT, MemoryModel, SimulatedDevice
from hilt.simulator.driver import Execution, execute
from hilt.vta.accelerator import Accelerator

_GRAIN = 1 << 26
_ADDRESS_SPACE = 1 << 32


class ImageError(ValueError):
    """Images, instructions or dumps that cannot be; the message says which and why."""


@dataclass(frozen=True)
class Image:
    """The bytes of `file` at byte address `address`."""

    file: Path
    address: int
    contents: bytes

    @property
    def end(self) -> int:
        return self.address + len(self.contents)


@dataclass(frozen=True)
class Dump:
    """`bytes` of memory from byte address `address`, to be written to `file`."""

    address: int
    bytes: int
    file: Path


def read_image(file: Path, address: int) -> Image:
    """Raises ImageError where the file cannot be read."""
    try:
        return Image(file, address, file.read_bytes())
    except OSError as error:
        raise ImageError(f"cannot read image {file}: {error.strerror}") from error


def memory_for(
    images: Sequence[Image], dumps: Sequence[Dump], base: int | None = None, size: int | None = None
) -> tuple[int, int]:
    """(base, bytes) of a memory that holds all images and dumps.

    Where they are not given: from the lowest address, rounded down to 64 MiB, to at least 64 MiB past the highest,
    so that buffers that are neither also have room.

    Raises ImageError where something lies outside, or past 32-bit addresses.
    """
    shards = [(f"image {image.file}", image.address, image.end) for image in images]
    shards += [(f"dump {dump.file}", dump.address, dump.address + dump.bytes) for dump in dumps]
    for part, _, end in shards:
        if end > _ADDRESS_SPACE:
            raise ImageError(f"{part} ends at {end:#x}; physical addresses have 32 bits")
    lowest = min((start for _, start, _ in shards), default=0)
    highest = max((end for _, _, end in shards), default=0)
    base = lowest // _GRAIN * _GRAIN if base is None else base
    if base % MEMORY_ALIGNMENT:
        raise ImageError(f"the memory's base {base:#x} is not a multiple of {MEMORY_ALIGNMENT}")
    if size is None:
        size = min(-(-highest // _GRAIN) * _GRAIN + _GRAIN, _ADDRESS_SPACE) - base
    for part, start, end in shards:
        if start < base or end > base + size:
            raise ImageError(f"{part} at {start:#x}..{end:#x} is not all in the memory {base:#x}..{base + size:#x}")
    return base, size


def run_images(
    library: Path,
    accelerator: Accelerator,
    images: Sequence[Image],
    insns: tuple[int, int],
    dumps: Sequence[Dump],
    memory: MemoryModel,
    max_cycles: int,
    waves: Path | None = None,
) -> Execution:
    """Runs `insns` (byte address, count) and then writes every dump, whole or not at all.

    With `waves` the model is the RTL of profile `trace`, and every signal goes to that file, which is whole or absent.

    Every dram_base is physical: the address registers are 0. Raises ImageError where images overlap, hold no
    such instructions, or a dump cannot be written; SimulatorError where the model cannot be used.
    """
    _check_images(images)
    _check_instructions(images, insns, accelerator.instruction_bytes)
    _check_folders(dumps)
    with atomic_path(waves) if waves is not None else nullcontext() as file, SimulatedDevice(library, memory) as device:
        if file is not None:
            device.trace(file)
        for image in images:
            device.write_memory(image.address, image.contents)
        execution = execute(device, *insns, max_cycles)
        _write([(dump.file, device.read_memory(dump.address, dump.bytes)) for dump in dumps])
    return execution


def _check_images(images: Sequence[Image]) -> None:
    ordered = sorted(images, key=lambda image: image.address)
    for low, high in pairwise(ordered):
        if low.end > high.address:
            raise ImageError(f"images {low.file} (ends at {low.end:#x}) and {high.file} (at {high.address:#x}) overlap")


def _check_instructions(images: Sequence[Image], insns: tuple[int, int], instruction_bytes: int) -> None:
    address, count = insns
    if not 0 < count < _ADDRESS_SPACE:
        raise ImageError(f"{count} instructions; the count is from 1 to {_ADDRESS_SPACE - 1}")
    if address % instruction_bytes:
        raise ImageError(f"instructions at {address:#x}, which is not a multiple of their {instruction_bytes} bytes")
    end = address + count * instruction_bytes
    for image in sorted(images, key=lambda image: image.address):
        if image.address <= address < image.end:
            address = image.end
    if address < end:
        part = f"{count} instructions of {instruction_bytes} bytes at {insns[0]:#x} end at {end:#x}"
        raise ImageError(f"{part}, but no image holds {address:#x}")


def _check_folders(dumps: Sequence[Dump]) -> None:
    for dump in dumps:
        try:
            impossible = dump.file.is_dir() or not dump.file.absolute().parent.is_dir()
        except OSError as error:
            raise ImageError(f"cannot write dump {dump.file.name[:40]}: {error.strerror}") from error
        if impossible:
            raise ImageError(f"cannot write dump {dump.file}: its folder is missing, or it is a folder itself")


def _write(contents: Sequence[tuple[Path, bytes]]) -> None:
    """All files beside their places first, then each into its place: a full disk leaves no half of a dump."""
    made: list[tuple[str, Path]] = []
    try:
        for file, content in contents:
            descriptor, temporary = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.absolute().parent)
            made.append((temporary, file))
            with os.fdopen(descriptor, "wb") as out:
                out.write(content)
        for temporary, file in made:
            umask = os.umask(0)
            os.umask(umask)
            Path(temporary).chmod(0o666 & ~umask)
            Path(temporary).replace(file)
    except OSError as error:
        for temporary, _ in made:
            Path(temporary).unlink(missing_ok=True)
        raise ImageError(f"cannot write the dumps: {error.strerror}; nothing was left half-written") from error
