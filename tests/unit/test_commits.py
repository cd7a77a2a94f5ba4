"""The subjects of the last hundred commits fit a terminal and name their area."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_LONGEST = 72


def test_subjects_are_short_and_begin_with_an_area() -> None:
    done = subprocess.run(
        ["git", "log", "-100", "--no-merges", "--format=%s"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("no git repository")
    long = [subject for subject in done.stdout.splitlines() if len(subject) > _LONGEST]
    assert not long, long
    assert all(":" in subject for subject in done.stdout.splitlines())
