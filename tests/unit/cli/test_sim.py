"""`hilt sim` as a user types it: its JSON, its text, its exit codes, its messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hilt.cli.main import run as hilt
from tests.rtl.assembly import BASE, finish, words
from tests.rtl.variants import VARIANTS

pytestmark = pytest.mark.slow  # compiles the golden model


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "insns.bin"
    file.write_bytes(words(VARIANTS["pynq A"], [finish()]).tobytes())
    return file


def sim(program: Path, *more: str) -> int:
    arguments = ["--params", "pynq", "--device", "golden", "--image", f"{program}@{BASE:#x}"]
    return hilt(["sim", *arguments, "--insns", f"{BASE:#x}:1", *more])


def test_json_is_one_object_with_schema_status_and_counters(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sim(program, "--json") == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert said["schema"] == 1 and said["kind"] == "sim"
    assert said["status"] == "done" and said["fault"] is None
    assert (said["device"], said["timed"], said["isa"]) == ("golden", False, "A")
    assert said["parameters"] == VARIANTS["pynq A"].parameters.name
    assert said["counters"]["fetch"]["instructions"] == 1 and said["counters"]["macs"] == 0
    assert said["cycles"] == said["counters"]["cycles"]


def test_json_of_a_fault_names_it_and_the_command_ends_with_3(tmp_path: Path,
                                                             capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    file = tmp_path / "insns.bin"
    file.write_bytes(b"\x07" + bytes(15))
    assert sim(file, "--json") == 3
    said = json.loads(capsys.readouterr().out)
    assert said["status"] == "fault" and said["fault"]["name"] == "ILLEGAL_INSTRUCTION"


def test_bad_input_is_one_line_and_no_json(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sim(program, "--params", "nosuch", "--json") == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1 and "no VTA parameters named 'nosuch'" in printed.err
