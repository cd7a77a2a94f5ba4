"""hls/yosys/resources.py, up to the start of Yosys."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "hls" / "yosys" / "resources.py"


def test_a_bitstream_that_is_not_built_here_is_refused_by_name() -> None:
    ended = subprocess.run([sys.executable, SCRIPT, "pynq"], capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 2
    assert "no bitstream 'pynq' is built here; choose one of hilt-pynq-z2," in ended.stdout
