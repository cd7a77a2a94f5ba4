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
from tests.mutation.runner import import_libraries, passing_tests
folder = Path(sys.argv[1])
import_libraries()
passed, others = passing_tests(folder, ["test_broken.py", "test_small.py"], 60.0, folder / "host" / "small.py")
print(json.dumps([{name: sorted(test.lines) for name, test in passed.items()}, others]))
"""
LINES = {"test_small.py::test_clamp": [4, 5], "test_small.py::test_double": [8, 9]}


@pytest.mark.parametrize(
    ("module", "failing"),
    [(MODULE, []), (MODULE.replace("(value, HIGH)", "(HIGH)"), ["test_small.py::test_clamp"])],
    ids=["passes", "fails"],
)
def test_a_line_belongs_to_the_passing_tests_that_run_it_and_an_import_to_none(
    tmp_path: Path, module: str, failing: list[str]
) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "small.py").write_text(module)
    (tmp_path / "test_small.py").write_text(TESTS)
    (tmp_path / "test_broken.py").write_text("import absent\n")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=100,
    )
    lines = {name: of_test for name, of_test in LINES.items() if name not in failing}
    assert json.loads(done.stdout) == [lines, failing], done.stderr
