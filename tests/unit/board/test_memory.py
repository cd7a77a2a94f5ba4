"""Contiguous memory as boards have it: behind caches, with ports that see them and ports that do not, and scarce."""

from __future__ import annotations

import hashlib
import importlib
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

_LINE = 32
_MIB = 1 << 20


class Cached(np.ndarray[Any, Any]):
    """A cached mapping of memory: the array is the processor's view, `memory` the memory behind its caches."""

    memory: NDArray[np.uint8]
    seen: NDArray[np.uint8]
    """The caches' content when they last agreed with memory; a line that differs from it is dirty."""

    def __array_finalize__(self, parent: Any) -> None:
        if isinstance(parent, Cached) and hasattr(parent, "memory"):
            first = self.__array_interface__["data"][0] - parent.__array_interface__["data"][0]
            self.memory, self.seen = (each[first : first + self.nbytes] for each in (parent.memory, parent.seen))

    def flush(self) -> None:
        """Cleans: dirty lines are written to memory, and only they."""
        dirty = np.add.reduceat(self != self.seen, np.arange(0, self.nbytes, _LINE)) > 0
        written = np.repeat(np.asarray(dirty), _LINE)[: self.nbytes]
        self.memory[written] = np.asarray(self)[written]
        self.seen[:] = self

    def invalidate(self) -> None:
        """Drops all lines, dirty or not."""
        self[:] = self.memory
        self.seen[:] = self.memory

    def write_coherent(self, data: NDArray[np.uint8]) -> None:
        """Write like an accelerator at the ACP, with write allocate: the lines are dirty in the second-level cache."""
        self[:] = data

    def write_plain(self, data: NDArray[np.uint8]) -> None:
        """Write like an accelerator at an HP port: the caches hear nothing of it."""
        self.memory[:] = data


class Kernel:
    """Contiguous memory of a board. `gives_back`: whether dropping a buffer frees it (pynq 3.0), or not (2.7)."""

    def __init__(self, size: int, gives_back: bool = False) -> None:
        self.left = size
        self.gives_back = gives_back
        self.allocated: list[int] = []

    def allocate(self, shape: tuple[int], dtype: Any, cacheable: bool = False) -> Cached:
        assert cacheable, "a coherent port does not see memory that is not cached"
        (size,) = shape
        if size > self.left:
            raise RuntimeError("Allocate failed: 4294967295")
        self.left -= size
        self.allocated.append(size)
        memory = np.zeros(size, dtype)
        if self.gives_back:
            weakref.finalize(memory, self._free, size)
        buffer = np.zeros(size, dtype).view(Cached)
        buffer.memory, buffer.seen = memory, np.zeros(size, dtype)
        return buffer

    def _free(self, size: int) -> None:
        self.left += size


@pytest.fixture
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return Kernel(8 * _MIB, getattr(request, "param", False))


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch, kernel: Kernel) -> Iterator[ModuleType]:
    pynq = ModuleType("pynq")
    pynq.allocate = kernel.allocate  # type: ignore[attr-defined]
    pynq.__version__ = "3.0.1" if kernel.gives_back else "2.7.0"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pynq", pynq)
    yield importlib.import_module("hilt_board.memory")
    for name in ("memory", "driver"):
        del sys.modules[f"hilt_board.{name}"]


def blob(directory: Path, seed: int, size: int) -> tuple[str, NDArray[np.uint8]]:
    data = np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)
    name = hashlib.sha256(data.tobytes()).hexdigest()
    (directory / name).write_bytes(data.tobytes())
    return name, data


@pytest.mark.parametrize("write", [Cached.write_coherent, Cached.write_plain])
def test_output_of_the_accelerator_is_read_at_any_port(memory: ModuleType, tmp_path: Path, write: Any) -> None:
    """TVM's bitstreams write through the ACP (tvm-vta, config/pkg_config.py: coherent), hilt's through HP0."""
    output = memory.ContiguousMemory(tmp_path).scratch("output", 1000)
    output[:] = 1
    output.flush()
    written = np.arange(1000, dtype=np.uint8)
    write(output, written)
    memory.read_back(output)
    assert np.array_equal(output, written)
    assert np.array_equal(output.memory, written)


