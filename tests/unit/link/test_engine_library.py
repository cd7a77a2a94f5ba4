"""The native engine's library for each board's processor."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from hilt.link import engine_library as module
from hilt.link.agent import build_archive
from hilt.link.engine_library import engine_library, library_name

MACHINES = {"x86_64": 62, "armv7l": 40, "aarch64": 183}
"""ELF's numbers of the processors."""
pytestmark = pytest.mark.slow  # starts compilers


def machine_of(library: bytes) -> int:
    assert library.startswith(b"\x7fELF")
    return int(struct.unpack_from("<H", library, 18)[0])


@pytest.mark.parametrize("machine", MACHINES)
def test_a_library_is_built_for_the_boards_processor(machine: str) -> None:
    library = engine_library(machine)
    if library is None:
        pytest.skip(f"no compiler for {machine}")
    assert machine_of(library) == MACHINES[machine]
    needed = {tuple(map(int, text.split(b"."))) for text in _versions(library)}
    assert max(needed) <= (2, 31)  # PYNQ 2.7's glibc


def _versions(library: bytes) -> set[bytes]:
    import re

    return set(re.findall(rb"GLIBC_([0-9.]+)\0", library))


def test_the_archive_has_the_library_of_the_boards_processor() -> None:
    library = engine_library("x86_64", here=True)
    if library is None:
        pytest.skip("no compiler")
    assert library in build_archive(True, "x86_64").data
    assert library_name("x86_64") == "libhilt-x86_64.so"


def test_an_unknown_processor_has_none() -> None:
    assert engine_library("riscv64") is None and library_name("../../etc") == ""


def test_without_a_compiler_the_archive_has_the_sources_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    assert engine_library.__wrapped__("armv7l") is None
