"""The wheel, installed alone, tunes on a virtual board from a folder that is no clone."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from hilt import paths

CLONE = Path(__file__).parents[2]
WORKLOAD = "conv2d:n=1,ci=16,h=6,w=6,co=16,k=3x3,s=1x1,p=1x1"

pytestmark = [pytest.mark.rtl, pytest.mark.ssh, pytest.mark.timeout(900)]


def run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        command, cwd=folder, env=kept | environment, capture_output=True, text=True, check=False, timeout=800
    )


def test_the_wheel_tunes_outside_a_clone(tmp_path: Path) -> None:
    built = run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(CLONE)], tmp_path)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("hilt-*.whl")
    venv.create(tmp_path / "bare")
    binaries = tmp_path / "bare" / "bin"
    install = [sys.executable, "-m", "pip", "--python", str(binaries / "python"), "install", "-q", "--no-compile"]
    installed = run([*install, str(wheel)], tmp_path)
    assert installed.returncode == 0, installed.stderr
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    tuned = run(
        [str(binaries / "hilt"), "tune", WORKLOAD, "--board", "virtual:pynq@wheel", "--trials", "2"],
        folder,
        HILT_HOME=str(tmp_path / "home"),
        HILT_CACHE=str(paths.cache()),
    )
    assert tuned.returncode == 0, tuned.stdout + tuned.stderr
    assert "2 of 2 trials, 2 valid" in tuned.stdout
    assert list(folder.iterdir()) == []
