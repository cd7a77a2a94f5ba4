"""`hilt sim` on programs that are written bit by bit from HARDWARE.md section 2, with nothing of hilt's encoder."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from hilt.cli.sim import sim

FINISH_AFTER_STORE = (3 | 1 << 4, 0)  # pop_next: the store's token
ACC_BYTES, OUT_BYTES = 64, 16

application = typer.Typer()
application.command()(sim)


def _transfer(
    opcode: int, tokens: int, memory_type: int, sram: int, dram: int, y: int, x: int, stride: int
) -> tuple[int, int]:
    """A LOAD or STORE of revision A: opcode, flags, memory_type [8:7], sram_base [24:9], dram_base [56:25]; no pads."""
    return opcode | tokens << 3 | memory_type << 7 | sram << 9 | dram << 25, y | x << 16 | stride << 32


def _program(acc_address: int, uop_address: int, out_address: int) -> bytes:
    """acc = 4 elements; acc = acc * 2 (SHR by -1) by one micro-op in a loop of four; out = acc."""
    pop_prev, push_prev, push_next = 1, 4, 8
    alu = (
        4 | push_next << 3 | 0 << 8 | 1 << 21 | 1 << 35 | 4 << 49,  # uop 0..1, iter_out 1, iter_in 4
        1 << 11 | 1 << 33 | 3 << 44 | 1 << 46 | (0xFFFF << 47),  # dst_factor_in 1, src_factor_in 1, SHR, imm -1
    )
    words = [
        _transfer(0, 0, 0, 0, uop_address // 4, 1, 1, 1),
        _transfer(0, 0, 3, 0, acc_address // ACC_BYTES, 1, 4, 4),
        alu,
        _transfer(1, pop_prev | push_prev, 0, 0, out_address // OUT_BYTES, 2, 2, 3),
        FINISH_AFTER_STORE,
    ]
    return np.array(words, dtype="<u8").tobytes()


def _invoke(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(application, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("device", ["golden", "rtl"])
@pytest.mark.parametrize("base", [0, 0x1000, 0x3FFF_0000])
def test_runs_a_program_made_elsewhere(tmp_path: Path, device: str, base: int) -> None:
    insn, uop, acc, out = base, base + 0x1000, base + 0x2000, base + 0x5000
    values = np.arange(64, dtype="<i4") - 32
    (tmp_path / "insn.bin").write_bytes(_program(acc, uop, out))
    (tmp_path / "uop.bin").write_bytes(bytes(4))
    (tmp_path / "acc.bin").write_bytes(values.tobytes())
    code, stdout, stderr = _invoke(
        *("--device", device, "--params", "pynq", "--isa", "A", "--json"),
        *("--image", f"{tmp_path}/insn.bin@{insn:#x}", "--image", f"{tmp_path}/uop.bin@{uop}"),
        *("--image", f"{tmp_path}/acc.bin@{acc:#x}", "--insns", f"{insn}:5"),
        *("--dump", f"{out:#x}:96:{tmp_path}/out.bin"),
    )
    assert (code, stderr) == (0, "")
    answer = json.loads(stdout)
    assert answer["status"] == "done"
    assert answer["fault"] is None
    assert answer["cycles"] > 0
    assert answer["counters"]["store"]["bytes"] == 64
    doubled = (values * 2).astype(np.int8).reshape(2, 32)
    stored = np.zeros((2, 48), np.int8)
    stored[:, :32] = doubled  # x_stride is 3, x_size 2
    assert (tmp_path / "out.bin").read_bytes() == stored.tobytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["acc.bin", "insn.bin", "out.bin", "uop.bin"]


@pytest.mark.parametrize("device", ["golden", "rtl"])
def test_a_missing_token_is_still_running_at_the_limit(tmp_path: Path, device: str) -> None:
    (tmp_path / "insn.bin").write_bytes(np.array([FINISH_AFTER_STORE], "<u8").tobytes())
    code, stdout, _ = _invoke(
        *("--device", device, "--params", "pynq", "--isa", "A", "--max-cycles", 5000),
        *("--image", f"{tmp_path}/insn.bin@0x1000", "--insns", "0x1000:1", "--dump", f"0x1000:16:{tmp_path}/again.bin"),
    )
    assert code == 1
    assert stdout.startswith("still running at the limit\n")
    assert (tmp_path / "again.bin").read_bytes() == (tmp_path / "insn.bin").read_bytes()


@pytest.mark.parametrize("device", ["golden", "rtl"])
def test_a_fault_is_named_with_its_address(tmp_path: Path, device: str) -> None:
    load_past_the_end = _transfer(0, 0, 3, 2040, 0, 1, 16, 16)
    (tmp_path / "insn.bin").write_bytes(np.array([load_past_the_end, (3, 0)], "<u8").tobytes())
    arguments = (
        *("--device", device, "--params", "pynq", "--isa", "A"),
        *("--image", f"{tmp_path}/insn.bin@0x1000", "--insns", "0x1000:2"),
    )
    code, stdout, _ = _invoke(*arguments)
    assert code == 3
    assert stdout.startswith("fault: acc index 2048 is past its buffer\n")
    code, stdout, _ = _invoke(*arguments, "--json")
    assert code == 3
    assert json.loads(stdout)["fault"] == {"code": 6, "name": "ACC_INDEX", "address": 2048}


BAD = {
    "no such parameters": (["--params", "pink"], "no VTA parameters named 'pink'"),
    "parameters too big for revision A": (["--params", "zcu102", "--isa", "A"], "use the wide ISA"),
    "a bus nobody has": (["--bus", "48"], "a memory bus of 48 bits"),
    "an image without an address": (["--image", "insn.bin"], "--image 'insn.bin' is not FILE@ADDR"),
    "an image that is not there": (["--image", "gone.bin@0"], "cannot read image gone.bin: No such file"),
    "an address that is no number": (["--image", "insn.bin@top"], "'top' is not a number"),
    "images that overlap": (["--image", "insn.bin@0x1008"], "overlap"),
    "no count": (["--insns", "0x1000"], "--insns '0x1000' is not ADDR:COUNT"),
    "more instructions than the image has": (["--insns", "0x1000:3"], "but no image holds 0x1020"),
    "no instructions": (["--insns", "0x1000:0"], "0 instructions"),
    "instructions off their grid": (["--insns", "0x1008:1"], "not a multiple of their 16 bytes"),
    "an image past the memory": (["--base", "0", "--memory", "0x1000"], "is not all in the memory 0x0..0x1000"),
    "an image past 32 bits": (["--image", "insn.bin@0xfffffff8"], "physical addresses have 32 bits"),
    "a memory past 64 bits": (["--memory", "0x10000000000100000"], "memory_bytes 18446744073710600192 cannot be"),
    "more cycles than 64 bits": (["--max-cycles", "18446744073709551617"], "a limit of 18446744073709551617 cycles"),
    "a base off its page": (["--base", "0x10"], "not a multiple of 4096"),
    "a dump without a file": (["--dump", "0x1000:16"], "is not ADDR:BYTES:FILE"),
    "a dump into no folder": (["--dump", "0x1000:16:gone/out.bin"], "its folder is missing"),
    "a dump into a device": (["--dump", "0x1000:16:/dev/zero"], "cannot write /dev/zero: it is no ordinary file"),
    "waves into no folder": (["--device", "rtl", "--waves", "gone/w.fst"], "its folder is missing"),
    "a negative dump": (["--dump", "0x1000:-4:out.bin"], "-4 is negative"),
}


@pytest.mark.parametrize("mistake", BAD)
def test_bad_input_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("insn.bin").write_bytes(np.array([(3, 0), (3, 0)], "<u8").tobytes())
    options = {"--params": ["pynq"], "--insns": ["0x1000:1"], "--image": ["insn.bin@0x1000"]}
    options["--dump"] = ["0x1000:16:first.bin"]
    changed, message = BAD[mistake]
    for name, value in zip(changed[::2], changed[1::2], strict=True):
        adds = name in ("--dump", "--image")
        options[name] = [*options.get(name, []), value] if adds else [value]
    arguments = [word for name, values in options.items() for value in values for word in (name, value)]
    code, stdout, stderr = _invoke("--device", "golden", *arguments)
    assert (code, stdout) == (2, "")
    assert message in stderr
    assert stderr.startswith("hilt sim: ")
    assert stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["insn.bin"]


def test_a_dump_replaces_the_target_of_a_link(tmp_path: Path) -> None:
    (tmp_path / "insn.bin").write_bytes(np.array([(3, 0)], "<u8").tobytes())
    (tmp_path / "link").symlink_to("old.bin")
    (tmp_path / "old.bin").write_bytes(b"old")
    arguments = ("--device", "golden", "--params", "pynq", "--image", f"{tmp_path}/insn.bin@0", "--insns", "0:1")
    assert _invoke(*arguments, "--dump", f"0:16:{tmp_path}/link")[0] == 0
    assert (tmp_path / "link").is_symlink() and (tmp_path / "old.bin").stat().st_size == 16


def test_a_full_disk_leaves_older_dumps_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "insn.bin").write_bytes(np.array([(3, 0)], "<u8").tobytes())
    (tmp_path / "old.bin").write_bytes(b"old")
    arguments = (
        *("--device", "golden", "--params", "pynq", "--image", f"{tmp_path}/insn.bin@0", "--insns", "0:1"),
        *("--dump", f"0:16:{tmp_path}/old.bin", "--dump", f"0:4096:{tmp_path}/new.bin"),
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))  # a file of more bytes fails as on a full disk
    try:
        code, _, stderr = _invoke(*arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code == 2
    assert "cannot write the dumps: File too large" in stderr
    assert (tmp_path / "old.bin").read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["insn.bin", "old.bin"]
    assert _invoke(*arguments)[0] == 0
    assert (tmp_path / "old.bin").stat().st_size == 16