@pytest.mark.parametrize("write", [Cached.write_coherent, Cached.write_plain])
def test_a_tensor_that_a_program_has_overwritten_is_restored_for_every_port(
    memory: ModuleType, tmp_path: Path, write: Any
) -> None:
    name, data = blob(tmp_path, 1, 5000)
    kept = memory.ContiguousMemory(tmp_path)
    buffer = kept.tensor(name, 5000)
    assert np.array_equal(buffer.memory, data)
    write(buffer, ~data)
    assert kept.restore() == [name]
    assert np.array_equal(buffer, data)
    assert np.array_equal(buffer.memory, data)
    assert kept.restore() == []


def test_memory_that_is_never_given_back_lasts_for_a_night(memory: ModuleType, kernel: Kernel, tmp_path: Path) -> None:
    """pynq 2.7's buffers live as long as the process; each reload of a public bitstream makes all inputs anew."""
    kept = memory.ContiguousMemory(tmp_path)
    tensors = [blob(tmp_path, seed, 40_000 + 9_000 * seed) for seed in range(12)]
    for trial in range(600):
        kept.begin()
        for name, data in (tensors[trial % 12], tensors[(trial + 5) % 12]):
            assert np.array_equal(kept.tensor(name, data.nbytes).memory, data)
        kept.scratch("output", 100_000 + 1000 * (trial % 50))
        kept.scratch("instructions", 1 + 4096 * (trial % 7))
        if trial % 3 == 0:
            kept.clear()
    assert sum(kernel.allocated) < 4 * _MIB


def test_a_tensor_used_again_after_another_had_its_buffer_is_whole(memory: ModuleType, tmp_path: Path) -> None:
    kept = memory.ContiguousMemory(tmp_path)
    (one, first), (two, second) = blob(tmp_path, 1, 9000), blob(tmp_path, 2, 6000)
    kept.tensor(one, 9000)
    kept.clear()
    assert np.array_equal(kept.tensor(two, 6000).memory, second)
    kept.begin()
    assert np.array_equal(kept.tensor(one, 9000).memory, first)
    assert np.array_equal(kept.tensor(two, 6000), second)


