"""The lines that each test runs, recorded in a child of a fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = "HIGH = 7\n\n\ndef clamp(value):\n    return min(value, HIGH)\n\n\ndef double(value):\n    return 2 * value\n"
TESTS = """
import small

def test_clamp():
    assert small.clamp(9) == 7

def test_double():
    assert small.double(2) == 4
"""
PROGRAM = """
import json, sys
from pathlib import Path
from tests.mutation.runner import import_libraries, lines_of_tests, tests_pass
folder = Path(sys.argv[1])
import_libraries()
passed = tests_pass(folder, ["test_small.py"], 60.0, traced=folder / "host" / "small.py")
print(json.dumps([passed, {name: sorted(lines) for name, lines in lines_of_tests(folder).items()}]))
"""


@pytest.mark.parametrize(
    ("module", "passes"), [(MODULE, True), (MODULE.replace("2 *", "3 *"), False)], ids=["passes", "fails"]
)
def test_a_line_belongs_to_the_tests_that_run_it_and_an_import_to_none(
    tmp_path: Path, module: str, passes: bool
) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "small.py").write_text(module)
    (tmp_path / "test_small.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=100,
    )
    lines = {"test_small.py::test_clamp": [4, 5], "test_small.py::test_double": [8, 9]}
    assert json.loads(done.stdout) == [passes, lines], done.stderr
