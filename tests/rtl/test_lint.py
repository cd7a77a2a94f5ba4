"""The RTL is free of Verilator's warnings, all of them on, for every build that is offered; the waivers are few."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from hilt import paths
from hilt.simulator import toolchain
from hilt.simulator.build import build
from hilt.simulator.compilation import BuildError
from hilt.vta.accelerator import Accelerator, IsaRevision, ParameterError, VTAParameters, load_parameters
from tests.rtl.variants import WIDE_VARIANTS

RTL = paths.hls_directory() / "rtl"

BUILDS = {
    f"{name} {isa} {bus}-bit {hazards}": Accelerator(load_parameters(name), isa, bus_bits=bus, hazards=hazards)
    for name, isas in (
        ("pynq", tuple(IsaRevision)),
        ("pynq_batched", tuple(IsaRevision)),
        ("zcu102", (IsaRevision.WIDE,)),
    )
    for isa in isas
    for bus in (64, 128)
    for hazards in (("interlock", "none") if (name, bus) == ("pynq", 64) else ("interlock",))
} | WIDE_VARIANTS


def parameters(batch: int, block: int, uop_bytes: int, inp: int, wgt: int, acc: int) -> VTAParameters:
    """Return parameters from log2 values: batch, block, bytes of the micro-op buffer, elements of the others."""
    return VTAParameters(
        3, 3, 5, batch, block, uop_bytes, inp + batch + block, wgt + 2 * block, acc + batch + block + 2
    )


# At the ends of the RTL's limits.
EXTREMES = {
    "1x16, smallest buffers": Accelerator(parameters(0, 4, 4, 1, 1, 2), IsaRevision.A),
    "1x16, largest buffers": Accelerator(parameters(0, 4, 18, 16, 16, 16), IsaRevision.WIDE, bus_bits=128),
    "16x4": Accelerator(parameters(4, 2, 13, 6, 4, 6), IsaRevision.B, bus_bits=128),
    "2x4": Accelerator(parameters(1, 2, 13, 6, 4, 6), IsaRevision.B),
    "1x32": Accelerator(parameters(0, 5, 13, 6, 4, 6), IsaRevision.A),
    "16x64": Accelerator(parameters(4, 6, 13, 6, 4, 6), IsaRevision.A),
}

# Accelerators for the golden model and the twin, which have no bus and banks: errors of Accelerator and of the RTL.
REFUSED = {
    "1x8 on a bus of 128 bits": (
        ((0, 3, 13, 6, 4, 6), 128),
        "LOG_BATCH and LOG_BLOCK give inp elements of 8 bytes, less than the 16 of a beat",
        "the bus is wider than an element",
    ),
    "two accumulators": (
        ((0, 4, 13, 6, 4, 1), 64),
        "LOG_ACC_BUFF_SIZE gives a buffer of 2 elements",
        "a bank of the accumulator needs two rows",
    ),
    "a micro-op buffer of one beat": (
        ((0, 4, 4, 6, 4, 6), 128),
        "LOG_UOP_BUFF_SIZE gives a micro-op buffer of 16 bytes",
        "a bank needs two rows; raise LOG_UOP_BUFF_SIZE",
    ),
}


def lint(parameters: dict[str, int], *flags: str) -> subprocess.CompletedProcess[str]:
    values = [f"-G{name}={value}" for name, value in parameters.items()]
    verilator = toolchain.verilator()
    return subprocess.run(
        [
            *(str(verilator.program), "--lint-only", "-Wall", *flags, "--top-module", "vta_top"),
            *(*values, f"+incdir+{RTL}", str(RTL / "vta_waivers.vlt"), "-F", str(RTL / "vta.f")),
        ],
        env=verilator.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("build", BUILDS)
def test_no_warnings(build: str) -> None:
    # A row of 2^15 bits is longer than WIDTHCONCAT takes.
    flags = ("-Wno-WIDTHCONCAT",) if BUILDS[build].parameters.block == 64 else ()
    done = lint(BUILDS[build].rtl_parameters(), *flags)
    assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.mark.parametrize("extreme", EXTREMES)
def test_no_warnings_at_the_ends(extreme: str) -> None:
    """But that an element of 4 KiB is long."""
    done = lint(EXTREMES[extreme].rtl_parameters(), "-Wno-WIDTHCONCAT")
    assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.mark.parametrize("refused", REFUSED)
def test_parameters_that_the_rtl_has_not_make_no_model(
    refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are refused by the field; and should they come to the RTL, its build ends, which warnings do not do."""
    (logs, bus_bits), told, told_by_rtl = REFUSED[refused]
    accelerator = Accelerator(parameters(*logs), IsaRevision.A, bus_bits=bus_bits)
    monkeypatch.setenv("HILT_CACHE", str(tmp_path))
    with pytest.raises(ParameterError, match=told):
        build(accelerator, "rtl")
    monkeypatch.setattr(Accelerator, "require_rtl", lambda self: None)
    with pytest.raises(BuildError, match=told_by_rtl):
        build(accelerator, "rtl")


