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
compiles = pytest.mark.slow  # starts a compiler


def machine_of(library: bytes) -> int:
    assert library.startswith(b"\x7fELF")
    return int(struct.unpack_from("<H", library, 18)[0])


@compiles
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


@compiles
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


Command = list[str]


def commands(
    monkeypatch: pytest.MonkeyPatch, there: set[str], machine: str, *, here: bool = False, own: str = "x86_64"
) -> list[Command]:
    """Return the compilers' commands for a processor, where these programs are on this machine of processor `own`."""
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name in there else None)
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: name if name in there else None)
    monkeypatch.setattr(module.platform, "machine", lambda: own)
    return list(module._commands(machine, here))


ALL = {"gcc", "ziglang", "arm-linux-gnueabihf-gcc", "aarch64-linux-gnu-gcc"}


@pytest.mark.parametrize(("machine", "processor"), [("armv7l", "cortex_a9"), ("aarch64", "cortex_a53")])
def test_a_boards_library_is_built_by_ziglang_or_the_cross_compiler(
    machine: str, processor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_zig, by_cross = commands(monkeypatch, ALL, machine, here=True)
    assert by_zig[:4] == [module.sys.executable, "-m", "ziglang", "cc"] and by_zig[-1] == f"-mcpu={processor}"
    assert by_zig[by_zig.index("-target") + 1].endswith(".2.31"), "PYNQ 2.7's glibc"
    assert by_cross[0].endswith("-gcc") and by_cross[1] == f"-mcpu={processor.replace('_', '-')}"
    assert commands(monkeypatch, ALL - {"ziglang"}, machine) == [by_cross]
    assert commands(monkeypatch, {"gcc"}, machine) == [], "this machine's compiler makes no board's code"


def test_a_board_that_is_a_process_here_has_this_machines_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    first, by_zig = commands(monkeypatch, ALL, "x86_64", here=True)
    assert first == ["/usr/bin/gcc", "-march=native"] and "ziglang" in by_zig
    (own, *_) = commands(monkeypatch, ALL, "aarch64", here=True, own="aarch64")
    assert own == ["/usr/bin/gcc", "-mcpu=native"]


def test_another_board_of_this_machines_processor_has_the_common_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    by_zig, by_gcc = commands(monkeypatch, ALL, "x86_64")
    assert "ziglang" in by_zig and by_gcc == ["/usr/bin/gcc"]


def test_a_library_is_built_once_for_its_sources_and_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_CACHE", str(tmp_path))
    compiler = tmp_path / "cc"
    compiler.write_text(
        "#!/bin/sh\n"
        '[ "$1" = --version ] && exec echo 12.2\n'
        "echo run >> $(dirname $0)/runs\n"
        'for word; do [ "$last" = -o ] && printf \'%s\' "$*" > $word; last=$word; done\n'
    )
    compiler.chmod(0o755)
    library = module._built([str(compiler), "-O9"])
    words = library.decode().split()
    assert words[0] == "-O9" and words[-1] == "-lm"
    assert [name for name in words if name.endswith(".c")] and not [name for name in words if name.endswith(".h")]
    assert module._built([str(compiler), "-O9"]) == library
    assert (tmp_path / "runs").read_text().count("run") == 1
    assert module._built([str(compiler), "-O8"]) != library, "other flags make another library"
    assert (tmp_path / "runs").read_text().count("run") == 2


def test_a_compiler_that_fails_leaves_its_place_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def built(command: Command) -> bytes:
        if command == ["first"]:
            raise module.subprocess.CalledProcessError(1, command)
        return command[0].encode()

    monkeypatch.setattr(module, "_commands", lambda machine, here: iter([["first"], ["second"], ["third"]]))
    monkeypatch.setattr(module, "_built", built)
    assert engine_library.__wrapped__("armv7l") == b"second"
