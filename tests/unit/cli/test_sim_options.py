"""`hilt sim`: how its options are read, which model runs, its output and the exit codes; no model runs here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hilt.cli import sim
from hilt.cli.main import run as hilt
from hilt.simulator.device import Counters, DeviceStatus, MemoryModel, StageCounters
from hilt.simulator.driver import Execution, Fault
from hilt.simulator.image_run import Dump, Image
from hilt.simulator.toolchain import MissingToolError
from hilt_runtime.registers import FaultCode

STAGE = StageCounters(1, 2, 3, 4, 5)
COUNTERS = Counters(1234, 99, STAGE, STAGE, STAGE, STAGE)
Captured = pytest.CaptureFixture[str]


class Bench:
    """The models, which end at once as `execution` says."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.execution: Execution | Exception = Execution(DeviceStatus.DONE, 1234, COUNTERS)
        self.built: list[tuple[str, ...]] = []
        self.accelerator: Any = None
        self.ran: dict[str, Any] = {}
        self.image = folder / "a@b.bin"
        self.image.write_bytes(bytes(64))
        monkeypatch.setattr(sim, "build", self._build)
        monkeypatch.setattr(sim, "quick_build", self._build)
        monkeypatch.setattr(sim, "run_images", self._run)

    def _build(self, accelerator: Any, *form: str) -> Path:
        self.built.append(form)
        self.accelerator = accelerator
        return Path("model.so")

    def _run(self, library: Path, accelerator: Any, images: list[Image], insns: tuple[int, int], dumps: list[Dump],
             memory: MemoryModel, max_cycles: int, waves: Path | None) -> Execution:  # fmt: skip
        self.ran = {"images": images, "insns": insns, "dumps": dumps, "memory": memory, "most": max_cycles}
        if isinstance(self.execution, Exception):
            raise self.execution
        return self.execution

    def run(self, *options: str, image: str = "") -> int:
        placed = image or f"{self.image}@0x4000000"
        return hilt(["sim", "--params", "pynq", "--image", placed, "--insns", "0x4000000:4", *options])


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    return Bench(tmp_path, monkeypatch)


def test_without_options_the_rtl_runs_with_an_interlock_and_a_usual_memory(bench: Bench, capsys: Captured) -> None:
    assert bench.run() == 0
    assert capsys.readouterr().out == "done\n1234 cycles\n"
    assert bench.built == [("rtl",)]
    assert (bench.accelerator.hazards, bench.accelerator.bus_bits, bench.accelerator.isa) == ("interlock", 64, "A")
    assert bench.ran["images"] == [Image(bench.image, 0x4000000, bytes(64))], "the last @ parts file and address"
    assert (bench.ran["insns"], bench.ran["dumps"], bench.ran["most"]) == ((0x4000000, 4), [], 100_000_000)
    assert bench.ran["memory"].read_latency == 32 and bench.ran["memory"].base == 0x4000000


def test_options_choose_the_machine_and_the_memory(bench: Bench) -> None:
    out = bench.folder / "with:colon.bin"
    bench.run("--device", "golden", "--hazards", "none", "--bus", "128", "--latency", "7", "--max-cycles", "5",
              "--base", "0", "--memory", "0x8000000", "--dump", f"67108864:16:{out}", "--isa", "wide")  # fmt: skip
    assert bench.built == [("golden",)]
    assert (bench.accelerator.hazards, bench.accelerator.bus_bits, bench.accelerator.isa) == ("none", 128, "wide")
    assert bench.ran["dumps"] == [Dump(0x4000000, 16, out)] and bench.ran["most"] == 5
    memory = bench.ran["memory"]
    assert (memory.base, memory.bytes, memory.read_latency) == (0, 0x8000000, 7)


def test_waves_are_of_the_rtl_alone_and_need_a_folder(bench: Bench, capsys: Captured) -> None:
    waves = str(bench.folder / "w.fst")
    assert bench.run("--waves", waves) == 0 and bench.built == [("rtl", "trace")]
    assert bench.run("--waves", waves, "--device", "golden") == 2
    assert "hilt sim: --waves is of the RTL's signals; the golden model has none" in capsys.readouterr().err
    assert bench.run("--waves", str(bench.folder / "no" / "w.fst")) == 2
    assert "its folder is missing" in capsys.readouterr().err and len(bench.built) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--insns", "0x4000000"], "--insns '0x4000000' is not ADDR:COUNT"),
        (["--insns", "0x4000000:four"], "--insns: 'four' is not a number (decimal or 0x...)"),
        (["--insns", "-16:4"], "--insns: -16 is negative"),
        (["--dump", "0:16"], "--dump '0:16' is not ADDR:BYTES:FILE"),
        (["--dump", "0:x:out"], "--dump: 'x' is not a number"),
        (["--base", "here"], "--base: 'here' is not a number"),
        (["--memory", "-1"], "--memory: -1 is negative"),
        (["--image", "@0"], "--image '@0' is not FILE@ADDR"),
        (["--image", "a.bin"], "--image 'a.bin' is not FILE@ADDR"),
        (["--image", "missing.bin@0"], "cannot read image missing.bin"),
    ],
)
def test_what_cannot_be_read_is_bad_input(bench: Bench, capsys: Captured, options: list[str], words: str) -> None:
    assert bench.run(*options) == 2
    said = capsys.readouterr()
    assert f"hilt sim: {words}" in said.err and said.out == "" and bench.built == []


@pytest.mark.parametrize(
    ("status", "code", "text"),
    [
        (DeviceStatus.DONE, 0, "done"),
        (DeviceStatus.RUNNING, 1, "still running at the limit"),
        (DeviceStatus.FAULT, 3, f"fault: {Fault(FaultCode.ILLEGAL_INSTRUCTION, 16)}"),
    ],
)
def test_the_end_of_a_program_is_the_exit_code(
    bench: Bench, capsys: Captured, status: DeviceStatus, code: int, text: str
) -> None:
    fault = Fault(FaultCode.ILLEGAL_INSTRUCTION, 16) if status is DeviceStatus.FAULT else None
    bench.execution = Execution(status, 77, COUNTERS, fault)
    assert bench.run("--device", "golden") == code
    first, second = capsys.readouterr().out.splitlines()
    assert first == text
    assert second == "77 cycles, each an instruction or a micro-op: the golden model has no time"
    assert bench.run("--json") == code
    said = json.loads(capsys.readouterr().out)
    assert (said["status"], said["cycles"], said["timed"], said["device"]) == (status.name.lower(), 77, True, "rtl")
    assert said["fault"] == (
        None if fault is None else {"code": int(fault.code), "name": "ILLEGAL_INSTRUCTION", "address": 16}
    )
    assert said["counters"]["fetch"] == {"busy": 1, "starved": 2, "stalled": 3, "bytes": 4, "instructions": 5}
    assert (said["counters"]["macs"], said["isa"], said["parameters"]) == (99, "A", bench.accelerator.parameters.name)


def test_a_model_that_cannot_be_built_is_no_bad_input(bench: Bench, capsys: Captured) -> None:
    bench.execution = MissingToolError("no compiler")
    assert bench.run() == 3
    assert capsys.readouterr().err == "hilt sim: no compiler\n"
