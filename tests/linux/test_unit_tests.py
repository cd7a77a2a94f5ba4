"""The board's unit tests on the emulated boards: ARM with 32 and with 64 bits, Debian's Python and numpy."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from hilt.link.engine_library import engine_library, library_name
from hilt.virtual.linux.computer import Computer
from tests.linux.board import Desk
from tests.linux.test_linux_board import desk, nightly

__all__ = ["desk"]

pytestmark = [pytest.mark.timeout(1800), pytest.mark.slow]

ROOT = Path(__file__).parents[2]
OPERATOR_TESTS = [
    f"tests/unit/network/test_{name}.py"
    for name in ("native_engine", "native_forms", "processor_bits", "integer_operators", "extremes", "pieces")
]
SOURCES = (
    *("pyproject.toml", "README.md", "board", "host/hilt", "bitstreams", "hls/README.md"),
    *("docs/protocol.md", "hls/golden", "hls/sim"),
    *("tests/__init__.py", "tests/conftest.py", "tests/unit/__init__.py", "tests/unit/board"),
    *(f"tests/unit/network/{name}.py" for name in ("__init__", "engines", "processor_cases")),
    *OPERATOR_TESTS,
)
MACHINES = {"armhf": "armv7l", "arm64": "aarch64"}
TOOLS = ("pytest", "pytest-asyncio", "pytest-timeout", "hypothesis", "platformdirs", "syrupy")
ON_BOARD = ("numpy", "pynq")
NEEDS_COMPILER = "tests/unit/board/test_public_time.py"
SECONDS = 1700.0


def packed(computer: Computer, tmp_path: Path) -> bytes:
    """Return the tar of the sources and of the packages that the tests need."""
    site = tmp_path / "site"
    platforms = [word for each in computer.wheel_platforms for word in ("--platform", each)]
    wheels = ["--only-binary", ":all:", "--python-version", "3.11", *platforms]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", str(site)]
    subprocess.run([*pip, *wheels, *TOOLS], check=True, capture_output=True)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name in SOURCES:
            archive.add(ROOT / name, name, filter=lambda entry: None if "__pycache__" in entry.name else entry)
        archive.add(site, "site")
        machine = MACHINES[computer.architecture]
        library = engine_library(machine)
        assert library is not None, "no cross compiler: pip install ziglang"
        entry = tarfile.TarInfo(f"board/hilt_runtime/native/{library_name(machine)}")
        entry.size = len(library)
        archive.addfile(entry, io.BytesIO(library))
    return buffer.getvalue()


def test_the_board_has_the_packages_that_the_tests_import() -> None:
    tests = [path for name in SOURCES if name.startswith("tests/") for path in _python_files(ROOT / name)]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in tests]
    imports = [node for tree in trees for node in ast.walk(tree)]
    names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in imports if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    tops = {name.split(".")[0] for name in names} - sys.stdlib_module_names
    assert len(tests) > 20
    assert {top for top in tops if not top.startswith("hilt") and top != "tests"} <= {*TOOLS, *ON_BOARD}


def _python_files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


@nightly
def test_the_boards_unit_tests_pass_on_arm(desk: Desk, tmp_path: Path) -> None:
    environment = ["env", "-C", "/opt/unit", "-u", "HILT_VERILATED", "PYTHONPATH=site:host:board:."]
    words = [
        "python3",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/unit/board",
        *OPERATOR_TESTS,
        f"--ignore={NEEDS_COMPILER}",
    ]
    with desk.on():
        desk.put(packed(desk.computer, tmp_path), "unit.tar.gz")
        desk.output("mkdir", "-p", "/opt/unit")
        desk.output("tar", "xzf", "/home/xilinx/unit.tar.gz", "-C", "/opt/unit", "--no-same-owner")
        began = time.monotonic()
        done = desk.execute(*environment, *words, seconds=SECONDS)
    text = done.output.decode("utf-8", "replace")
    print(f"\n{text[-3000:]}\n{time.monotonic() - began:.0f} s")
    assert done.status == 0
    assert re.search(r"\d{3,} passed", text)
