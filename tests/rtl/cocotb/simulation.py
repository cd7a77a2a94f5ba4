"""The build of the bench with Verilator through cocotb's runner, and the run of its checks (checks.py)."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from unittest import mock

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import Verilator

from hilt import paths
from hilt.simulator import toolchain

TOP = "two_accelerators"
HERE = Path(__file__).parent
REPOSITORY = HERE.parents[2]


class _Verilator(Verilator):  # type: ignore[misc]
    """cocotb's runner, which makes all signals public: twice the code, and each is kept whether it is read or not."""

    def _build_command(self) -> list[list[str]]:
        commands: list[list[str]] = super()._build_command()
        return [[word for word in command if word != "--public-flat-rw"] for command in commands]


class Simulation:
    """Two accelerators in their benches. Warm, construction is a check that nothing has changed."""

    def __init__(self) -> None:
        self._folder = paths.cache() / "cocotb" / TOP
        self._folder.mkdir(parents=True, exist_ok=True)
        self._runner = _Verilator()
        rtl = paths.hls_directory() / "rtl"
        listed = [line for line in (rtl / "vta.f").read_text().splitlines() if line and not line.startswith("//")]
        with (self._folder / "lock").open("w") as lock, mock.patch.dict(os.environ, _tools()):
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._runner.build(
                sources=[
                    HERE / "public.vlt",
                    *(rtl / name for name in listed),
                    HERE / "axi_rules.sv",
                    HERE / "axi_bench.sv",
                    HERE / f"{TOP}.sv",
                ],
                includes=[rtl],
                build_args=["-Wno-fatal", "--assert", "-O3", "-CFLAGS", "-std=c++17"],
                hdl_toplevel=TOP,
                build_dir=self._folder / "build",
                log_file=self._folder / "build.log",
            )

    def run(self, check: str, **settings: str) -> None:
        """Run one check of checks.py with these environment variables.

        Raises:
            AssertionError: The check fails; the text is the end of its log.
        """
        folder = self._folder / check
        folder.mkdir(exist_ok=True)
        log, results = folder / "log", folder / "results.xml"
        results.unlink(missing_ok=True)
        try:
            self._runner.test(
                test_module="tests.rtl.cocotb.checks",
                testcase=check,
                hdl_toplevel=TOP,
                test_dir=folder,
                results_xml=str(results),
                log_file=log,
                seed=1,
                extra_env={
                    "COCOTB_LOG_LEVEL": "WARNING",
                    "COCOTB_REWRITE_ASSERTION_FILES": "checks.py",  # of all files, by default: seconds
                    "PYTHONPATH": str(REPOSITORY),
                    **settings,
                },
            )
            passed = get_results(results) == (1, 0)
        except (SystemExit, RuntimeError):
            passed = False
        assert passed, f"{check} with {settings}; all of its log: {log}\n{log.read_text()[-4000:]}"


def _tools() -> dict[str, str]:
    """The environment in which cocotb's runner finds the Verilator that hilt builds with; see hilt.simulator.build."""
    toolchain.require("g++", "make", "perl")
    verilator = toolchain.verilator()
    return {
        **verilator.environment,
        "PATH": f"{verilator.program.parent}{os.pathsep}{os.environ['PATH']}",
        "MAKEFLAGS": "-- CXX=g++ LINK=g++ CFG_CXXFLAGS_PCH_I=-include CFG_GCH_IF_CLANG= OPT_FAST=-O1",
    }
