"""Files at physical addresses: the memory that holds them, overlaps at their edges, dumps whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hilt.simulator import image_run
from hilt.simulator.image_run import Dump, Image, ImageError, memory_for, read_image, run_images

_64_MIB = 1 << 26
_4_GIB = 1 << 32


def image(address: int, size: int, name: str = "a") -> Image:
    return Image(Path(name), address, bytes(size))


def dump(address: int, size: int, name: str = "out") -> Dump:
    return Dump(address, size, Path(name))


def test_an_image_is_a_file_at_an_address(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    read = read_image(tmp_path / "a", 0x1000)
    assert (read.contents, read.address, read.end) == (b"12345", 0x1000, 0x1005)
    with pytest.raises(ImageError, match="cannot read image .*b: No such file"):
        read_image(tmp_path / "b", 0)


@pytest.mark.parametrize(
    ("lowest", "end", "base", "size"),
    [
        (0, 16, 0, 2 * _64_MIB),
        (0, _64_MIB, 0, 2 * _64_MIB),
        (0, _64_MIB + 1, 0, 3 * _64_MIB),
        (_64_MIB - 1, _64_MIB, 0, 2 * _64_MIB),
        (_64_MIB, _64_MIB + 16, _64_MIB, 2 * _64_MIB),
        (0x1680_0000, 0x1680_1000, 0x1400_0000, 2 * _64_MIB),
        (_4_GIB - 16, _4_GIB, _4_GIB - _64_MIB, _64_MIB),
    ],
)
def test_a_memory_holds_all_and_64_mib_more(lowest: int, end: int, base: int, size: int) -> None:
    assert memory_for([image(lowest, 1), image(end - 1, 1)], []) == (base, size)
    assert memory_for([], [dump(lowest, end - lowest)]) == (base, size)


def test_nothing_needs_a_memory_all_the_same() -> None:
    assert memory_for([], []) == (0, _64_MIB)


def test_no_byte_lies_past_32_bits() -> None:
    with pytest.raises(ImageError, match="image a ends at 0x100000001; physical addresses have 32 bits"):
        memory_for([image(_4_GIB - 4, 5)], [])
    with pytest.raises(ImageError, match="dump out ends at 0x100000001"):
        memory_for([], [dump(_4_GIB - 4, 5)])


def test_a_base_is_aligned() -> None:
    assert memory_for([image(image_run.MEMORY_ALIGNMENT, 4)], [], base=image_run.MEMORY_ALIGNMENT)[0] > 0
    with pytest.raises(ImageError, match="base 0x1 is not a multiple of"):
        memory_for([image(4, 4)], [], base=1)


@pytest.mark.parametrize(
    ("address", "size", "inside"), [(4096, 4096, True), (4095, 2, False), (8191, 2, False), (8191, 1, True)]
)
def test_all_of_a_part_is_in_a_memory_that_is_given(address: int, size: int, inside: bool) -> None:
    if inside:
        assert memory_for([image(address, size)], [], base=4096, size=4096) == (4096, 4096)
        return
    with pytest.raises(ImageError, match="is not all in the memory 0x1000..0x2000"):
        memory_for([image(address, size)], [], base=4096, size=4096)


class Device:
    """A memory of bytes, and a program that inverts one of them."""

    def __init__(self) -> None:
        self.bytes: dict[int, int] = {}
        self.traced: list[Path] = []
        self.ran: tuple[int, ...] = ()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def trace(self, file: Path) -> None:
        self.traced.append(file)
        file.write_bytes(b"waves")

    def write_memory(self, address: int, contents: bytes) -> None:
        self.bytes.update(enumerate(contents, address))

    def read_memory(self, address: int, count: int) -> bytes:
        return bytes(self.bytes.get(address + offset, 0) for offset in range(count))

    def execute(self, device: Device, address: int, count: int, max_cycles: int) -> str:
        self.ran = (address, count, max_cycles)
        self.bytes[0x2000] ^= 0xFF
        return "executed"


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()
    monkeypatch.setattr(image_run, "SimulatedDevice", lambda library, memory: made)
    monkeypatch.setattr(image_run, "execute", made.execute)
    return made


class Wide:
    instruction_bytes = 16


CODE = image(0x1000, 64, "code")
DATA = Image(Path("data"), 0x2000, bytes([1, 2, 3]))


def run(images: list[Image], insns: tuple[int, int] = (0x1000, 4), dumps: list[Dump] | None = None, **more: Any) -> Any:
    accelerator: Any = Wide()
    memory: Any = None
    return run_images(Path("model.so"), accelerator, images, insns, dumps or [], memory, 1000, **more)


def test_images_are_placed_the_program_runs_and_dumps_are_written(device: Device, tmp_path: Path) -> None:
    dumps = [Dump(0x2000, 3, tmp_path / "one"), Dump(0x2001, 4, tmp_path / "two")]
    assert run([DATA, CODE], dumps=dumps) == "executed"
    assert device.ran == (0x1000, 4, 1000) and device.traced == []
    assert (tmp_path / "one").read_bytes() == bytes([0xFE, 2, 3])
    assert (tmp_path / "two").read_bytes() == bytes([2, 3, 0, 0])
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o666 & ~umask
    run([DATA, CODE], waves=tmp_path / "waves.fst")
    assert (tmp_path / "waves.fst").read_bytes() == b"waves"


def test_waves_of_a_run_that_is_interrupted_are_not_left(
    device: Device, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def pressed(device: Device, address: int, count: int, max_cycles: int) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(image_run, "execute", pressed)
    with pytest.raises(KeyboardInterrupt):
        run([DATA, CODE], waves=tmp_path / "waves.fst")
    assert device.traced
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("address", "overlaps"), [(0x1040, False), (0x103F, True), (0xFFF, True), (0xFFD, False)])
def test_images_that_share_a_byte_are_refused(device: Device, address: int, overlaps: bool) -> None:
    images = [Image(Path("other"), address, bytes(3)), CODE, DATA]
    if not overlaps:
        assert run(images) == "executed"
        return
    with pytest.raises(ImageError, match=r"images \w+ \(ends at 0x10\w+\) and \w+ \(at 0x1\w+\) overlap"):
        run(images)
    assert device.ran == ()


@pytest.mark.parametrize("count", [0, -1, _4_GIB])
def test_a_count_is_from_1_to_32_bits(device: Device, count: int) -> None:
    with pytest.raises(ImageError, match=f"{count} instructions; the count is from 1 to 4294967295"):
        run([CODE, DATA], (0x1000, count))


def test_instructions_are_aligned_and_all_in_images(device: Device) -> None:
    with pytest.raises(ImageError, match="instructions at 0x1008, which is not a multiple of their 16 bytes"):
        run([CODE, DATA], (0x1008, 1))
    with pytest.raises(
        ImageError, match="5 instructions of 16 bytes at 0x1000 end at 0x1050, but no image holds 0x1040"
    ):
        run([CODE, DATA], (0x1000, 5))
    with pytest.raises(ImageError, match="no image holds 0xff0"):
        run([CODE, DATA], (0xFF0, 1))
    with pytest.raises(ImageError, match="no image holds 0x1040"):
        run([CODE, DATA], (0x1040, 1))
    assert run([image(0x1040, 16, "more"), CODE, DATA], (0x1000, 5)) == "executed"
    assert run([CODE, DATA], (0x1030, 1)) == "executed"


def test_a_dump_needs_its_folder_before_anything_runs(device: Device, tmp_path: Path) -> None:
    for file in (tmp_path, tmp_path / "missing" / "out", tmp_path / ("x" * 300) / "out"):
        with pytest.raises(ImageError, match="cannot write dump"):
            run([CODE, DATA], dumps=[Dump(0x2000, 1, file)])
    assert device.ran == ()


def test_a_full_disk_leaves_no_dump_and_nothing_beside_it(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one").write_bytes(b"old")
    opened = os.fdopen
    files = []

    def full(descriptor: int, mode: str) -> Any:
        files.append(descriptor)
        if len(files) == 2:
            os.close(descriptor)
            raise OSError(28, "No space left on device")
        return opened(descriptor, mode)

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(ImageError, match="cannot write the dumps: No space left on device; nothing was left"):
        run([CODE, DATA], dumps=[Dump(0x2000, 1, tmp_path / "one"), Dump(0x2000, 1, tmp_path / "two")])
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("one", b"old")]