def test_every_profile_ends_where_the_rtl_refuses() -> None:
    for profile in (paths.hls_directory() / "sim").glob("rtl_*.f"):
        assert "-Werror-USERERROR" in profile.read_text().splitlines(), profile


def test_a_bus_that_the_rtl_has_not_is_refused_at_elaboration() -> None:
    done = lint(Accelerator(load_parameters("pynq"), IsaRevision.A).rtl_parameters() | {"BusBits": 256})
    assert done.returncode != 0
    assert "BusBits must be 64 or 128" in done.stderr


def test_every_module_is_listed_once_in_a_file_of_its_name() -> None:
    listed = [line for line in (RTL / "vta.f").read_text().splitlines() if line and not line.startswith("//")]
    assert sorted(listed) == sorted(path.name for path in RTL.glob("*.sv"))
    for name in listed:
        (declared,) = re.findall(r"^(?:module|package)\s+(\w+)", (RTL / name).read_text(), re.MULTILINE)
        assert f"{declared}.sv" == name


def test_the_file_list_is_by_level() -> None:
    """A file instantiates only modules of levels above its own."""
    levels: dict[str, int] = {}
    level = -1
    for line in (RTL / "vta.f").read_text().splitlines():
        if line.startswith("// Level"):
            level += 1
        elif line and not line.startswith("//"):
            levels[line.removesuffix(".sv")] = level
    for module, own in levels.items():
        used = set(re.findall(r"^ *(vta_\w+) (?:#\(|u_\w+ \()", (RTL / f"{module}.sv").read_text(), re.MULTILINE))
        assert all(levels[name] < own for name in used), f"{module} uses {sorted(used)}"


def test_no_warnings_with_the_rules_of_axi() -> None:
    pynq = Accelerator(load_parameters("pynq"), IsaRevision.A).rtl_parameters()
    done = lint(pynq, "--assert", "-F", str(RTL.parent / "formal" / "checkers" / "checkers.f"))
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_no_macro_configures_the_rtl() -> None:
    """Two accelerators of other parameters fit in one design; macros are the same for all of it."""
    for path in RTL.glob("*.sv*"):
        text = re.sub(r"//.*", "", path.read_text())
        assert set(re.findall(r"`(\w+)(?: +(\w+))?", text)) <= {("include", ""), ("ifndef", "SYNTHESIS"), ("endif", "")}


def test_registers_are_named_and_reset_alike() -> None:
    """The idioms of hls/README.md, in synthesised modules: one edge, and `_q` on all registers but memories."""
    for path in RTL.glob("*.sv"):
        text = re.sub(r"//.*", "", path.read_text())
        text = re.sub(r"`ifndef SYNTHESIS.*?`endif", "", text, flags=re.DOTALL)
        assert set(re.findall(r"always\w* @\(([^)]*)\)", text)) <= {"posedge clk_i", "posedge clk"}, path.name
        before = r"^ *(?:else |begin |[A-Z]\w*: |if \([^\n]*?\) )*"
        assigned = set(re.findall(before + r"([a-z]\w*)(?:\[[^\n=]*\]|\.\w+)* <= ", text, re.MULTILINE))
        memories = set(re.findall(r"\b([a-z]\w*)\[[A-Z]\w*\];", text))
        assert {name for name in assigned if not re.search(r"_n?q(_o)?$", name)} <= memories, path.name


def test_every_module_has_assertions_with_a_name_and_a_message() -> None:
    for path in RTL.glob("*.sv"):
        text = path.read_text()
        if not re.search(r"^module", text, re.MULTILINE):
            continue
        named = re.findall(r"^ *assert_\w+ : assert property", text, re.MULTILINE)
        told = re.findall(r"^ *else \$error\(", text, re.MULTILINE)
        assert len(named) == len(told) == text.count("assert property") >= 1, path.name


def test_properties_are_boolean_expressions() -> None:
    """Yosys's front end reads no sequences: `a -> b` and `$past(a) -> b` in place of |-> and |=>."""
    for path in (*RTL.glob("*.sv"), *RTL.parent.glob("formal/**/*.sv")):
        assert not re.search(r"\|->|\|=>", path.read_text()), path.name


def test_a_waiver_is_one_line_with_its_reason() -> None:
    lines = (RTL / "vta_waivers.vlt").read_text().splitlines()[2:]
    assert all(line.startswith("//") == (number % 2 == 0) for number, line in enumerate(lines))
    assert all(line.startswith("lint_off -rule") and "-file" in line for line in lines[1::2])