def test_unused_buffers_are_freed_when_memory_is_short(memory: ModuleType, kernel: Kernel, tmp_path: Path) -> None:
    kept = memory.ContiguousMemory(tmp_path)
    small = [blob(tmp_path, seed, _MIB) for seed in range(8)]
    for name, _ in small:
        kept.begin()
        kept.tensor(name, _MIB)
    assert kernel.left == 0
    kept.begin()
    name, data = blob(tmp_path, 20, _MIB // 2)
    assert np.array_equal(kept.tensor(name, _MIB // 2).memory, data)
    large, _ = blob(tmp_path, 21, 9 * _MIB)
    with pytest.raises(memory.OutOfContiguousMemoryError):
        kept.tensor(large, 9 * _MIB)


@pytest.mark.parametrize("kernel", [False, True], indirect=True, ids=["pynq 2.7", "pynq 3.0"])
def test_a_trial_that_is_too_large_costs_the_others_no_memory(
    memory: ModuleType, kernel: Kernel, tmp_path: Path
) -> None:
    kept = memory.ContiguousMemory(tmp_path)
    for _ in range(9):
        kept.scratch("output", 3 * _MIB)
        with pytest.raises(memory.OutOfContiguousMemoryError):
            kept.scratch("large", 9 * _MIB)
        kept.clear()
    name, data = blob(tmp_path, 1, 2 * _MIB)
    assert np.array_equal(kept.tensor(name, data.nbytes).memory, data)


def test_buffers_of_an_old_bitstream_are_not_used_again(memory: ModuleType, kernel: Kernel, tmp_path: Path) -> None:
    kept = memory.ContiguousMemory(tmp_path)
    kept.scratch("output", 5000)
    kept.give_back()
    kept.scratch("output", 5000)
    assert kernel.allocated == [8192, 8192]


@pytest.mark.parametrize(("limit", "kept"), [(4 * 8192, 4), (4 * 8192 - 1, 3), (8192, 1)])
def test_so_many_bytes_of_tensors_are_kept_and_the_oldest_leave(
    memory: ModuleType, kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, kept: int
) -> None:
    monkeypatch.setattr(memory, "TENSOR_BYTES", limit)
    held = memory.ContiguousMemory(tmp_path)
    names = [blob(tmp_path, seed, 8192)[0] for seed in range(8)]
    for name in names:
        held.begin()
        held.tensor(name, 8192)
    assert list(held._tensors) == names[-kept:]
    # One more than is kept at once: the one that leaves is there until the trial after the next begins.
    assert sum(kernel.allocated) <= (kept + 1) * 8192


def test_half_of_a_boards_contiguous_memory_is_for_tensors(memory: ModuleType) -> None:
    assert memory.TENSOR_BYTES == 64 * _MIB


def test_a_tensor_of_the_trial_under_way_does_not_leave(
    memory: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "TENSOR_BYTES", 8192)
    held = memory.ContiguousMemory(tmp_path)
    names = [blob(tmp_path, seed, 8192) for seed in range(3)]
    held.begin()
    for name, data in names:
        assert np.array_equal(held.tensor(name, 8192), data)
    for name, data in names:
        assert np.array_equal(held.tensor(name, 8192).memory, data)


@pytest.mark.parametrize("wrong", [8191, 8193])
def test_a_tensor_of_another_size_is_refused(memory: ModuleType, tmp_path: Path, wrong: int) -> None:
    name, _ = blob(tmp_path, 1, 8192)
    held = memory.ContiguousMemory(tmp_path)
    with pytest.raises(memory.TensorError, match=f"has 8192 bytes, the trial says {wrong}"):
        held.tensor(name, wrong)
    held.tensor(name, 8192)
    with pytest.raises(memory.TensorError, match=f"has 8192 bytes, the trial says {wrong}"):
        held.tensor(name, wrong)
    with pytest.raises(memory.TensorError, match="cannot be read"):
        held.tensor("0" * 64, 8192)


def test_scratch_of_a_purpose_is_one_buffer_that_grows(memory: ModuleType, kernel: Kernel, tmp_path: Path) -> None:
    held = memory.ContiguousMemory(tmp_path)
    first = held.scratch("output", 100)
    first[:] = 7
    assert first.nbytes == 100 and (held.scratch("output", 4096)[:100] == 7).all()
    assert kernel.allocated == [4096]
    held.scratch("output", 4097)
    assert kernel.allocated == [4096, 8192]
    assert held.scratch("instructions", 4096).nbytes == 4096  # the buffer that was outgrown
    assert kernel.allocated == [4096, 8192]


def test_after_a_clear_no_two_buffers_share_memory(memory: ModuleType, tmp_path: Path) -> None:
    held = memory.ContiguousMemory(tmp_path)
    held.scratch("output", 8192)
    held.clear()
    name, data = blob(tmp_path, 1, 8192)
    kept = held.tensor(name, 8192)
    held.scratch("output", 8192)[:] = 0
    assert np.array_equal(kept, data)


@pytest.mark.parametrize(("spare", "reused"), [(4096, True), (8192, True), (12_288, False)])
def test_a_spare_buffer_serves_a_request_of_half_its_size(
    memory: ModuleType, kernel: Kernel, tmp_path: Path, spare: int, reused: bool
) -> None:
    held = memory.ContiguousMemory(tmp_path)
    held.scratch("output", spare)
    held.clear()
    held.scratch("output", 4096)
    assert kernel.allocated == ([spare] if reused else [spare, 4096])


@pytest.mark.parametrize("kernel", [True], indirect=True, ids=["pynq 3.0"])
def test_spare_buffers_that_are_too_small_are_freed_for_a_large_one(
    memory: ModuleType, kernel: Kernel, tmp_path: Path
) -> None:
    held = memory.ContiguousMemory(tmp_path)
    for purpose in ("output", "instructions"):
        held.scratch(purpose, 3 * _MIB)
    held.clear()
    assert held.scratch("output", 7 * _MIB).nbytes == 7 * _MIB


def test_an_error_names_the_tensor_by_twelve_digits(memory: ModuleType, tmp_path: Path) -> None:
    name, _ = blob(tmp_path, 1, 8192)
    held = memory.ContiguousMemory(tmp_path)
    for _ in range(2):  # from the file, then from the buffer
        with pytest.raises(memory.TensorError, match=f"^tensor {name[:12]} has"):
            held.tensor(name, 4096)
        held.tensor(name, 8192)
    with pytest.raises(memory.TensorError, match="^tensor 000000000000 cannot be read"):
        held.tensor("0" * 64, 8192)
