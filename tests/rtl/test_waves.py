"""Waves of a run: an FST file that names the instructions, read here block by block as the format has it."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from hilt.cli.main import run as hilt
from hilt.simulator.build import Form, quick_build
from hilt.simulator.device import MemoryModel, SimulatedDevice, SimulatorError
from hilt.vta.accelerator import Accelerator, IsaRevision
from hilt.vta.parameters import VTAParameters
from tests.rtl.assembly import BASE, finish, words
from tests.rtl.variants import VARIANTS

# Verilator's code for the traces of a block of 16 takes twice as long to compile.
SMALL = Accelerator(VTAParameters.from_name("1x8_i8w8a32_12_13_14_15"), IsaRevision.A)
HEADER, VALUE_CHANGES, GEOMETRY, HIERARCHY = 0, {1, 5, 8}, 3, {4, 6, 7}


def blocks(contents: bytes) -> dict[int, bytes]:
    """The last block of each type: a type byte, a length that counts itself, the rest."""
    found, at = {}, 0
    while at < len(contents):
        length = int.from_bytes(contents[at + 1 : at + 9], "big")
        found[contents[at]] = contents[at + 9 : at + 1 + length]
        at += 1 + length
    assert at == len(contents)
    return found


def number(header: bytes, field: int) -> int:
    return int.from_bytes(header[8 * field : 8 * field + 8], "big")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "insns.bin"
    file.write_bytes(words(SMALL, [finish()]).tobytes())
    (tmp_path / "small.json").write_text(json.dumps(SMALL.parameters.to_mapping()))
    return file


def sim(program: Path, *more: str) -> int:
    parameters = str(program.with_name("small.json"))
    arguments = ["sim", "--params", parameters, "--isa", "A", "--image", f"{program}@{BASE:#x}"]
    return hilt([*arguments, "--insns", f"{BASE:#x}:1", *more])


def test_waves_are_a_whole_fst_file(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    waves = tmp_path / "run.fst"
    assert sim(program, "--waves", str(waves)) == 0
    cycles = int(capsys.readouterr().out.split()[1])
    read = blocks(waves.read_bytes())
    header = read[HEADER]
    first, last, signals = number(header, 0), number(header, 1), number(header, 6)
    assert first == 0 and last >= 2 * cycles, "two times a cycle: one for each edge of the clock"
    assert signals > 500
    assert read.keys() & VALUE_CHANGES and read.keys() & HIERARCHY
    geometry = read[GEOMETRY]
    widths = geometry[16:] if number(geometry, 0) == len(geometry) - 16 else zlib.decompress(geometry[16:])
    assert len(widths) >= number(geometry, 1) > 500


def test_impossible_arguments_are_refused(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sim(program, "--waves", str(tmp_path / "missing" / "run.fst")) == 2
    assert "run.fst: its folder is missing" in capsys.readouterr().err
    assert sim(program, "--device", "golden", "--waves", str(tmp_path / "run.fst")) == 2
    assert "the golden model has none" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["golden", "rtl"])
def test_a_model_without_traces_says_so_and_leaves_the_file_as_it_was(tmp_path: Path, form: Form) -> None:
    (tmp_path / "run.fst").write_bytes(b"of an earlier run")
    with (
        SimulatedDevice(quick_build(VARIANTS["pynq A"], form), MemoryModel(BASE, 1 << 20)) as device,
        pytest.raises(SimulatorError, match="built without traces"),
    ):
        device.trace(tmp_path / "run.fst")
    assert (tmp_path / "run.fst").read_bytes() == b"of an earlier run"
