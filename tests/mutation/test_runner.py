"""The lines that each test runs, recorded in a child."""

from __future__ import annotations

from pathlib import Path

from tests.mutation.runner import lines_of_tests, tests_pass as passes

MODULE = "HIGH = 7\n\n\ndef clamp(value):\n    return min(value, HIGH)\n\n\ndef double(value):\n    return 2 * value\n"
TESTS = """
import small

def test_clamp():
    assert small.clamp(9) == 7

def test_double():
    assert small.double(2) == 4
"""


def test_a_line_belongs_to_the_tests_that_run_it_and_an_import_to_none(tmp_path: Path) -> None:
    source = tmp_path / "host" / "small.py"
    source.parent.mkdir()
    source.write_text(MODULE)
    (tmp_path / "test_small.py").write_text(TESTS)
    assert passes(tmp_path, ["test_small.py"], 60.0, traced=source)
    assert lines_of_tests(tmp_path) == {"test_small.py::test_clamp": {4, 5}, "test_small.py::test_double": {8, 9}}


def test_a_test_that_fails_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "small.py").write_text(MODULE.replace("2 *", "3 *"))
    (tmp_path / "test_small.py").write_text(TESTS)
    assert not passes(tmp_path, ["test_small.py"], 60.0)
