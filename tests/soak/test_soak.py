"""The soak's own judgement: a leak is seen, noise is none."""

from __future__ import annotations

import mmap
import os
import random
from pathlib import Path

import pytest

from tests.soak.processes import resident_of_size, sample
from tests.soak.verdict import growth


def test_a_leak_of_a_kib_a_trial_is_seen_in_noise() -> None:
    chance = random.Random(1)
    leaking = [100 + trial / 1024 + chance.uniform(-1, 1) for trial in range(10_000)]

    assert not growth("memory", "MiB", leaking, allowed=2.0).flat


def test_noise_and_a_start_are_no_leak() -> None:
    chance = random.Random(2)
    series = [20.0] * 500 + [100 + chance.uniform(-1, 1) for _ in range(9_500)]

    assert growth("memory", "MiB", series, allowed=2.0).flat


def test_a_verdict_needs_samples() -> None:
    with pytest.raises(ValueError, match="has 19 samples"):
        growth("memory", "MiB", [1.0] * 19, allowed=2.0)


def test_a_sample_counts_an_open_file() -> None:
    before = sample(os.getpid())
    with Path(os.devnull).open() as _:
        after = sample(os.getpid())

    assert before is not None and after is not None
    assert after.descriptors == before.descriptors + 1
    assert after.memory_kib > 1024


def test_only_mappings_of_the_size_count() -> None:
    size = 1777 * 4096  # no array of the other tests' has it
    with mmap.mmap(-1, size) as memory:
        memory[: 1 << 20] = bytes(1 << 20)

        assert resident_of_size(os.getpid(), size) == 1024
        assert resident_of_size(os.getpid(), size + 4096) == 0


def test_a_process_that_has_ended_has_no_sample() -> None:
    assert sample(2**22 + 1) is None
