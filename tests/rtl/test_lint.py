"""The RTL is free of Verilator's warnings, all of them on, for every build that is offered; the waivers are few."""

from __future__ import annotations

import re
import subprocess

import pytest

from hilt import paths
from hilt.simulator import toolchain
from hilt.vta.accelerator import Accelerator, IsaRevision, load_parameters

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
}


def lint(defines: dict[str, int]) -> subprocess.CompletedProcess[str]:
    macros = [f"-D{name}={value}" for name, value in defines.items()]
    verilator = toolchain.verilator()
    return subprocess.run(
        [
            *(str(verilator.program), "--lint-only", "-Wall", "--top-module", "vta_top"),
            *(*macros, str(RTL / "vta_waivers.vlt"), "-F", str(RTL / "vta.f")),
        ],
        env=verilator.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("build", BUILDS)
def test_no_warnings(build: str) -> None:
    done = lint(BUILDS[build].defines())
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_a_bus_that_the_rtl_has_not_is_refused_at_elaboration() -> None:
    done = lint(Accelerator(load_parameters("pynq"), IsaRevision.A).defines() | {"VTA_BUS_WIDTH": 256})
    assert done.returncode != 0
    assert "VTA_BUS_WIDTH must be 64 or 128" in done.stderr


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


def test_a_waiver_is_one_line_with_its_reason() -> None:
    lines = (RTL / "vta_waivers.vlt").read_text().splitlines()[1:]
    assert all(line.startswith("//") == (number % 2 == 0) for number, line in enumerate(lines))
    assert all(line.startswith("lint_off -rule") and "-file" in line for line in lines[1::2])
